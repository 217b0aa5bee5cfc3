//! The variables of a test: each combination of what their lists hold.

use serde_json::Value;

use super::Import;
use crate::import::node::{Node, Tree};
use crate::import::template::Vars;
use crate::import::{MOST_CASES, NoteKind};

/// Files that would be run, and what they return used.
const CODE: [&str; 7] = [".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".rb"];

impl Import<'_> {
    /// Every combination, the first variable changing slowest; none if a variable cannot be read, which is told.
    pub(super) fn combinations(&mut self, test: &Node, default: Option<&Node>) -> Option<Vec<Vars>> {
        let of = |node: Option<&Node>| node.and_then(|node| node.get("vars")).cloned();
        let mut pairs: Vec<(String, Node)> = Vec::new();
        for vars in [of(default), of(Some(test))].into_iter().flatten() {
            for (name, node) in vars.pairs() {
                match pairs.iter_mut().find(|(known, _)| known == name) {
                    Some((_, known)) => *known = node.clone(),
                    None => pairs.push((name.clone(), node.clone())),
                }
            }
            if !vars.is_map() {
                self.notes.add(NoteKind::Case, &vars.at, "a case is left out: its `vars` are no map");
                return None;
            }
        }
        let is_whole = |node: &Node| {
            let said = node.get("options").and_then(|options| options.get("disableVarExpansion"));
            said.is_some_and(|node| matches!(node.tree, Tree::Bool(true)))
        };
        let expands = !is_whole(test) && !default.is_some_and(is_whole);
        let mut all = vec![Vars::new()];
        for (name, node) in &pairs {
            let values = self.values(node, expands)?;
            if all.len().saturating_mul(values.len()) > MOST_CASES {
                let told = format!("a test is left out: its `vars` stand for more than {MOST_CASES} cases");
                self.notes.add(NoteKind::Case, &test.at, told);
                return None;
            }
            let with = |vars: &Vars, value: &Value| {
                let mut vars = vars.clone();
                vars.insert(name.clone(), value.clone());
                vars
            };
            all = all.iter().flat_map(|vars| values.iter().map(|value| with(vars, value))).collect();
        }
        Some(all)
    }

    /// A list stands for each of its texts; a list of something else is one value.
    fn values(&mut self, node: &Node, expands: bool) -> Option<Vec<Value>> {
        match &node.tree {
            Tree::List(nodes) if expands && nodes.first().is_some_and(|first| first.text().is_some()) => {
                nodes.iter().map(|one| self.value(one)).collect()
            }
            _ => Some(vec![self.value(node)?]),
        }
    }

    /// A value, or what is in the file that it names.
    fn value(&mut self, node: &Node) -> Option<Value> {
        let Some(path) = node.text().and_then(|text| text.strip_prefix("file://")) else {
            return Some(node.value());
        };
        let read = if CODE.iter().any(|end| path.ends_with(end)) {
            Err("code is not run".to_owned())
        } else {
            (self.wanted.read)(path)
        };
        match read {
            Ok(text) => Some(Value::String(text.trim().to_owned())),
            Err(why) => {
                let told = format!("a case is left out: `{path}` is not read: {why}");
                self.notes.add(NoteKind::Case, &node.at, told);
                None
            }
        }
    }
}
