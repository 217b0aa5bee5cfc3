//! From the configuration of promptfoo.
//!
//! There, every prompt is tried with every test, and a list of texts in `vars` stands for a test with each of them. Here each of these is a case;
//! those of one test are a group, because they resemble each other.

mod assertions;
mod csv;
mod expand;
mod prompts;
mod providers;

use rehearsal_core::SourceError;

use super::draft::{AssertionDraft, CaseDraft, EvalDraft};
use super::names::Names;
use super::node::{self, Node};
use super::template::{self, Vars};
use super::{Imported, LONGEST_EVAL, MOST_CASES, NoteKind, Notes, Wanted, nowhere};
use assertions::Asserted;
use prompts::Prompt;
use providers::Providers;

const HEAD: &str = "# Imported from promptfoo. `rehearsal schema eval` has the form of this file, `rehearsal eval run` runs it.";

/// What is read of a configuration.
const KEYS: [&str; 9] = [
    "description",
    "prompts",
    "providers",
    "targets",
    "tests",
    "defaultTest",
    "evaluateOptions",
    "assertionTemplates",
    "$schema",
];
/// What is read of a test.
const TEST_KEYS: [&str; 8] =
    ["description", "vars", "assert", "threshold", "options", "provider", "prompts", "$schema"];
/// What is read of a test's options.
const OPTION_KEYS: [&str; 4] = ["prefix", "suffix", "disableVarExpansion", "provider"];

/// Makes an eval of a configuration.
pub fn promptfoo(text: &str, wanted: &Wanted<'_>) -> Result<Imported, SourceError> {
    let root = node::read(text, None)?;
    if !root.is_map() {
        return Err(SourceError::at(root.at.place, "a configuration of promptfoo is a map")
            .hint("it has `prompts`, `providers` and `tests`"));
    }
    let mut import = Import {
        wanted,
        providers: Providers::default(),
        notes: Notes::default(),
        names: Names::default(),
        judge: wanted.judge.map(str::to_owned),
        asserted: 0,
        bytes: 0,
        cases: Vec::new(),
        templates: root.get("assertionTemplates").cloned(),
    };
    import.others(&root, &KEYS);
    let draft = import.eval(&root)?;
    let text = draft.write(HEAD)?;
    Ok(Imported { text, cases: draft.cases.len(), notes: import.notes.told() })
}

/// An import under way.
struct Import<'a> {
    wanted: &'a Wanted<'a>,
    providers: Providers,
    notes: Notes,
    names: Names,
    judge: Option<String>,
    /// How many assertions there are by now.
    asserted: usize,
    /// How long all prompts are by now.
    bytes: usize,
    cases: Vec<CaseDraft>,
    templates: Option<Node>,
}

