//! The one log. Every change of state is one of these, written in the transaction that makes the change.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::transition::TaskInput;
use crate::{
    Hold, Lane, NewSession, RunEnd, RunId, RunStart, SessionEdit, SessionName, StateName, Task, TaskId,
    TestRun, Timestamp, WorkerId,
};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// Its place in the log.
    pub seq: i64,
    /// When it happened.
    pub at: Timestamp,
    /// Who did it.
    pub actor: Actor,
    /// What happened.
    pub kind: EventKind,
}

/// A person who gave a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Person {
    /// The name of their account.
    pub name: String,
    /// The machine.
    pub host: String,
    /// How.
    pub via: Via,
}

/// How a person gave a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// At a terminal.
    Terminal,
    /// From a script or another program.
    NoTerminal,
}

impl fmt::Display for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let via = match self.via {
            Via::Terminal => "terminal",
            Via::NoTerminal => "no terminal",
        };
        write!(f, "{}@{} ({via})", self.name, self.host)
    }
}

/// Who made something happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// Someone of whom nothing more is known: in the log of older versions, and where nobody in particular asked.
    User,
    /// Someone at a command line.
    Person(Person),
    /// A process that works through tasks.
    Worker(WorkerId),
    /// An agent, through the report of its run.
    Run(RunId),
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventKind {
    /// A session was made.
    SessionAdded {
        /// Which.
        session: NewSession,
    },
    /// A session was changed.
    SessionEdited {
        /// Which.
        session: SessionName,
        /// How.
        edit: SessionEdit,
    },
    /// A line was written to a session's journal.
    ProgressAdded {
        /// Which session.
        session: SessionName,
        /// What it says.
        text: String,
    },
    /// A task was added.
    TaskAdded {
        /// As it began.
        task: Box<Task>,
    },
    /// A task changed, through the transition function.
    TaskChanged {
        /// Which.
        task: TaskId,
        /// What was put into the function: replaying these gives the task again.
        input: TaskInput,
        /// The state before.
        from: StateName,
        /// The state after.
        to: StateName,
    },
    /// A run began.
    RunStarted {
        /// How.
        run: RunStart,
    },
    /// A run ended.
    RunEnded {
        /// Which.
        run: RunId,
        /// How.
        end: Box<RunEnd>,
    },
    /// A lane was held.
    LaneHeld {
        /// Which.
        lane: Lane,
        /// Why, and until when.
        hold: Hold,
    },
    /// A lane goes on.
    LaneFreed {
        /// Which.
        lane: Lane,
    },
    /// The repository's tests ran.
    TestsRan {
        /// Which run, and what it came to.
        run: Box<TestRun>,
    },
}

impl EventKind {
    /// The word for it, as the log is filtered by.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SessionAdded { .. } => "session_added",
            Self::SessionEdited { .. } => "session_edited",
            Self::ProgressAdded { .. } => "progress_added",
            Self::TaskAdded { .. } => "task_added",
            Self::TaskChanged { .. } => "task_changed",
            Self::RunStarted { .. } => "run_started",
            Self::RunEnded { .. } => "run_ended",
            Self::LaneHeld { .. } => "lane_held",
            Self::LaneFreed { .. } => "lane_freed",
            Self::TestsRan { .. } => "tests_ran",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_actors_of_older_logs_can_be_read() {
        let read = |text| serde_json::from_str::<Actor>(text).unwrap();
        assert_eq!(read(r#""user""#), Actor::User);
        let person = Person { name: "ada".into(), host: "engine".into(), via: Via::NoTerminal };
        let written = serde_json::to_string(&Actor::Person(person.clone())).unwrap();
        assert_eq!(written, r#"{"person":{"name":"ada","host":"engine","via":"no_terminal"}}"#);
        assert_eq!(read(&written), Actor::Person(person));
    }
}
