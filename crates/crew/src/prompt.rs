//! The system prompt: sections by priority, within a budget of tokens.

use crate::surroundings::Surroundings;
use crate::{Role, tokens};

/// A part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its heading; none for text that needs none.
    pub title: Option<&'static str>,
    /// What it says.
    pub text: String,
    /// Sections of a higher priority are put in first.
    pub priority: u8,
    /// The most tokens that it may have by itself; what is more is cut.
    pub most: usize,
}

/// Puts sections together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptBuilder {
    budget: usize,
    sections: Vec<Section>,
}

/// A prompt, and what is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// The headings of sections that had no room.
    pub dropped: Vec<&'static str>,
}

/// Stands at the end of a section that was cut.
const CUT: &str = "\n[… cut: this is longer than there is room for]";

impl PromptBuilder {
    /// A prompt of at most so many tokens.
    pub fn new(budget: usize) -> Self {
        Self { budget, sections: Vec::new() }
    }

    /// Adds a section, unless it is empty. Sections are shown in the order in which they are added.
    pub fn section(mut self, section: Section) -> Self {
        if !section.text.trim().is_empty() {
            self.sections.push(section);
        }
        self
    }

    /// The prompt. A section that is too long by itself is cut; then those with the highest priority are put in, and one that does
    /// not fit is dropped, with all that matter less.
    pub fn build(self) -> Prompt {
        let written: Vec<String> = self.sections.iter().map(|section| section.written(self.budget)).collect();
        let mut by_priority: Vec<usize> = (0..self.sections.len()).collect();
        by_priority.sort_by_key(|at| std::cmp::Reverse(self.sections[*at].priority));
        let mut room = self.budget;
        let mut included = vec![false; self.sections.len()];
        for at in by_priority {
            let Some(left) = room.checked_sub(tokens::estimate(&written[at])) else { break };
            room = left;
            included[at] = true;
        }
        let chosen =
            written.iter().zip(&included).filter(|(_, is_in)| **is_in).map(|(text, _)| text.as_str());
        let text = chosen.collect::<Vec<_>>().join("\n");
        let out = self.sections.iter().zip(&included).filter(|(_, is_in)| !**is_in);
        Prompt { text, dropped: out.filter_map(|(section, _)| section.title).collect() }
    }
}

impl Section {
    /// With its heading, and a line's end.
    fn written(&self, budget: usize) -> String {
        let heading = self.title.map(|title| format!("## {title}\n\n")).unwrap_or_default();
        let text = self.text.trim();
        let most = self.most.min(budget);
        if tokens::estimate(text) + tokens::estimate(&heading) < most {
            return format!("{heading}{text}\n");
        }
        // One for the line's end, and one for each estimate that is rounded up.
        let room = most.saturating_sub(tokens::estimate(&heading) + tokens::estimate(CUT) + 3);
        format!("{heading}{}{CUT}\n", tokens::first(text, room).trim_end())
    }
}

/// The role's own words are never left out, but by themselves they are a page or two.
const ROLE: u8 = 100;
/// What the user's configuration adds.
const ADDED: u8 = 90;
/// How one works here.
const CONVENTIONS: u8 = 80;
/// Where what is.
const LAYOUT: u8 = 50;
/// What it is all about: a model does without.
const README: u8 = 40;

/// The most tokens that a system prompt has. It is sent with each request, and the task should have the room.
pub const SYSTEM_BUDGET: usize = 16_000;

/// What a role is told before its task.
pub fn system_prompt(role: &Role, added: Option<&str>, known: &Surroundings, budget: usize) -> Prompt {
    let section =
        |title, text: &str, priority, most| Section { title, text: text.to_owned(), priority, most };
    let mut builder = PromptBuilder::new(budget)
        .section(section(None, &role.prompt, ROLE, budget))
        .section(section(None, added.unwrap_or_default(), ADDED, budget / 2));
    if role.project_context {
        builder = builder
            .section(section(Some("Conventions"), &known.conventions, CONVENTIONS, budget / 2))
            .section(section(Some("Layout"), &known.layout, LAYOUT, budget / 8))
            .section(section(Some("README"), &known.readme, README, budget / 8));
    }
    builder.build()
}
