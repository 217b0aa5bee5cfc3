//! Plays one run: does what its actions say, and says it in the chosen format.

use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{ResultFile, Tokens};

use super::actions::{Action, Crash, Span, SpawnChild, ToldResult, ToldTool, Usage};
use super::commit::{apply, commit};
use super::error::MockError;
use super::misbehave::{print, print_error};
use super::moment::RunClock;
use super::report::{ReportLine, report, write_result};
use super::stage_time::StageTime;
use super::wire::{Fault, FaultKind, Lines, Scene, Tally, Tool, ToolCall, ToolEnd, Wire};
use super::{MockEnv, draw, files, misbehave, orphan};
use crate::clis::AgentCli;
use crate::excerpt::nearest_part;

pub(super) struct Player<'a> {
    pub(super) env: &'a MockEnv,
    pub(super) worktree: Utf8PathBuf,
    pub(super) time: RunClock,
    wire: Box<dyn Wire>,
    tally: Tally,
    prompt: String,
    call: u64,
    has_finished: bool,
}

impl<'a> Player<'a> {
    pub(super) fn new(
        env: &'a MockEnv,
        cli: &AgentCli,
        foreign: &[String],
        prompt: String,
        call: u64,
    ) -> Result<Self, MockError> {
        let worktree = match env.var("TASK_WORKTREE") {
            Some(dir) => Utf8PathBuf::from(dir),
            None => current_dir()?,
        };
        let time = match StageTime::of(env) {
            Some(stage) => {
                draw::follow(&stage);
                RunClock::of_stage(stage)?
            }
            None => RunClock::starting_at(env.now),
        };
        let scene = Scene {
            prompt: prompt.clone(),
            cwd: worktree.clone(),
            time: time.clone(),
            foreign: foreign.to_vec(),
        };
        let wire = (cli.mock.wire)(scene);
        Ok(Self { env, worktree, time, wire, tally: Tally::default(), prompt, call, has_finished: false })
    }

    /// Plays it all and returns the exit status.
    pub(super) fn play(mut self, run: &[Action]) -> Result<i32, MockError> {
        self.begin()?;
        for action in run {
            if let Some(status) = self.act(action)? {
                return Ok(status);
            }
        }
        self.finish()
    }

    pub(super) fn begin(&mut self) -> Result<(), MockError> {
        self.speak(|wire, _, lines| wire.begin(lines))
    }

    pub(super) fn say(&mut self, text: &str) -> Result<(), MockError> {
        text.clone_into(&mut self.tally.final_text);
        self.speak(|wire, _, lines| wire.text(text, lines))
    }

    pub(super) fn tool(&mut self, call: &ToolCall) -> Result<(), MockError> {
        self.tally.tool_calls += 1;
        self.speak(|wire, _, lines| wire.tool(call, lines))
    }

    /// Says the final result, if that was not done yet.
    pub(super) fn finish(&mut self) -> Result<i32, MockError> {
        if !self.has_finished {
            self.has_finished = true;
            self.speak(|wire, tally, lines| wire.end(tally, lines))?;
        }
        Ok(0)
    }

    /// Does one thing; a status ends the run.
    fn act(&mut self, action: &Action) -> Result<Option<i32>, MockError> {
        match action {
            Action::Say(text) => self.say(&self.expand(text)?)?,
            Action::Write { path, content } => self.write(path, content)?,
            Action::Append { path, content } => self.append(path, content)?,
            Action::Patch { path, find, replace } => self.patch(path, find, replace)?,
            Action::Delete(path) => self.delete(path)?,
            Action::WriteOutside { path, content } => {
                self.written(self.worktree.join(self.expand_path(path)?), content)?;
            }
            Action::Apply(patch) => self.apply(patch)?,
            Action::Commit { message } => self.commit(message)?,
            Action::Run { command, status } => self.run(command, *status)?,
            Action::Tool(told) => self.call_tool(told)?,
            Action::TaskDone(ids) => ids.0.iter().try_for_each(|id| self.task_done(id))?,
            Action::TaskBlock { id, reason } => self.task_block(id, reason)?,
            Action::Progress(text) => self.progress(text)?,
            Action::Result(result) => self.result(result)?,
            Action::Usage(usage) => self.use_up(usage)?,
            Action::ExpectPrompt { contains } => self.expect_prompt(contains)?,
            Action::Linger => drop(self.finish()?),
            Action::Sleep(span) => self.time.sleep(span.0)?,
            Action::Hang => self.time.hang()?,
            Action::IgnoreSigterm => misbehave::ignore_sigterm()?,
            Action::SpawnChild(order) => self.spawn_child(order)?,
            Action::Flood { megabytes, newline } => misbehave::flood(*megabytes, *newline)?,
            Action::BrokenUtf8 => {
                misbehave::print_broken(&self.rendered("This is not \u{fffd} UTF-8."))?;
            }
            Action::BrokenJson => {
                misbehave::print_half(&self.rendered("Only half of this is said."))?;
            }
            Action::Stdout(text) => print(self.expand(text)?.as_bytes())?,
            Action::Stderr(text) => print_error(&self.expand(text)?)?,
            Action::Crash(Crash::Signal(signal)) => misbehave::die(*signal)?,
            Action::Crash(Crash::Exit(status)) => return Ok(Some(*status)),
            Action::Exit(status) => return self.finish().map(|_| Some(*status)),
            Action::RateLimit { retry_after } => {
                return self.fail(FaultKind::RateLimit, None, *retry_after).map(Some);
            }
            Action::Error { kind, message, resets_in } => {
                return self.fail(*kind, message.as_deref(), *resets_in).map(Some);
            }
        }
        Ok(None)
    }