impl Import<'_> {
    fn eval(&mut self, root: &Node) -> Result<EvalDraft, SourceError> {
        let agents = self.providers(root);
        let prompts = self.prompts(root)?;
        let default = self.referenced(root.get("defaultTest"))?;
        let default = default.as_ref().filter(|node| node.is_map());
        if let Some(default) = default {
            self.others(default, &TEST_KEYS);
            self.options(default);
        }
        // What is the same for all cases is asserted once, of the eval.
        let asserted = default.and_then(|default| default.get("assert"));
        let is_fixed = |node: &&Node| !template::is_template(&node.value().to_string());
        let common: Vec<AssertionDraft> = match asserted.filter(is_fixed) {
            Some(node) => self.assertions(node, &Vars::new()),
            None => Vec::new(),
        };
        let each = asserted.filter(|node| !is_fixed(node));
        let tests = self.tests(root)?;
        for (number, test) in tests.iter().enumerate() {
            if self.is_enough() {
                break;
            }
            self.test(test, number + 1, default, each, &common, &prompts)?;
        }
        let cases = std::mem::take(&mut self.cases);
        if cases.is_empty() {
            let error = nowhere("nothing can be imported: no case has an assertion that there is here");
            return Err(self.with_first_notes(error));
        }
        Ok(EvalDraft {
            name: self.wanted.name.to_owned(),
            about: root.get("description").and_then(Node::text).unwrap_or_default().to_owned(),
            agents,
            repeat: self.repeat(root),
            judge: self.judge.take().filter(|_| is_judged(&common, &cases)),
            assertions: common,
            cases,
        })
    }

    /// Whether all cases are there that are wanted.
    fn is_enough(&self) -> bool {
        self.wanted.most.is_some_and(|most| self.cases.len() >= most)
    }

    /// The first things that were left out, because nothing is left.
    fn with_first_notes(&mut self, error: SourceError) -> SourceError {
        let notes = std::mem::take(&mut self.notes).told();
        let told: Vec<String> = notes
            .iter()
            .take(3)
            .map(|note| match note.line {
                Some(line) => format!("line {line}: {}", note.text),
                None => note.text.clone(),
            })
            .collect();
        if told.is_empty() { error } else { error.hint(told.join("; ")) }
    }

    fn repeat(&mut self, root: &Node) -> Option<u64> {
        let options = root.get("evaluateOptions")?;
        self.others(options, &["repeat"]);
        let repeat = options.get("repeat")?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within its bounds, and a cast saturates"
        )]
        let number =
            repeat.number().filter(|number| (1.0..=10_000.0).contains(number)).map(|number| number as u64);
        if number.is_none() {
            self.notes.add(NoteKind::Setting, &repeat.at, "`repeat` is not a number between 1 and 10000");
        }
        number.filter(|number| *number > 1)
    }

    /// The tests; without any, each prompt is tried once.
    fn tests(&mut self, root: &Node) -> Result<Vec<Node>, SourceError> {
        let Some(tests) = root.get("tests") else {
            return Ok(vec![Node { at: root.at.clone(), tree: node::Tree::Map(Vec::new()) }]);
        };
        let several = match tests.list() {
            Some(nodes) => nodes.to_vec(),
            None => vec![tests.clone()],
        };
        let mut all = Vec::new();
        for one in several {
            let Some(read) = self.referenced(Some(&one))? else { continue };
            match read.list() {
                Some(nodes) => all.extend(nodes.iter().cloned()),
                None => all.push(read),
            }
        }
        Ok(all)
    }

    /// What a node stands for: itself, or what the file has that it names. None if that cannot be read, which is told.
    fn referenced(&mut self, node: Option<&Node>) -> Result<Option<Node>, SourceError> {
        let Some(node) = node else { return Ok(None) };
        let Some(text) = node.text() else { return Ok(Some(node.clone())) };
        let Some(path) = text.strip_prefix("file://") else {
            self.notes.add(NoteKind::Case, &node.at, format!("`{text}` is not read: only file:// is"));
            return Ok(None);
        };
        let is_table = path.ends_with(".csv");
        let read = if is_table || [".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end)) {
            (self.wanted.read)(path)
        } else {
            Err("only YAML, JSON and CSV are".to_owned())
        };
        let text = match read {
            Ok(text) => text,
            Err(why) => {
                self.notes.add(NoteKind::Case, &node.at, format!("`{path}` is not read: {why}"));
                return Ok(None);
            }
        };
        let read = if is_table {
            let list = |rows| Node { at: node.at.clone(), tree: node::Tree::List(rows) };
            csv::tests(&text, path).map(list)
        } else {
            node::read(&text, Some(path)).map_err(|error| error.message)
        };
        let wrong = |why| SourceError::at(node.at.place, format!("`{path}` cannot be read: {why}"));
        read.map(Some).map_err(wrong)
    }

    /// Tells of keys that have no counterpart.
    fn others(&mut self, node: &Node, known: &[&str]) {
        for (key, value) in node.pairs() {
            if !known.contains(&key.as_str()) && !value.is_null() {
                self.notes.add(NoteKind::Setting, &value.at, format!("`{key}` has no counterpart"));
            }
        }
    }

    /// What the options of a test say, as far as there is a counterpart.
    fn options(&mut self, test: &Node) {
        let Some(options) = test.get("options") else { return };
        for (key, value) in options.pairs() {
            if OPTION_KEYS.contains(&key.as_str()) || value.is_null() {
                continue;
            }
            let more = if matches!(key.as_str(), "transform" | "postprocess") {
                ": what is asserted of the answer is now asserted of all of it"
            } else {
                ""
            };
            self.notes.add(NoteKind::Setting, &value.at, format!("`{key}` has no counterpart{more}"));
        }
        if let (Some(provider), None) = (options.get("provider"), &self.judge) {
            self.judge = self.judge_of(provider);
        }
    }

    fn test(
        &mut self,
        test: &Node,
        number: usize,
        default: Option<&Node>,
        each: Option<&Node>,
        common: &[AssertionDraft],
        prompts: &[Prompt],
    ) -> Result<(), SourceError> {
        self.others(test, &TEST_KEYS);
        self.options(test);
        let Some(combinations) = self.combinations(test, default) else { return Ok(()) };
        let chosen = prompts::chosen(prompts, test.get("prompts"));
        if combinations.len().saturating_mul(chosen.len()) > MOST_CASES {
            let message = format!("this test stands for more than {MOST_CASES} cases");
            return Err(SourceError::at(test.at.place, message).hint("make the lists in its `vars` shorter"));
        }
        let is_group = combinations.len() * chosen.len() > 1;
        let agents = test.get("provider").map(|node| self.agents_of(node)).unwrap_or_default();
        let threshold = self.threshold(test, default);
        let description = test.get("description").and_then(Node::text);
        for vars in &combinations {
            for prompt in &chosen {
                if self.is_enough() {
                    return Ok(());
                }
                let asserted = Asserted { each, own: test.get("assert"), has_common: !common.is_empty() };
                let Some((text, assertions)) = self.filled(test, default, prompt, vars, &asserted) else {
                    continue;
                };
                self.count(&text, &assertions, common)?;
                let wanted = description.map(|text| template::fill(text, vars, &mut Vec::new()));
                let wanted = wanted.and_then(Result::ok).unwrap_or_default();
                let label = if chosen.len() > 1 { format!("-{}", prompt.label) } else { String::new() };
                let wanted = if wanted.is_empty() { format!("test-{number}") } else { wanted };
                self.cases.push(CaseDraft {
                    name: self.names.give(&format!("{wanted}{label}"), &format!("test-{number}")),
                    group: is_group.then(|| format!("test-{number}")),
                    prompt: text,
                    agents: agents.clone(),
                    assertions,
                    threshold,
                    ..CaseDraft::default()
                });
            }
        }
        Ok(())
    }

    /// The prompt of one case and what is asserted of it; none if it cannot be a case, which is told.
    fn filled(
        &mut self,
        test: &Node,
        default: Option<&Node>,
        prompt: &Prompt,
        vars: &Vars,
        asserted: &Asserted<'_>,
    ) -> Option<(String, Vec<AssertionDraft>)> {
        let option = |key: &str| {
            let of = |node: &Node| node.get("options")?.get(key)?.text().map(str::to_owned);
            of(test).or_else(|| default.and_then(of)).unwrap_or_default()
        };
        let whole = format!("{}{}{}", option("prefix"), prompt.text, option("suffix"));
        let mut missing = Vec::new();
        let text = match template::fill(&whole, vars, &mut missing) {
            Ok(text) => text,
            Err(why) => {
                self.notes.add(NoteKind::Case, &prompt.at, format!("a case is left out: {why}"));
                return None;
            }
        };
        for name in missing {
            let told = format!("`{{{{ {name} }}}}` has no value in a test, and is empty");
            self.notes.add(NoteKind::Changed, &prompt.at, told);
        }
        if text.trim().is_empty() {
            self.notes.add(NoteKind::Case, &test.at, "a case is left out: its prompt is empty");
            return None;
        }
        let mut assertions = asserted.each.map(|node| self.assertions(node, vars)).unwrap_or_default();
        assertions.extend(asserted.own.map(|node| self.assertions(node, vars)).unwrap_or_default());
        if assertions.is_empty() && !asserted.has_common {
            let why = if asserted.own.is_some() || asserted.each.is_some() {
                "a case is left out: no assertion of it is left"
            } else {
                "a case is left out: nothing is asserted of it, so it could not fail"
            };
            self.notes.add(NoteKind::Case, &test.at, why);
            return None;
        }
        if assertions.is_empty() && asserted.own.is_some() {
            let told = "of what is asserted of this case alone, nothing is left";
            self.notes.add(NoteKind::Changed, &test.at, told);
        }
        Some((text, assertions))
    }

    fn threshold(&mut self, test: &Node, default: Option<&Node>) -> Option<f64> {
        let node = test.get("threshold").or_else(|| default?.get("threshold"))?;
        let share = node.number().filter(|share| (0.0..=1.0).contains(share));
        if share.is_none() {
            self.notes.add(NoteKind::Setting, &node.at, "`threshold` is not a number between 0 and 1");
        }
        share
    }

    /// Stops before memory is full of what one small file stands for.
    fn count(
        &mut self,
        text: &str,
        assertions: &[AssertionDraft],
        common: &[AssertionDraft],
    ) -> Result<(), SourceError> {
        self.bytes += text.len();
        self.asserted += assertions.len() + common.len();
        self.bytes += assertions.iter().map(|one| one.value.to_string().len()).sum::<usize>();
        if self.bytes > LONGEST_EVAL || self.asserted > 10 * MOST_CASES {
            let error = nowhere(format!("the eval would be larger than {} MiB", LONGEST_EVAL >> 20));
            return Err(error.hint("take fewer cases: --most N"));
        }
        Ok(())
    }
}

fn is_judged(common: &[AssertionDraft], cases: &[CaseDraft]) -> bool {
    let mut all = common.iter().chain(cases.iter().flat_map(|case| &case.assertions));
    all.any(|one| one.kind.ends_with("llm-rubric"))
}

#[cfg(test)]
mod tests;
