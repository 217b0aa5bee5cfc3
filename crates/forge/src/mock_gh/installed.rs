//! The stand-in as a program in a directory of its own, for whoever lets others call it as `gh`.

use std::io::{self, Read as _};

use camino::{Utf8Path, Utf8PathBuf};

use super::MockState;

/// `gh` in a directory, what it knows and what it was called with.
#[derive(Debug, Clone)]
pub struct InstalledGh {
    root: Utf8PathBuf,
}

impl InstalledGh {
    /// Puts it below a directory: our own program under another name, which knows this.
    pub fn install(root: &Utf8Path, program: &Utf8Path, state: &MockState) -> io::Result<Self> {
        let this = Self { root: root.to_owned() };
        fs_err::create_dir_all(this.directory())?;
        fs_err::os::unix::fs::symlink(program, this.program())?;
        fs_err::write(this.state_file(), serde_json::to_vec(state).map_err(io::Error::other)?)?;
        Ok(this)
    }

    /// Where it is, for a PATH.
    pub fn directory(&self) -> Utf8PathBuf {
        self.root.join("bin")
    }

    /// The program.
    pub fn program(&self) -> Utf8PathBuf {
        self.directory().join("gh")
    }

    /// What whoever calls it needs in the environment.
    pub fn variables(&self) -> Vec<(String, String)> {
        vec![
            ("GH_STATE_FILE".to_owned(), self.state_file().to_string()),
            ("GH_MOCK_LOG".to_owned(), self.log_file().to_string()),
        ]
    }

    /// What it knows now.
    pub fn state(&self) -> io::Result<MockState> {
        match read(&self.state_file())? {
            None => Ok(MockState::default()),
            Some(text) => serde_json::from_str(&text).map_err(io::Error::other),
        }
    }

    /// Its calls, without their fields.
    pub fn calls(&self) -> io::Result<Vec<String>> {
        #[derive(serde::Deserialize)]
        struct Line {
            args: Vec<String>,
        }
        let text = read(&self.log_file())?.unwrap_or_default();
        let call = |line: &str| -> io::Result<String> {
            let line: Line = serde_json::from_str(line).map_err(io::Error::other)?;
            Ok(line.args.join(" "))
        };
        text.lines().map(call).collect()
    }

    fn state_file(&self) -> Utf8PathBuf {
        self.root.join("gh.json")
    }

    fn log_file(&self) -> Utf8PathBuf {
        self.root.join("gh.log")
    }
}

/// Whoever calls it can write to its files: no more is read than any number of honest calls leaves.
const LONGEST: u64 = 16 << 20;

fn read(path: &Utf8Path) -> io::Result<Option<String>> {
    let file = match fs_err::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut text = String::new();
    file.take(LONGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(io::Error::other(format!("`{path}` is larger than {LONGEST} bytes")));
    }
    Ok(Some(text))
}