    fn write(&mut self, path: &Utf8Path, content: &str) -> Result<(), MockError> {
        let path = self.inside(path)?;
        self.written(path, content)
    }

    fn written(&mut self, path: Utf8PathBuf, content: &str) -> Result<(), MockError> {
        let content = self.expand(content)?;
        let is_new = files::write(&path, &content)?;
        let output = format!("File written: {path}");
        self.tool(&ToolCall::fine(Tool::Write { path, content, is_new }, output))
    }

    fn append(&mut self, path: &Utf8Path, content: &str) -> Result<(), MockError> {
        let path = self.inside(path)?;
        let content = files::read_or_empty(&path)? + &self.expand(content)?;
        let is_new = files::write(&path, &content)?;
        let output = format!("File written: {path}");
        self.tool(&ToolCall::fine(Tool::Write { path, content, is_new }, output))
    }

    fn patch(&mut self, path: &Utf8Path, find: &str, replace: &str) -> Result<(), MockError> {
        let path = self.inside(path)?;
        let (find, replace) = (self.expand(find)?, self.expand(replace)?);
        files::patch(&path, &find, &replace)?;
        let output = format!("File edited: {path}");
        self.tool(&ToolCall::fine(Tool::Edit { path, find, replace }, output))
    }

    fn delete(&mut self, path: &Utf8Path) -> Result<(), MockError> {
        let path = self.inside(path)?;
        files::delete(&path)?;
        self.tool(&ToolCall::fine(Tool::Delete { path }, ""))
    }

    fn apply(&mut self, patch: &str) -> Result<(), MockError> {
        apply(&self.worktree, patch)?;
        self.ran("git apply".to_owned())
    }

