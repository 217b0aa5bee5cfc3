//! The command line of a next action: documents have it, and people type it.

use rehearsal_core::NextAction;

/// The command line, to be typed as it is.
pub fn line(action: &NextAction) -> String {
    use NextAction as A;
    match action {
        A::Approve { task } => format!("rehearsal approve {task}"),
        A::Reject { task } => format!("rehearsal reject {task} --comment WHAT-HAS-TO-CHANGE"),
        A::Unblock { task } => format!("rehearsal task unblock {task}"),
        A::Retry { task } => format!("rehearsal task retry {task}"),
        A::RaiseCostLimit { task } => format!("rehearsal task edit {task} --max-cost USD"),
        A::Why { task } => format!("rehearsal why {task}"),
        A::ListRuns { task } => format!("rehearsal runs list --task {task}"),
        A::ListTasks { state } => format!("rehearsal task list --state {}", quote(state.as_str())),
        A::FollowLogs { run } => format!("rehearsal logs {run} --follow"),
        A::WatchStatus => "rehearsal status --watch".to_owned(),
        A::Work => "rehearsal work".to_owned(),
        A::Run { session: Some(session) } => format!("rehearsal run {}", quote(session.as_str())),
        A::Run { session: None } => "rehearsal run SESSION".to_owned(),
        A::Resume { lane } => format!("rehearsal resume {}", quote(&lane.to_string())),
        A::EnableAgent { agent } => {
            format!("rehearsal config show --origin   # then set `enabled: true` under `agents.{agent}`")
        }
        A::Merge { commit } => format!("git merge --no-edit {commit:.10}"),
        // Whoever has committed to the base meanwhile gets a merge, whatever git is set to ask then.
        A::Pull { remote, base, switch } => {
            let switch = if *switch { format!("git switch {} && ", quote(base)) } else { String::new() };
            format!("{switch}git pull --no-rebase --no-edit {} {}", quote(remote), quote(base))
        }
    }
}

/// A word as a shell takes it.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_typed_as_it_is() {
        let (remote, base) = ("/home/ann/it's here".to_owned(), "main".to_owned());
        let pull = NextAction::Pull { remote, base, switch: true };
        assert_eq!(
            line(&pull),
            r"git switch main && git pull --no-rebase --no-edit '/home/ann/it'\''s here' main"
        );
    }
}
