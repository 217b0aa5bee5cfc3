//! An agent's command on a stage, in a home of its own.

use std::net::SocketAddr;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::clis::{AgentCli, Endpoint, KNOWN, Retries, StageModel};
use rehearsal_agent::environment::{Variables, tool_environment};
use rehearsal_agent::probe::version_of;
use rehearsal_llm::cassette::{Place, Rule};
use rehearsal_process::{Launcher, SpawnSpec, Supervised, find_program};

use super::StageError;
use crate::caller::Caller;
use crate::places::scratch;

/// Whose keys the agent gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeysOf {
    /// Keys that open nothing.
    Nobody,
    /// The user's, for a vendor who asks for them.
    User,
}

/// A command, and the scratch home in which it runs.
pub struct Performance {
    /// Which agent it is.
    pub agent: String,
    program: String,
    arguments: Vec<String>,
    caller: Caller,
    home: Utf8PathBuf,
    temp: Utf8PathBuf,
    /// Deleted when it is over.
    _scratch: tempfile::TempDir,
}

impl Performance {
    /// In the caller's directory. The program's name says which agent it is, unless that is given.
    pub fn prepare(
        program: &str,
        arguments: &[String],
        agent: Option<&str>,
        caller: Caller,
    ) -> Result<Self, StageError> {
        let name = Utf8Path::new(program).file_name().unwrap_or(program);
        let (root, scratch) = scratch("rehearsal-")?;
        let (home, temp) = (root.join("home"), root.join("tmp"));
        // codex refuses a home below the directory for temporary files: they stand side by side.
        fs_err::create_dir(&home)?;
        fs_err::create_dir(&temp)?;
        write_git_settings(&home)?;
        Ok(Self {
            agent: agent.unwrap_or(name).to_owned(),
            program: program.to_owned(),
            arguments: arguments.to_vec(),
            caller,
            home,
            temp,
            _scratch: scratch,
        })
    }

    /// What is known of the agent's CLI.
    pub fn cli(&self) -> &'static AgentCli {
        KNOWN.of_program(&self.agent)
    }

    /// What is normalised in its requests.
    pub fn rules(&self) -> Vec<Rule> {
        Rule::for_client(self.cli().requests.as_ref())
    }

    /// The directories that differ from run to run, under all of their names.
    pub fn place(&self) -> Place {
        Place::resolved(self.caller.directory.as_str(), self.home.as_str(), self.temp.as_str())
    }

    /// Starts it: it asks the stage at this address and nobody else.
    pub async fn start(&self, stage: SocketAddr, keys: KeysOf) -> Result<Supervised, StageError> {
        let (env, args) = self.set_up(stage, keys)?;
        let path = env.get("PATH").map(String::as_str);
        let directory = &self.caller.directory;
        let native =
            find_program(&self.program, path, directory).map(|found| self.cli().native_binary(&found));
        let program = native.map_or_else(|| self.program.clone(), String::from);
        let spec = SpawnSpec { program, args, cwd: directory.clone(), env, sandbox: None };
        Ok(Supervised::spawn(&Launcher::default(), spec).await?)
    }

    fn set_up(&self, stage: SocketAddr, keys: KeysOf) -> Result<(Variables, Vec<String>), StageError> {
        let ours = &self.caller.environment;
        let mut env = tool_environment(ours);
        env.retain(|name, _| !name.starts_with("XDG_") && !name.to_ascii_lowercase().ends_with("_proxy"));
        env.insert("HOME".to_owned(), self.home.to_string());
        env.insert("TMPDIR".to_owned(), self.temp.to_string());
        let url = format!("http://{stage}");
        let endpoint = Endpoint { url: &url, model: StageModel::Any, retries: Retries::Default };
        let mut on_stage = self.cli().on_stage(endpoint);
        if keys == KeysOf::User {
            self.cli().give_keys(&mut on_stage, ours);
        }
        on_stage.write_files(&self.home)?;
        env.extend(on_stage.environment());
        let mut arguments = on_stage.arguments;
        arguments.extend(self.arguments.iter().cloned());
        Ok((env, arguments))
    }

    /// The version that a known agent CLI reports.
    pub async fn version(&self) -> Option<String> {
        self.cli().install?;
        version_of(&self.program, &self.caller.environment, &self.home, &self.temp).await
    }
}

/// Who commits, and what git does not tell: agents look at its status, in which a cassette that was just recorded would
/// stand at the replay, and did not at the recording.
fn write_git_settings(home: &Utf8Path) -> std::io::Result<()> {
    fs_err::write(home.join(".gitconfig"), "[user]\n\tname = Rehearsal\n\temail = rehearsal@localhost\n")?;
    fs_err::create_dir_all(home.join(".config/git"))?;
    fs_err::write(home.join(".config/git/ignore"), "/.rehearsal/cassettes/\n")
}
