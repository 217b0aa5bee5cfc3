//! Secrets: what must not be in a cassette.

use std::collections::BTreeSet;

use regex_automata::meta::Regex;
use rehearsal_core::secret::{KEY_SHAPES, is_secret_variable, secret_texts};

use super::normalise::{Edges, PatternError, literal, verbatim};

/// The version of the rules for secrets.
pub(crate) const VERSION: u32 = 1;

/// The secrets that are known here: the values of secret-like variables, and the shapes of well-known keys.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    /// Text, and the variable that it comes from.
    values: Vec<(String, String)>,
}

/// A secret that was found. Its text is nobody's business.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// The line, counted from 1.
    pub line: usize,
    /// What gave it away: a variable's name, or how a key begins.
    pub kind: String,
}

impl Secrets {
    /// Those of an environment.
    pub fn of<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut values: Vec<(String, String)> = Vec::new();
        for (name, value) in variables.into_iter().filter(|(name, value)| is_secret_variable(name, value)) {
            for text in secret_texts(value) {
                if values.iter().all(|(known, _)| *known != text) {
                    values.push((text, name.to_owned()));
                }
            }
        }
        values.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        Self { values }
    }

    /// Regular expressions, each with what may stand around it.
    pub(crate) fn patterns(&self) -> Vec<(String, Edges)> {
        let values = self.values.iter().map(|(text, _)| (literal(text), Edges::Any));
        let shapes = KEY_SHAPES.iter().map(|shape| {
            let regex = format!("{}{}{{{},}}", literal(shape.prefix), shape.class(), shape.at_least);
            (regex, Edges::Before(b"_-"))
        });
        values.chain(shapes).collect()
    }

    fn kinds(&self) -> impl Iterator<Item = String> {
        let values = self.values.iter().map(|(_, name)| format!("the value of {name}"));
        values.chain(KEY_SHAPES.iter().map(|shape| format!("a key like `{}…`", shape.prefix.trim())))
    }
}

/// Looks for secrets in whole lines.
#[derive(Debug)]
pub(crate) struct Scanner {
    search: Regex,
    edges: Vec<Edges>,
    kinds: Vec<String>,
    verbatim: Regex,
}

impl Scanner {
    pub(crate) fn new(secrets: &Secrets) -> Result<Self, PatternError> {
        let (sources, edges): (Vec<String>, Vec<Edges>) = secrets.patterns().into_iter().unzip();
        Ok(Self {
            search: Regex::new_many(&sources)?,
            edges,
            kinds: secrets.kinds().collect(),
            verbatim: Regex::new(&verbatim())?,
        })
    }

    /// What kinds of secrets a text holds. Signatures are not looked at: they are random letters, and must stay.
    pub(crate) fn find(&self, text: &str) -> Vec<&str> {
        let mut found = BTreeSet::new();
        let mut verbatim = None;
        for hit in self.search.find_iter(text) {
            let index = hit.pattern().as_usize();
            let holds = self
                .edges
                .get(index)
                .is_some_and(|edges| edges.hold(text.as_bytes(), hit.start(), hit.end()));
            if !holds {
                continue;
            }
            let spans = verbatim.get_or_insert_with(|| self.verbatim_spans(text));
            if spans.iter().any(|span| span.start <= hit.start() && hit.end() <= span.end) {
                continue;
            }
            if let Some(kind) = self.kinds.get(index) {
                found.insert(kind.as_str());
            }
        }
        found.into_iter().collect()
    }

    fn verbatim_spans(&self, text: &str) -> Vec<std::ops::Range<usize>> {
        self.verbatim.find_iter(text).map(|hit| hit.range()).collect()
    }
}
