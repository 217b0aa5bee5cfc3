//! Which file to execute: the native binary, not the script around it.
//!
//! The launchers that npm installs add a Node process that does not pass signals on, and break when packages
//! are installed without their scripts.

use camino::{Utf8Path, Utf8PathBuf};

/// The program's file: a name is looked up on `path`, a relative path from `cwd`.
pub(super) fn find_program(program: &str, path: Option<&str>, cwd: &Utf8Path) -> Option<Utf8PathBuf> {
    let found = which::which_in(program, path, cwd).ok()?;
    Utf8PathBuf::from_path_buf(found).ok()
}

/// The native binary behind the launcher of `claude`, `codex` or `opencode`, if it is installed next to it as
/// npm does; else what was given.
pub fn native_binary(program: &Utf8Path) -> Utf8PathBuf {
    let launcher = program.canonicalize_utf8().unwrap_or_else(|_| program.to_owned());
    let candidates = program.file_name().map(platform_binaries).unwrap_or_default();
    node_module_dirs(&launcher)
        .flat_map(|modules| candidates.iter().map(move |candidate| modules.join(candidate)))
        .find(|binary| is_executable(binary))
        .unwrap_or_else(|| program.to_owned())
}

/// Where Node would look for a package, seen from this file: nearest first.
fn node_module_dirs(file: &Utf8Path) -> impl Iterator<Item = Utf8PathBuf> {
    let inside_node_modules = file.components().any(|part| part.as_str() == "node_modules");
    file.ancestors().skip(1).filter(move |_| inside_node_modules).map(|dir| {
        if dir.file_name() == Some("node_modules") { dir.to_owned() } else { dir.join("node_modules") }
    })
}

/// Paths below `node_modules` of the binaries for this machine, the likeliest first.
fn platform_binaries(name: &str) -> Vec<String> {
    let (node, rust) = match std::env::consts::ARCH {
        "x86_64" => ("x64", "x86_64"),
        "aarch64" => ("arm64", "aarch64"),
        _ => return Vec::new(),
    };
    match name {
        "claude" => {
            ["", "-musl"].map(|libc| format!("@anthropic-ai/claude-code-linux-{node}{libc}/claude")).to_vec()
        }
        "codex" => ["bin", "codex"]
            .map(|dir| format!("@openai/codex-linux-{node}/vendor/{rust}-unknown-linux-musl/{dir}/codex"))
            .to_vec(),
        "opencode" => ["", "-baseline", "-musl", "-baseline-musl"]
            .map(|variant| format!("opencode-linux-{node}{variant}/bin/opencode"))
            .to_vec(),
        _ => Vec::new(),
    }
}

fn is_executable(file: &Utf8Path) -> bool {
    file.is_file() && rustix::fs::access(file.as_std_path(), rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A tree as `npm install --prefix` makes it.
    struct Prefix {
        _dir: tempfile::TempDir,
        root: Utf8PathBuf,
    }

    impl Prefix {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
            Self { _dir: dir, root }
        }

        fn executable(&self, path: &str) -> Utf8PathBuf {
            let path = self.root.join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(&path, "").unwrap();
            fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        }

        fn bin(&self, name: &str, launcher: &str) -> Utf8PathBuf {
            let link = self.root.join("bin").join(name);
            fs_err::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(self.executable(launcher), &link).unwrap();
            link
        }
    }

    fn first_of(name: &str) -> String {
        platform_binaries(name).remove(0)
    }

    #[test]
    fn a_launcher_is_followed_to_the_platform_package_beside_it() {
        let prefix = Prefix::new();
        for (name, launcher) in [
            ("claude", "lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe"),
            ("codex", "lib/node_modules/@openai/codex/bin/codex.js"),
            ("opencode", "lib/node_modules/opencode-ai/bin/opencode"),
        ] {
            let link = prefix.bin(name, launcher);
            assert_eq!(native_binary(&link), link, "without the platform package the launcher must do");
            let native = prefix.executable(&format!("lib/node_modules/{}", first_of(name)));
            assert_eq!(native_binary(&link), native);
        }
    }

    #[test]
    fn a_nested_platform_package_is_nearer_than_a_hoisted_one() {
        let prefix = Prefix::new();
        let link = prefix.bin("codex", "lib/node_modules/@openai/codex/bin/codex.js");
        prefix.executable(&format!("lib/node_modules/{}", first_of("codex")));
        let nested =
            prefix.executable(&format!("lib/node_modules/@openai/codex/node_modules/{}", first_of("codex")));
        assert_eq!(native_binary(&link), nested);
    }

    #[test]
    fn a_platform_file_that_cannot_be_executed_is_passed_over() {
        let prefix = Prefix::new();
        let link = prefix.bin("claude", "lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe");
        let native = prefix.executable(&format!("lib/node_modules/{}", first_of("claude")));
        fs_err::remove_file(&native).unwrap();
        fs_err::create_dir(&native).unwrap();
        assert_eq!(native_binary(&link), link);
    }

    #[test]
    fn other_programs_stay_as_they_are() {
        assert_eq!(native_binary(Utf8Path::new("/bin/sh")), "/bin/sh");
        assert_eq!(native_binary(Utf8Path::new("/nowhere/claude")), "/nowhere/claude");
    }

    #[test]
    fn a_name_is_looked_up_on_the_path_of_the_agent() {
        let prefix = Prefix::new();
        let tool = prefix.executable("tools/mytool");
        let path = prefix.root.join("tools");
        let root = prefix.root.as_path();
        assert_eq!(find_program("mytool", Some(path.as_str()), root), Some(tool.clone()));
        assert_eq!(find_program("mytool", Some("/nowhere"), root), None);
        assert_eq!(find_program("mytool", None, root), None);
        assert_eq!(
            find_program("./tools/mytool", None, root).map(|p| p.canonicalize_utf8().unwrap()),
            Some(tool)
        );
    }
}
