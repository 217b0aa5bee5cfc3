//! Everything a person can ask for, one typed function each.
//!
//! A [`Caller`](caller::Caller) says who asks, from where and when; [`Project::open`](project::Project::open) finds the
//! repository around them, resolves its settings and opens its store, each once. The other modules have the functions, by
//! subject. What they return is what `--json` prints and what a server sends.
//!
//! **Invariant:** nothing is printed, no argument is read, no process is ended. The environment is an argument. Errors are
//! typed and have no hints: those who talk to people word them.

pub mod agents;
pub mod caller;
pub mod cassettes;
pub mod command_line;
pub mod crew;
pub mod doctor;
pub mod evals;
pub mod file;
pub mod flows;
pub mod gc;
mod ids;
pub mod init;
pub mod lanes;
pub mod logs;
pub mod outlet;
pub mod places;
pub mod plan;
pub mod project;
pub mod runs;
pub mod scenarios;
pub mod session_loop;
pub mod sessions;
pub mod stage;
pub mod status;
pub mod tasks;
pub mod testing;
pub mod text;
pub mod work;
pub mod workers;
