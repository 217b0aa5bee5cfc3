//! Someone else's commit as input of `git fast-import`.

use std::io::Write as _;

use camino::Utf8Path;
use rehearsal_core::Timestamp;

use crate::environment::ScenarioError;
use crate::repository::{OUTSIDER, check_inside, is_program};
use crate::scenario::ForeignCommit;

/// The input that adds the commit to an existing branch.
pub(crate) fn import_of(
    commit: &ForeignCommit,
    branch: &str,
    now: Timestamp,
) -> Result<Vec<u8>, ScenarioError> {
    let mut import = Vec::new();
    writeln!(import, "commit refs/heads/{branch}")?;
    writeln!(import, "committer {OUTSIDER} <someone@localhost> {} +0000", now.0 / 1000)?;
    data(&mut import, &format!("{}\n", commit.message.trim_end()))?;
    writeln!(import, "from refs/heads/{branch}^0")?;
    for (path, text) in &commit.files {
        check_inside(path)?;
        let mode = if is_program(text) { "100755" } else { "100644" };
        writeln!(import, "M {mode} inline {}", quoted(path))?;
        data(&mut import, text)?;
    }
    writeln!(import, "done")?;
    Ok(import)
}

fn data(import: &mut Vec<u8>, text: &str) -> std::io::Result<()> {
    writeln!(import, "data {}\n{text}", text.len())
}

fn quoted(path: &Utf8Path) -> String {
    let path = path.as_str().replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    format!("\"{path}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_of_files_stay_names() {
        assert_eq!(quoted(Utf8Path::new("a \"b\"\n\\c")), r#""a \"b\"\n\\c""#);
    }
}
