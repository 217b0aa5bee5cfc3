//! Commands of the user that see every call of a tool: one before, which can refuse it, and one after.
//!
//! They run where `bash` would run for the role, since what they are may lie in the worktree, where a model can change it.

use std::sync::Arc;

use globset::{Glob, GlobSet, GlobSetBuilder};
use rehearsal_core::config::HumanDuration;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::limits::{HOOK_SAYS, HOOK_TAKES, MAX_HOOK_VALUE};
use crate::shell::{Order, RanEnd, Shell, Streams};

/// Commands around the calls of tools.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Hooks {
    /// Before a call. Exit code 0 lets it happen, and 2 refuses it: the model reads what the command wrote to standard error. A hook that
    /// fails in any other way, or takes too long, refuses it as well.
    pub pre_tool: Vec<Hook>,
    /// After a call. If one fails, the model reads that with the result.
    pub post_tool: Vec<Hook>,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// Which tools: names with `*`, separated by `|`. Left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// For bash, in the role's sandbox. It sees the variables `REHEARSAL_HOOK_EVENT` (`pre_tool` or `post_tool`), `REHEARSAL_TOOL_NAME`,
    /// `REHEARSAL_TOOL_ARGUMENTS` (JSON), after a call `REHEARSAL_TOOL_RESULT` and `REHEARSAL_TOOL_FAILED` (`true` or `false`), and the
    /// role in `AGENT_TYPE`.
    pub command: String,
    /// How long it may take; a minute if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<HumanDuration>,
}

/// A matcher that is none.
#[derive(Debug, thiserror::Error)]
#[error("`{matcher}` does not say which tools a hook is for")]
pub struct MatcherError {
    /// As it was written.
    pub matcher: String,
    /// What is wrong with it.
    source: globset::Error,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct HookedCall<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a str,
}

/// What hooks before a call came to.
#[derive(Debug)]
pub(crate) enum Before {
    Allowed,
    /// Why not.
    Refused(String),
}

#[derive(Debug)]
pub(crate) struct HookRunner {
    before: Vec<Prepared>,
    after: Vec<Prepared>,
    shell: Arc<Shell>,
    role: String,
}

#[derive(Debug)]
struct Prepared {
    hook: Hook,
    tools: Option<GlobSet>,
}

impl HookRunner {
    pub(crate) fn new(hooks: &Hooks, shell: Arc<Shell>, role: &str) -> Result<Self, MatcherError> {
        let prepared = |hooks: &[Hook]| hooks.iter().map(Prepared::new).collect::<Result<Vec<_>, _>>();
        let (before, after) = (prepared(&hooks.pre_tool)?, prepared(&hooks.post_tool)?);
        Ok(Self { before, after, shell, role: role.to_owned() })
    }

    /// All that fit, in order, until one refuses.
    pub(crate) async fn before(&self, call: HookedCall<'_>, cancel: &CancellationToken) -> Before {
        for hook in self.before.iter().filter(|hook| hook.fits(call.tool)) {
            if cancel.is_cancelled() {
                break;
            }
            // A hook that sees only a part of the arguments could be got around by making them long.
            if call.arguments.len() > MAX_HOOK_VALUE {
                return Before::Refused(format!(
                    "arguments of {} bytes cannot be shown to a hook, which wants to see them; at most {MAX_HOOK_VALUE} can",
                    call.arguments.len()
                ));
            }
            match self.run(hook, "pre_tool", call, Vec::new(), cancel).await {
                Said::Well => {}
                // A guard that cannot do its work lets nothing pass.
                Said::Refused(why) | Said::Badly(why) => return Before::Refused(why),
            }
        }
        Before::Allowed
    }

    /// All that fit, in order; what is to be said of them.
    pub(crate) async fn after(
        &self,
        call: HookedCall<'_>,
        result: &str,
        failed: bool,
        cancel: &CancellationToken,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        for hook in self.after.iter().filter(|hook| hook.fits(call.tool)) {
            if cancel.is_cancelled() {
                break;
            }
            let result = value(result);
            let env = vec![
                ("REHEARSAL_TOOL_RESULT".to_owned(), result.clone()),
                ("REHEARSAL_TOOL_FAILED".to_owned(), failed.to_string()),
                ("TOOL_RESULT".to_owned(), result),
            ];
            match self.run(hook, "post_tool", call, env, cancel).await {
                Said::Well => {}
                Said::Refused(what) | Said::Badly(what) => notes.push(what),
            }
        }
        notes
    }

    async fn run(
        &self,
        hook: &Prepared,
        event: &str,
        call: HookedCall<'_>,
        mut env: Vec<(String, String)>,
        cancel: &CancellationToken,
    ) -> Said {
        let arguments = value(call.arguments);
        let told = [
            ("REHEARSAL_HOOK_EVENT", event),
            ("REHEARSAL_TOOL_NAME", call.tool),
            ("REHEARSAL_TOOL_ARGUMENTS", &arguments),
            ("TOOL_NAME", call.tool),
            ("TOOL_ARGS", &arguments),
            ("AGENT_TYPE", &self.role),
        ];
        env.extend(told.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let order = Order {
            program: "bash".to_owned(),
            args: vec!["-c".to_owned(), hook.hook.command.clone()],
            env,
            timeout: hook.hook.timeout.map_or(HOOK_TAKES, |timeout| timeout.0),
            streams: Streams::Apart,
            kept: (HOOK_SAYS / 2, HOOK_SAYS / 2),
        };
        let bad = |what: String| {
            let what = what.trim_end_matches(": ");
            Said::Badly(format!("the {event} hook `{}` {what}", hook.hook.command))
        };
        let ran = match self.shell.run(order, cancel).await {
            Ok(ran) => ran,
            Err(error) => return bad(format!("could not be run: {error}")),
        };
        let said = ran.stderr.finish("write less").trim().to_owned();
        match ran.end {
            RanEnd::Exited(0) => Said::Well,
            RanEnd::Exited(2) if said.is_empty() => Said::Refused("a hook refused it".to_owned()),
            RanEnd::Exited(2) => Said::Refused(said),
            RanEnd::Exited(code) => bad(format!("failed with exit code {code}: {said}")),
            RanEnd::TimedOut => bad("took too long".to_owned()),
            RanEnd::Signaled(_) | RanEnd::Lost => bad(format!("was killed: {said}")),
            RanEnd::Cancelled => bad("was stopped".to_owned()),
        }
    }
}

/// What a hook came to.
enum Said {
    Well,
    Refused(String),
    Badly(String),
}

impl Prepared {
    fn new(hook: &Hook) -> Result<Self, MatcherError> {
        let tools = hook.matcher.as_deref().map(tools_of).transpose()?;
        Ok(Self { hook: hook.clone(), tools })
    }

    fn fits(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.is_match(tool))
    }
}

fn tools_of(matcher: &str) -> Result<GlobSet, MatcherError> {
    let wrong = |source| MatcherError { matcher: matcher.to_owned(), source };
    let mut set = GlobSetBuilder::new();
    for name in matcher.split('|') {
        set.add(Glob::new(name.trim()).map_err(wrong)?);
    }
    set.build().map_err(wrong)
}

/// What the kernel takes as the value of a variable.
fn value(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_HOOK_VALUE)].replace('\0', "\u{fffd}")
}