    fn commit(&mut self, message: &str) -> Result<(), MockError> {
        let message = self.expand(message)?;
        commit(&self.worktree, "-A", &message, self.time.commit_date())?;
        self.ran(format!("git add -A && git commit -m '{message}'"))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "what an agent starts is in its process group and ends with it"
    )]
    fn run(&mut self, command: &str, expected: Option<i32>) -> Result<(), MockError> {
        let command = self.expand(command)?;
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(&self.worktree)
            .output()
            .map_err(|source| MockError::Io { what: format!("run `{command}`"), source })?;
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        if let Some(expected) = expected
            && output.status.code() != Some(expected)
        {
            return Err(MockError::Status {
                command,
                status: output.status.to_string(),
                expected,
                output: said,
            });
        }
        let end = if output.status.success() { ToolEnd::Fine } else { ToolEnd::Failed };
        self.tool(&ToolCall {
            tool: Tool::Shell { command },
            output: said,
            end,
            status: output.status.code().unwrap_or(-1),
        })
    }

    fn call_tool(&mut self, told: &ToldTool) -> Result<(), MockError> {
        let tool = Tool::Other { name: told.name.clone(), input: told.input.clone() };
        self.tool(&ToolCall { tool, output: self.expand(&told.output)?, end: told.end, status: 1 })
    }

    fn use_up(&mut self, usage: &Usage) -> Result<(), MockError> {
        let Usage { input, output, cached, cost_usd } = *usage;
        if cached > input {
            return Err(MockError::Value {
                name: "cached",
                value: cached.to_string(),
                expected: "no more than `input`, of which it is a part",
            });
        }
        self.tally.tokens += Tokens { input, cached, output };
        self.tally.cost_usd += cost_usd;
        Ok(())
    }

    /// Is seen to run a command, the effect of which is there already.
    pub(super) fn ran(&mut self, command: String) -> Result<(), MockError> {
        self.tool(&ToolCall::fine(Tool::Shell { command }, ""))
    }

    fn task_done(&mut self, id: &str) -> Result<(), MockError> {
        let id = self.task_id(id)?;
        let reason = Some("as scripted".to_owned());
        report(self.env, &ReportLine::TaskDone { id: id.clone(), reason })?;
        self.ran(format!("rehearsal task done {id}"))
    }

    fn task_block(&mut self, id: &str, reason: &str) -> Result<(), MockError> {
        let (id, reason) = (self.task_id(id)?, self.expand(reason)?);
        report(self.env, &ReportLine::TaskBlocked { id: id.clone(), reason: reason.clone() })?;
        self.ran(format!("rehearsal task block {id} --reason '{reason}'"))
    }

    fn progress(&mut self, text: &str) -> Result<(), MockError> {
        let text = self.expand(text)?;
        report(self.env, &ReportLine::Progress { text: text.clone() })?;
        self.ran(format!("rehearsal session progress '{text}'"))
    }

    fn result(&mut self, told: &ToldResult) -> Result<(), MockError> {
        let expand = |text: &Option<String>| text.as_ref().map(|text| self.expand(text)).transpose();
        let result = ResultFile {
            outcome: told.outcome,
            decision: told.decision,
            comment: expand(&told.comment)?,
            reason: expand(&told.reason)?,
            ..ResultFile::default()
        };
        write_result(self.env, &result)
    }

    fn expect_prompt(&self, contains: &str) -> Result<(), MockError> {
        let expected = self.expand(contains)?;
        if self.prompt.contains(&expected) {
            return Ok(());
        }
        let nearest = nearest_part(&self.prompt, &expected);
        Err(MockError::Prompt { expected, nearest })
    }

    fn fail(&mut self, kind: FaultKind, message: Option<&str>, wait: Option<Span>) -> Result<i32, MockError> {
        if !self.wire.knows(kind) {
            return Err(MockError::NoSuchEnd { agent: self.wire.agent(), kind: kind.name() });
        }
        let message = message.map(|message| self.expand(message)).transpose()?;
        let fault = Fault { kind, message, wait: wait.map(|span| span.0) };
        let mut status = 1;
        self.speak(|wire, tally, lines| status = wire.fail(&fault, tally, lines))?;
        Ok(status)
    }

    fn spawn_child(&mut self, order: &SpawnChild) -> Result<(), MockError> {
        let pid = orphan::spawn(order)?;
        if let Some(path) = &order.pid_file {
            files::write(&self.worktree.join(path), &pid.to_string())?;
        }
        Ok(())
    }

    /// What saying a text would print.
    fn rendered(&mut self, text: &str) -> String {
        let mut lines = Lines::default();
        self.wire.text(text, &mut lines);
        lines.stdout
    }

    fn speak(&mut self, say: impl FnOnce(&mut dyn Wire, &Tally, &mut Lines)) -> Result<(), MockError> {
        let mut lines = Lines::default();
        say(self.wire.as_mut(), &self.tally, &mut lines);
        print_error(&lines.stderr)?;
        print(lines.stdout.as_bytes())
    }

    fn expand(&self, text: &str) -> Result<String, MockError> {
        let text = text.replace("{iteration}", &self.call.to_string());
        if text.contains("{task}") { Ok(text.replace("{task}", &self.task()?)) } else { Ok(text) }
    }

    fn expand_path(&self, path: &Utf8Path) -> Result<Utf8PathBuf, MockError> {
        self.expand(path.as_str()).map(Utf8PathBuf::from)
    }

    fn inside(&self, path: &Utf8Path) -> Result<Utf8PathBuf, MockError> {
        files::inside(&self.worktree, &self.expand_path(path)?)
    }

    fn task_id(&self, id: &str) -> Result<String, MockError> {
        if id == "current" { self.task() } else { self.expand(id) }
    }

    fn task(&self) -> Result<String, MockError> {
        let id = self.env.var("REHEARSAL_TASK_ID").or_else(|| self.env.var("TASK_ID"));
        id.map(str::to_owned).ok_or(MockError::Variable { name: "REHEARSAL_TASK_ID" })
    }
}

fn current_dir() -> Result<Utf8PathBuf, MockError> {
    let failed = |source| MockError::Io { what: "find the working directory".into(), source };
    let dir = std::env::current_dir().map_err(failed)?;
    Utf8PathBuf::try_from(dir).map_err(|error| failed(error.into_io_error()))
}
