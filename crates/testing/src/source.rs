//! One line of a project's source, to be quoted.

use std::io::{BufRead, BufReader, Read};

use camino::Utf8Path;

/// Lines further down than this are in no file that people write.
const FURTHEST: u64 = 4 << 20;

/// A line of a file below the project's root, counted from 1; none if there is none, or if the name leads out of the project.
/// Names come from test output, which may name anything.
pub fn source_line(root: &Utf8Path, file: &str, line: u32) -> Option<String> {
    let root = root.canonicalize_utf8().ok()?;
    let path = root.join(file).canonicalize_utf8().ok()?;
    if !path.starts_with(&root) {
        return None;
    }
    let file = crate::regular_file::open(&path).ok()?;
    let lines = BufReader::new(file.take(FURTHEST)).lines();
    let wanted = usize::try_from(line).ok()?.checked_sub(1)?;
    lines.map_while(Result::ok).nth(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_from_the_project_and_from_nowhere_else() {
        let directory = tempfile::tempdir().unwrap();
        let outside = Utf8Path::from_path(directory.path()).unwrap();
        let root = outside.join("shop");
        fs_err::create_dir(&root).unwrap();
        fs_err::write(outside.join("secret.py"), "secret\n").unwrap();
        fs_err::write(root.join("cart.py"), "one\ntwo\n").unwrap();
        std::os::unix::fs::symlink("../secret.py", root.join("link.py")).unwrap();
        assert_eq!(source_line(&root, "cart.py", 2).as_deref(), Some("two"));
        assert_eq!(source_line(&root, "cart.py", 0), None);
        assert_eq!(source_line(&root, "cart.py", 9), None);
        assert_eq!(source_line(&root, "../secret.py", 1), None);
        assert_eq!(source_line(&root, "link.py", 1), None);
        assert_eq!(source_line(&root, outside.join("secret.py").as_str(), 1), None);
    }
}
