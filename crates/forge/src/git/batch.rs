//! Many objects with one call of git.

use super::{Git, GitError};

const COMMAND: [&str; 2] = ["cat-file", "--batch"];

impl Git {
    /// What is in the objects of these names (`main:README.md`), each; none for a name that stands for nothing.
    pub async fn contents(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        let asked: String = names.iter().map(|name| format!("{}\n", name.replace('\n', "?"))).collect();
        let said = self.feed(&COMMAND, asked.as_bytes()).await?;
        let mut rest = &said[..];
        names.iter().map(|_| answer(&mut rest)).collect()
    }
}

/// `OID KIND SIZE`, then the content and a line's end; or `NAME missing`.
fn answer(rest: &mut &[u8]) -> Result<Option<Vec<u8>>, GitError> {
    let said = *rest;
    let unexpected = || GitError::Unexpected {
        command: COMMAND.join(" "),
        said: String::from_utf8_lossy(said).chars().take(200).collect(),
    };
    let end = said.iter().position(|byte| *byte == b'\n').ok_or_else(unexpected)?;
    let header = String::from_utf8_lossy(&said[..end]);
    if header.ends_with(" missing") {
        *rest = &said[end + 1..];
        return Ok(None);
    }
    let size: usize = header.rsplit(' ').next().and_then(|size| size.parse().ok()).ok_or_else(unexpected)?;
    let content = said.get(end + 1..).and_then(|rest| rest.get(..size)).ok_or_else(unexpected)?;
    *rest = said.get(end + size + 2..).ok_or_else(unexpected)?;
    Ok(Some(content.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_come_one_after_another() {
        let said = b"0a blob 3\na\nb\nmain:x missing\n0b blob 0\n\n".to_vec();
        let mut rest = &said[..];
        assert_eq!(answer(&mut rest).unwrap().unwrap(), b"a\nb");
        assert_eq!(answer(&mut rest).unwrap(), None);
        assert_eq!(answer(&mut rest).unwrap().unwrap(), b"");
        assert!(rest.is_empty());
        assert_eq!(
            answer(&mut rest).unwrap_err().to_string(),
            "`git cat-file --batch` said ``, which was not expected"
        );
    }

    #[test]
    fn a_size_that_is_not_there_is_no_content() {
        for junk in ["0a blob 18446744073709551615\nx\n", "0a blob 9\nx\n", "junk\n", "no line"] {
            assert!(answer(&mut junk.as_bytes()).is_err(), "{junk}");
        }
    }
}
