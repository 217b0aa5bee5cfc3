//! The prompts of a configuration.

use rehearsal_core::SourceError;

use super::Import;
use crate::import::NoteKind;
use crate::import::node::{At, Node};

/// A prompt, with `{{ … }}` in it.
pub(super) struct Prompt {
    pub(super) text: String,
    /// What tests call it.
    pub(super) label: String,
    pub(super) at: At,
}

impl Import<'_> {
    pub(super) fn prompts(&mut self, root: &Node) -> Result<Vec<Prompt>, SourceError> {
        let Some(node) = root.get("prompts") else {
            return Err(SourceError::at(root.at.place, "there are no `prompts`"));
        };
        let mut all = Vec::new();
        match node.list() {
            Some(nodes) => nodes.iter().for_each(|one| self.prompt(one, &mut all)),
            None if node.is_map() => {
                // The older form: a label by file.
                for (path, label) in node.pairs() {
                    self.prompt_of(&format!("file://{path}"), label.text(), &label.at, &mut all);
                }
            }
            None => self.prompt(node, &mut all),
        }
        if all.is_empty() {
            let error = SourceError::at(node.at.place, "none of the prompts can be read");
            return Err(self.with_first_notes(error));
        }
        Ok(all)
    }

    fn prompt(&mut self, node: &Node, all: &mut Vec<Prompt>) {
        if let Some(text) = node.text() {
            return self.prompt_of(text, None, &node.at, all);
        }
        self.others(node, &["raw", "label", "id"]);
        let label = node.get("label").or_else(|| node.get("id")).and_then(Node::text);
        match node.get("raw").or_else(|| node.get("id")).and_then(Node::text) {
            Some(text) => self.prompt_of(text, label, &node.at, all),
            None => self.notes.add(NoteKind::Setting, &node.at, "a prompt is left out: it has no text"),
        }
    }

    fn prompt_of(&mut self, text: &str, label: Option<&str>, at: &At, all: &mut Vec<Prompt>) {
        let mut add = |text: &str| {
            let label = label.map_or_else(|| format!("prompt-{}", all.len() + 1), str::to_owned);
            all.push(Prompt { text: text.to_owned(), label, at: at.clone() });
        };
        let Some(path) = text.strip_prefix("file://") else { return add(text) };
        let read = if path.ends_with(".txt") || path.ends_with(".md") {
            (self.wanted.read)(path)
        } else {
            Err("only .txt and .md are".to_owned())
        };
        match read {
            // Several prompts of one file are set apart by a line of dashes.
            Ok(read) => read.split("\n---\n").map(str::trim).filter(|one| !one.is_empty()).for_each(add),
            Err(why) => {
                let told = format!("a prompt is left out: `{path}` is not read: {why}");
                self.notes.add(NoteKind::Setting, at, told);
            }
        }
    }
}

/// Those that a test wants; without a word, all.
pub(super) fn chosen<'a>(prompts: &'a [Prompt], wanted: Option<&Node>) -> Vec<&'a Prompt> {
    let Some(wanted) = wanted.and_then(Node::list) else { return prompts.iter().collect() };
    let is_wanted = |prompt: &&Prompt| wanted.iter().any(|one| one.text() == Some(&prompt.label));
    prompts.iter().filter(is_wanted).collect()
}
