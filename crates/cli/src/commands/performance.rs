//! An agent's command on a stage: in a home of its own, with a limit, and with nothing left of it afterwards.

use std::io::{IsTerminal as _, Read as _};
use std::net::SocketAddr;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use rehearsal_agent::clis::{AgentCli, Endpoint, KNOWN, Retries, StageModel};
use rehearsal_agent::environment::{Variables, tool_environment};
use rehearsal_agent::probe::version_of;
use rehearsal_core::config::HumanDuration;
use rehearsal_llm::cassette::{Place, Rule};
use rehearsal_process::{Ended, Launcher, SpawnError, SpawnSpec, Supervised, find_program};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::context::{Context, variables};
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Ui;

/// How long a process that is asked to end may take.
const GRACE: Duration = Duration::from_secs(5);

/// A command to run on the stage.
#[derive(Debug, Args)]
pub(crate) struct CommandArgs {
    #[arg(long, value_name = "AGENT", help = agent_help())]
    agent: Option<String>,
    /// How long it may take
    #[arg(long, value_name = "TIME", default_value = "30m")]
    timeout: HumanDuration,
    /// The agent's command line; its standard input is ours
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn agent_help() -> String {
    let names: Vec<&str> = KNOWN.foreign().collect();
    format!("Which agent it is, if its name does not say it: {}", names.join(", "))
}

/// Whose keys the agent gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeysOf {
    /// Keys that open nothing.
    Nobody,
    /// The user's, for a vendor who asks for them.
    User,
}

/// What the agent reads.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// Our own standard input.
    Ours,
    /// This.
    Given(Vec<u8>),
}

/// What becomes of what the agent prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printed {
    Shown,
    Dropped,
}

/// A command, and the scratch home in which it runs.
#[derive(Debug)]
pub(crate) struct Performance {
    program: String,
    arguments: Vec<String>,
    pub(crate) agent: String,
    limit: Duration,
    directory: Utf8PathBuf,
    home: Utf8PathBuf,
    temp: Utf8PathBuf,
    /// Deleted when it is over.
    _scratch: tempfile::TempDir,
}

impl Performance {
    pub(crate) fn prepare(args: &CommandArgs, directory: &Utf8Path) -> Result<Self, CliError> {
        let Some((program, arguments)) = args.command.split_first() else {
            return Err(CliError::usage("there is no command to run"));
        };
        let name = Utf8Path::new(program).file_name().unwrap_or(program);
        let scratch = tempfile::Builder::new().prefix("rehearsal-").tempdir()?;
        let root = Utf8PathBuf::from_path_buf(scratch.path().canonicalize()?)
            .map_err(|path| CliError::usage(format!("`{}` is not UTF-8", path.display())))?;
        let (home, temp) = (root.join("home"), root.join("tmp"));
        // codex refuses a home below the directory for temporary files: they stand side by side.
        fs_err::create_dir(&home)?;
        fs_err::create_dir(&temp)?;
        write_git_settings(&home)?;
        Ok(Self {
            program: program.clone(),
            arguments: arguments.to_vec(),
            agent: args.agent.clone().unwrap_or_else(|| name.to_owned()),
            limit: args.timeout.0,
            directory: directory.to_owned(),
            home,
            temp,
            _scratch: scratch,
        })
    }

    pub(crate) fn cli(&self) -> &'static AgentCli {
        KNOWN.of_program(&self.agent)
    }

    /// What is normalised in its requests.
    pub(crate) fn rules(&self) -> Vec<Rule> {
        Rule::for_client(self.cli().requests.as_ref())
    }

    /// The directories that differ from run to run, under all of their names.
    pub(crate) fn place(&self) -> Place {
        Place::resolved(self.directory.as_str(), self.home.as_str(), self.temp.as_str())
    }

    /// Runs it to its end.
    pub(crate) async fn run(
        &self,
        address: SocketAddr,
        keys: KeysOf,
        input: Input,
        printed: Printed,
        ui: Ui,
    ) -> Result<Ended, CliError> {
        let (env, arguments) = self.set_up(address, keys)?;
        let path = env.get("PATH").map(String::as_str);
        let native =
            find_program(&self.program, path, &self.directory).map(|found| self.cli().native_binary(&found));
        let spec = SpawnSpec {
            program: native.map_or_else(|| self.program.clone(), String::from),
            args: arguments,
            cwd: self.directory.clone(),
            env,
            sandbox: None,
        };
        let mut process =
            Supervised::spawn(&Launcher::default(), spec).await.map_err(|error| cannot_start(&error))?;
        let pumps = [
            pump(process.stdout.take(), printed, if ui.json { Sink::Stderr } else { Sink::Stdout }),
            pump(process.stderr.take(), printed, Sink::Stderr),
        ];
        let feeding = process.stdin.take().map(|stdin| tokio::spawn(feed(stdin, input)));
        let ended = wait(&mut process, self.limit).await;
        if let Some(feeding) = feeding {
            feeding.abort();
        }
        for pump in pumps {
            // A pump that failed has nobody to print to.
            let _ = pump.await;
        }
        ended
    }

    /// The environment and the arguments with which it asks the stage and nobody else.
    fn set_up(&self, address: SocketAddr, keys: KeysOf) -> Result<(Variables, Vec<String>), CliError> {
        let ours = variables();
        let mut env = tool_environment(&ours);
        env.retain(|name, _| !name.starts_with("XDG_") && !name.to_ascii_lowercase().ends_with("_proxy"));
        env.insert("HOME".to_owned(), self.home.to_string());
        env.insert("TMPDIR".to_owned(), self.temp.to_string());
        let url = format!("http://{address}");
        let endpoint = Endpoint { url: &url, model: StageModel::Any, retries: Retries::Default };
        let mut on_stage = self.cli().on_stage(endpoint);
        if keys == KeysOf::User {
            self.cli().give_keys(&mut on_stage, &ours);
        }
        on_stage.write_files(&self.home)?;
        env.extend(on_stage.environment());
        let mut arguments = on_stage.arguments;
        arguments.extend(self.arguments.iter().cloned());
        Ok((env, arguments))
    }

    /// The version that a known agent CLI reports.
    pub(crate) async fn version(&self) -> Option<String> {
        self.cli().install?;
        version_of(&self.program, &variables(), &self.home, &self.temp).await
    }
}

