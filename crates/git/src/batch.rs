//! Many objects with one call of git.

use crate::{Git, GitError, Oid};

const COMMAND: [&str; 2] = ["cat-file", "--batch"];

impl Git {
    /// What is in the objects of these names (`main:README.md`), each; none for a name that stands for nothing.
    pub async fn contents(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        let found = self.objects(names).await?;
        Ok(found.into_iter().map(|object| object.map(|(_, content)| content)).collect())
    }

    /// The object of a name, and what is in it.
    pub async fn object(&self, name: &str) -> Result<Option<(Oid, Vec<u8>)>, GitError> {
        Ok(self.objects(&[name.to_owned()]).await?.pop().flatten())
    }

    async fn objects(&self, names: &[String]) -> Result<Vec<Object>, GitError> {
        let asked: String = names.iter().map(|name| format!("{}\n", name.replace('\n', "?"))).collect();
        let said = self.feed(&COMMAND, asked.as_bytes()).await?;
        let mut rest = &said[..];
        names.iter().map(|_| answer(&mut rest)).collect()
    }
}

type Object = Option<(Oid, Vec<u8>)>;

/// `OID KIND SIZE`, then the content and a line's end; or `NAME missing`.
fn answer(rest: &mut &[u8]) -> Result<Object, GitError> {
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
    let (oid, size) = (header.split(' ').next(), header.rsplit(' ').next());
    let oid = oid.and_then(|oid| Oid::new(oid).ok()).ok_or_else(unexpected)?;
    let size: usize = size.and_then(|size| size.parse().ok()).ok_or_else(unexpected)?;
    let content = said.get(end + 1..).and_then(|rest| rest.get(..size)).ok_or_else(unexpected)?;
    *rest = said.get(end + 1 + size + 1..).ok_or_else(unexpected)?;
    Ok(Some((oid, content.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_come_one_after_another() {
        let oid = Oid::new(&"a".repeat(40)).unwrap();
        let said = format!("{oid} blob 3\na\nb\nmain:x missing\n{oid} blob 0\n\n");
        let mut rest = said.as_bytes();
        assert_eq!(answer(&mut rest).unwrap(), Some((oid.clone(), b"a\nb".to_vec())));
        assert_eq!(answer(&mut rest).unwrap(), None);
        assert_eq!(answer(&mut rest).unwrap(), Some((oid, Vec::new())));
        assert!(rest.is_empty());
        assert_eq!(
            answer(&mut rest).unwrap_err().to_string(),
            "`git cat-file --batch` said ``, which was not expected"
        );
    }

    #[test]
    fn a_size_that_is_not_there_is_no_content() {
        let oid = "a".repeat(40);
        let sizes = [usize::MAX.to_string(), (usize::MAX - 60).to_string(), "9".to_owned(), "-1".to_owned()];
        let junk = sizes.map(|size| format!("{oid} blob {size}\nx\n")).into_iter();
        for junk in junk.chain(["junk\n", "no line", "0a blob 1\nx\n"].map(str::to_owned)) {
            assert!(answer(&mut junk.as_bytes()).is_err(), "{junk}");
        }
    }
}
