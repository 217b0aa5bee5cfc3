//! Which file a program's name stands for.

use camino::{Utf8Path, Utf8PathBuf};

/// The program's file: a name is looked up on `path`, a relative path from `cwd`.
pub fn find_program(program: &str, path: Option<&str>, cwd: &Utf8Path) -> Option<Utf8PathBuf> {
    let found = which::which_in(program, path, cwd).ok()?;
    Utf8PathBuf::from_path_buf(found).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_name_is_looked_up_on_the_path_of_the_agent() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        let path = root.join("tools");
        let tool = path.join("mytool");
        fs_err::create_dir(&path).unwrap();
        fs_err::write(&tool, "").unwrap();
        fs_err::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find_program("mytool", Some(path.as_str()), &root), Some(tool.clone()));
        assert_eq!(find_program("mytool", Some("/nowhere"), &root), None);
        assert_eq!(find_program("mytool", None, &root), None);
        assert_eq!(
            find_program("./tools/mytool", None, &root).map(|p| p.canonicalize_utf8().unwrap()),
            Some(tool)
        );
    }
}