/// Who commits, and what git does not tell: agents look at its status, in which a cassette that was just recorded would
/// stand at the replay, and did not at the recording.
fn write_git_settings(home: &Utf8Path) -> Result<(), CliError> {
    fs_err::write(home.join(".gitconfig"), "[user]\n\tname = Rehearsal\n\temail = rehearsal@localhost\n")?;
    fs_err::create_dir_all(home.join(".config/git"))?;
    fs_err::write(home.join(".config/git/ignore"), "/.rehearsal/cassettes/\n")?;
    Ok(())
}

fn cannot_start(error: &SpawnError) -> CliError {
    CliError::of(Exit::Usage, error).hint("the command stands after `--`: `… -- claude -p 'Say hello'`")
}

async fn wait(process: &mut Supervised, limit: Duration) -> Result<Ended, CliError> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let stopped = tokio::select! {
        ended = process.wait() => return Ok(ended),
        _ = interrupt.recv() => CliError::new(Exit::Interrupted, "interrupted"),
        _ = terminate.recv() => CliError::new(Exit::Terminated, "terminated"),
        () = tokio::time::sleep(limit) => {
            CliError::new(Exit::Timeout, format!("the command did not end within {}", HumanDuration(limit)))
                .hint("`--timeout TIME` gives it longer")
        }
    };
    process.terminate(GRACE).await;
    process.wait().await;
    Err(stopped)
}

#[derive(Debug, Clone, Copy)]
enum Sink {
    Stdout,
    Stderr,
}

fn pump(from: Option<pipe::Receiver>, printed: Printed, sink: Sink) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        let Some(mut from) = from else { return };
        let mut buffer = vec![0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            if printed == Printed::Shown {
                match sink {
                    Sink::Stdout => crate::ui::raw_out(&buffer[..length]),
                    Sink::Stderr => crate::ui::raw_err(&buffer[..length]),
                }
            }
        }
    })
}

async fn feed(mut stdin: pipe::Sender, input: Input) {
    match input {
        Input::Given(bytes) => {
            // A program that does not read is none of our business.
            let _ = stdin.write_all(&bytes).await;
        }
        Input::Ours => {
            let mut pieces = our_input();
            while let Some(piece) = pieces.recv().await {
                if stdin.write_all(&piece).await.is_err() {
                    break;
                }
            }
        }
    }
}

/// What comes in on our standard input. A terminal is not read: nobody is to sit at it.
pub(crate) fn our_input() -> mpsc::Receiver<Vec<u8>> {
    let (sender, pieces) = mpsc::channel::<Vec<u8>>(4);
    if std::io::stdin().is_terminal() {
        return pieces;
    }
    // A thread of its own, which is left alone when the command ends first: a read cannot be called off.
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut buffer = vec![0; 16 << 10];
        while let Ok(length @ 1..) = input.read(&mut buffer) {
            if sender.blocking_send(buffer[..length].to_vec()).is_err() {
                break;
            }
        }
    });
    pieces
}

/// The text of a script, for a stage that plays it.
pub(crate) fn scripted(
    context: &Context,
    script: &Utf8Path,
) -> Result<rehearsal_stage::ScriptedPlay, CliError> {
    let text = rehearsal_app::file::read_text(&context.directory.join(script))?
        .ok_or_else(|| CliError::usage(format!("there is no file `{script}`")))?;
    let script_read =
        rehearsal_stage::Script::parse(&text).map_err(|error| CliError::in_file(error, script.as_str()))?;
    Ok(rehearsal_stage::ScriptedPlay::new(script_read, &KNOWN.model_clients()))
}
