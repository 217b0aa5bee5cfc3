//! Tasks from files that people already have: Markdown checklists, and JSON lines.

use serde::{Deserialize, Serialize};

use crate::source::nearest;
use crate::{Budget, Place, Priority, SourceError};

/// A task as an import file has it. In JSON lines: one object a line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ImportedTask {
    /// A name for it inside this file, for `depends_on`.
    pub key: Option<String>,
    /// One line.
    pub title: String,
    /// The whole description.
    pub body: String,
    /// What must hold when it is done.
    pub criteria: Vec<String>,
    /// How urgent it is.
    pub priority: Priority,
    /// Free labels.
    pub labels: Vec<String>,
    /// Keys of this file, or ids of tasks that are there already.
    pub depends_on: Vec<String>,
    /// What it may cost.
    pub budget: Budget,
    /// Whether it is done already.
    pub done: bool,
}

/// The longest line that is taken from an import file.
const LONGEST_LINE: usize = 1 << 20;

/// Reads JSON lines. Blank lines are passed over.
pub fn json_lines(text: &str) -> Result<Vec<ImportedTask>, SourceError> {
    let mut tasks = Vec::new();
    for (number, line) in lines(text)? {
        if line.trim().is_empty() {
            continue;
        }
        let task: ImportedTask = serde_json::from_str(line).map_err(|error| {
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default().to_owned();
            let hint = near_hint(&message);
            let place = Place { line: number, column: error.column().max(1) as u64 };
            let told = SourceError::at(Some(place), message);
            match hint {
                Some(hint) => told.hint(hint),
                None => told,
            }
        })?;
        if task.title.trim().is_empty() {
            return Err(SourceError::at(Some(Place { line: number, column: 1 }), "a task needs a `title`"));
        }
        tasks.push(task);
    }
    Ok(tasks)
}

/// ``unknown field `titel`, expected one of `key`, …`` lists all names: find the one that was meant.
fn near_hint(message: &str) -> Option<String> {
    let rest =
        message.strip_prefix("unknown field `").or_else(|| message.strip_prefix("unknown variant `"))?;
    let (written, known) = rest.split_once("`, expected")?;
    let known = known.trim_start_matches(" one of").split(',').map(|name| name.trim().trim_matches('`'));
    nearest(written, known.filter(|name| !name.is_empty())).map(|near| format!("did you mean `{near}`?"))
}

/// Reads a Markdown checklist: `- [ ] title` is a task, `- [x] title` a done one. Items below it are its
/// acceptance criteria, indented text is its description, and the heading above it becomes a label.
pub fn markdown(text: &str) -> Result<Vec<ImportedTask>, SourceError> {
    let mut tasks: Vec<ImportedTask> = Vec::new();
    let mut heading: Option<String> = None;
    for (_, line) in lines(text)? {
        let content = line.trim_start();
        let indented = line.len() > content.len();
        if let Some(title) = content.strip_prefix('#')
            && !indented
        {
            heading = label_of(title.trim_start_matches('#'));
            continue;
        }
        match (checkbox(content), indented, tasks.last_mut()) {
            (Some((done, title)), false, _) => {
                let labels = heading.clone().into_iter().collect();
                tasks.push(ImportedTask { title: title.into(), done, labels, ..ImportedTask::default() });
            }
            (Some((_, criterion)), true, Some(task)) => task.criteria.push(criterion.into()),
            (None, true, Some(task)) => match bullet(content) {
                Some(criterion) => task.criteria.push(criterion.into()),
                None => push_line(&mut task.body, content),
            },
            (Some(_), true, None) | (None, _, _) => {}
        }
    }
    tasks.retain(|task| !task.title.is_empty());
    Ok(tasks)
}

fn lines(text: &str) -> Result<impl Iterator<Item = (u64, &str)>, SourceError> {
    let numbered = || (1u64..).zip(text.lines());
    if let Some((line, _)) = numbered().find(|(_, line)| line.len() > LONGEST_LINE) {
        return Err(SourceError::at(Some(Place { line, column: 1 }), "the line is longer than 1 MiB"));
    }
    if let Some((line, _)) = numbered().find(|(_, line)| line.contains('\0')) {
        return Err(SourceError::at(
            Some(Place { line, column: 1 }),
            "the file is not text: it has a NUL byte",
        ));
    }
    Ok(numbered())
}

fn bullet(content: &str) -> Option<&str> {
    ["- ", "* ", "+ "].iter().find_map(|mark| content.strip_prefix(mark)).map(str::trim)
}

fn checkbox(content: &str) -> Option<(bool, &str)> {
    let item = bullet(content)?;
    let (done, rest) = match item.get(..3)? {
        "[ ]" => (false, &item[3..]),
        "[x]" | "[X]" => (true, &item[3..]),
        _ => return None,
    };
    Some((done, rest.trim()))
}

fn label_of(heading: &str) -> Option<String> {
    let words: String =
        heading.trim().to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let label: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
    (!label.is_empty()).then(|| label.join("-"))
}

fn push_line(text: &mut String, line: &str) {
    if line.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checklist_becomes_tasks_with_criteria_body_and_label() {
        let text = "\
# The plan
Some words.
- [ ] Add a greeting
  It says hello.
  - it is friendly
  - [ ] it has a test
- [x] Clean up
* [ ] Last one
- no box
";
        let tasks = markdown(text).unwrap();
        assert_eq!(tasks.len(), 3);
        assert_eq!(tasks[0].title, "Add a greeting");
        assert_eq!(tasks[0].body, "It says hello.");
        assert_eq!(tasks[0].criteria, ["it is friendly", "it has a test"]);
        assert_eq!(tasks[0].labels, ["the-plan"]);
        assert!(tasks[1].done && !tasks[2].done);
    }

    #[test]
    fn json_lines_say_where_they_are_wrong() {
        let error = json_lines("{\"title\": \"a\"}\n\n{\"titel\": \"b\"}\n").unwrap_err();
        assert_eq!(error.place.unwrap().line, 3);
        assert!(error.message.starts_with("unknown field `titel`"), "{error}");
        let error = json_lines("{\"priority\": \"high\"}").unwrap_err();
        assert_eq!(error.message, "a task needs a `title`");
        let error = json_lines("{\"title\": \"a\0\"}").unwrap_err();
        assert_eq!(error.message, "the file is not text: it has a NUL byte");
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(- \\[ \\] |- \\[x|  |\n|#|é|\\{|\"title\":|.){0,30}") {
            let _ = markdown(&text);
            let _ = json_lines(&text);
        }
    }
}
