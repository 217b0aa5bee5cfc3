//! The native binary behind a CLI's launcher.
//!
//! The launchers that npm installs add a Node process that does not pass signals on, and break when packages
//! are installed without their scripts.

use camino::{Utf8Path, Utf8PathBuf};

use super::AgentCli;

impl AgentCli {
    /// The native binary behind this launcher, if it is installed next to it as npm does; else what was given. A program of
    /// another name is not its launcher.
    pub fn native_binary(&self, program: &Utf8Path) -> Utf8PathBuf {
        if program.file_name() != Some(self.name) {
            return program.to_owned();
        }
        let launcher = program.canonicalize_utf8().unwrap_or_else(|_| program.to_owned());
        node_module_dirs(&launcher)
            .flat_map(|modules| self.platform_binaries().map(move |binary| modules.join(binary)))
            .find(|binary| is_executable(binary))
            .unwrap_or_else(|| program.to_owned())
    }

    /// Paths below `node_modules` of the binaries for this machine, the likeliest first.
    fn platform_binaries(&self) -> impl Iterator<Item = String> {
        let spelled = match std::env::consts::ARCH {
            "x86_64" => Some(("x64", "x86_64")),
            "aarch64" => Some(("arm64", "aarch64")),
            _ => None,
        };
        spelled.into_iter().flat_map(|(node, rust)| {
            self.native_binaries.iter().map(move |path| path.replace("{node}", node).replace("{rust}", rust))
        })
    }
}

/// Where Node would look for a package, seen from this file: nearest first.
fn node_module_dirs(file: &Utf8Path) -> impl Iterator<Item = Utf8PathBuf> {
    let inside_node_modules = file.components().any(|part| part.as_str() == "node_modules");
    file.ancestors().skip(1).filter(move |_| inside_node_modules).map(|dir| {
        if dir.file_name() == Some("node_modules") { dir.to_owned() } else { dir.join("node_modules") }
    })
}

fn is_executable(file: &Utf8Path) -> bool {
    file.is_file() && rustix::fs::access(file.as_std_path(), rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::super::KNOWN;
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
        cli(name).platform_binaries().next().unwrap()
    }

    fn cli(name: &str) -> &'static AgentCli {
        KNOWN.of_program(name)
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
            assert_eq!(
                cli(name).native_binary(&link),
                link,
                "without the platform package the launcher must do"
            );
            let native = prefix.executable(&format!("lib/node_modules/{}", first_of(name)));
            assert_eq!(cli(name).native_binary(&link), native);
        }
    }

    #[test]
    fn a_nested_platform_package_is_nearer_than_a_hoisted_one() {
        let prefix = Prefix::new();
        let link = prefix.bin("codex", "lib/node_modules/@openai/codex/bin/codex.js");
        prefix.executable(&format!("lib/node_modules/{}", first_of("codex")));
        let nested =
            prefix.executable(&format!("lib/node_modules/@openai/codex/node_modules/{}", first_of("codex")));
        assert_eq!(cli("codex").native_binary(&link), nested);
    }

    #[test]
    fn a_platform_file_that_cannot_be_executed_is_passed_over() {
        let prefix = Prefix::new();
        let link = prefix.bin("claude", "lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe");
        let native = prefix.executable(&format!("lib/node_modules/{}", first_of("claude")));
        fs_err::remove_file(&native).unwrap();
        fs_err::create_dir(&native).unwrap();
        assert_eq!(cli("claude").native_binary(&link), link);
    }

    #[test]
    fn other_programs_stay_as_they_are() {
        assert_eq!(cli("sh").native_binary(Utf8Path::new("/bin/sh")), "/bin/sh");
        assert_eq!(cli("claude").native_binary(Utf8Path::new("/nowhere/claude")), "/nowhere/claude");
        let prefix = Prefix::new();
        let wrapper = prefix.bin("my-claude", "lib/node_modules/my-claude/run.sh");
        prefix.executable(&format!("lib/node_modules/{}", first_of("claude")));
        assert_eq!(cli("claude").native_binary(&wrapper), wrapper);
    }
}
