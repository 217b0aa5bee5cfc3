//! Asks an agent's program what it can do, before it is given work.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::BoxFuture;
use tokio::io::AsyncReadExt;

use crate::clis::{AgentCli, KNOWN};
use crate::driver::Capabilities;
use crate::environment::Variables;
use rehearsal_process::{Launcher, SpawnError, SpawnSpec, Supervised, find_program};

/// Some CLIs need seconds for their `--help`; none needs this long.
const PATIENCE: Duration = Duration::from_secs(30);
/// A help text is not longer.
const LONGEST_ANSWER: u64 = 1 << 20;

/// A program that was found and asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Probed {
    /// What will be run: the native binary, not its launcher.
    pub program: Utf8PathBuf,
    /// What it says it can do; none for any program and for our own, which are not asked.
    pub capabilities: Option<Capabilities>,
}

/// Finds the program of a CLI on the PATH of `ours`, and asks it.
pub fn probe<'a>(
    cli: &'a AgentCli,
    program: &'a str,
    args: &'a [String],
    ours: &'a Variables,
    launcher: &'a Launcher,
    working_dir: &'a Utf8Path,
) -> BoxFuture<'a, Result<Probed, SpawnError>> {
    Box::pin(async move {
        let missing = || SpawnError::ProgramMissing { program: program.to_owned() };
        let found =
            find_program(program, ours.get("PATH").map(String::as_str), working_dir).ok_or_else(missing)?;
        // Any program is taken as it is, although it may be one of these CLIs; and our own is known.
        if cli.install.is_none() {
            let program = KNOWN.of_program(found.file_name().unwrap_or_default()).native_binary(&found);
            return Ok(Probed { program, capabilities: None });
        }
        let program = cli.native_binary(&found);
        let ask = |question: &[&str]| {
            let args = args.iter().cloned().chain(question.iter().map(|word| (*word).to_owned())).collect();
            let spec = SpawnSpec {
                program: program.to_string(),
                args,
                cwd: working_dir.to_owned(),
                env: harmless(ours),
                sandbox: None,
            };
            answer(launcher, spec)
        };
        let (version, help) =
            tokio::try_join!(ask(&["--version"]), ask(&[cli.subcommand, &["--help"]].concat()))?;
        Ok(Probed { capabilities: Some(Capabilities::parse(&help, &version)), program })
    })
}

/// The version a program reports, asked in a scratch home directory. Do not call it for an unknown program: that may do
/// anything.
pub async fn version_of(program: &str, ours: &Variables, home: &Utf8Path, temp: &Utf8Path) -> Option<String> {
    let mut env = harmless(ours);
    env.insert("HOME".to_owned(), home.to_string());
    let args = vec!["--version".to_owned()];
    let spec = SpawnSpec { program: program.to_owned(), args, cwd: temp.to_owned(), env, sandbox: None };
    let said = answer(&Launcher::default(), spec).await.ok()?;
    Capabilities::parse("", &said).version
}

/// A question needs no keys.
fn harmless(ours: &Variables) -> Variables {
    let needed = ["PATH", "HOME", "TMPDIR", "LANG", "TERM"];
    ours.iter()
        .filter(|(name, _)| needed.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// What it says on either stream. No answer in time is an empty one.
async fn answer(launcher: &Launcher, spec: SpawnSpec) -> Result<String, SpawnError> {
    let mut process = Supervised::spawn(launcher, spec).await?;
    drop(process.stdin.take());
    let (stdout, stderr) = (process.stdout.take(), process.stderr.take());
    let reading = async { tokio::join!(read(stdout), read(stderr), process.wait()) };
    let said = match tokio::time::timeout(PATIENCE, reading).await {
        Ok((stdout, stderr, _)) => stdout + "\n" + &stderr,
        Err(_) => String::new(),
    };
    Ok(said)
}

async fn read(pipe: Option<tokio::net::unix::pipe::Receiver>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What came before an error is still an answer.
        let _ = pipe.take(LONGEST_ANSWER).read_to_end(&mut bytes).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
