//! The words and the rules of Rehearsal.
//!
//! Everything another room of the house talks about is named here: tasks, sessions, flows, runs, outcomes,
//! events. Everything that decides is a pure function here: [`judge`] turns the evidence of a run into its
//! outcome, [`transition`](transition::transition) moves a task through its flow.
//!
//! **Invariant:** no I/O at all. No file, no process, no network, no wall clock, no environment. What a rule
//! needs to know is an argument; what it wants done is a return value.
//!
//! ```
//! use rehearsal_core::{Evidence, Exit, Outcome, judge};
//!
//! let evidence = Evidence::of_exit(Exit::Signal(9));
//! assert_eq!(judge(&evidence).outcome, Outcome::crashed(Exit::Signal(9)));
//! ```

mod activity;
mod clock;
pub mod config;
mod damage;
mod delivery;
mod event;
mod evidence;
pub mod flow;
mod future;
pub mod guard;
mod ids;
pub mod import;
mod lane;
mod model_client;
mod notice;
mod oid;
mod outcome;
mod promise;
pub mod quality;
mod run;
pub mod sandbox;
pub mod secret;
pub mod seed;
mod session;
mod source;
mod task;
mod tested;
pub mod transition;
pub mod vendor;
pub mod yaml;

pub use activity::{
    Activity, ActivityLine, Denial, Tokens, WireEnd, WireError, WireErrorKind, WireReport, WireShape,
};
pub use clock::{Clock, Timestamp, Turn, VirtualClock};
pub use damage::{Damage, FileList};
pub use delivery::{Delivery, Feedback, PendingSteps, PullRequestRef, RedVerdict, StepFailure};
pub use event::{Actor, Event, EventKind, Person, Via};
pub use evidence::{
    Commit, Evidence, GitFacts, ReportedDecision, ReportedTask, ResultFile, ResultFileError, ResultOutcome,
    RunReport, Stop, Verdict, judge,
};
pub use future::BoxFuture;
pub use ids::{AgentName, Fence, FlowName, IdError, RunId, SessionName, StateName, TaskId, WorkerId};
pub use lane::{Hold, HoldCause, Lane, LaneError};
pub use model_client::{Bounds, Keep, ModelClient, Rewrite, ToolName};
pub use notice::{Feature, NextAction, Notice};
pub use oid::{NotAnOid, Oid};
pub use outcome::{Blame, Exit, Outcome, OutcomeName, TimeLimit};
pub use promise::{Promise, without_prompt};
pub use run::{Run, RunEnd, RunStart};
pub use session::{NewSession, ProgressEntry, Session, SessionEdit};
pub use source::{Place, SourceError, nearest};
pub use task::{Budget, Claim, NewTask, Priority, Standing, Task, TaskEdit, Wait, WaitFor};
pub use tested::{TestResult, TestRun, TestStatus};
