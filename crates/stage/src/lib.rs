//! Plays a model vendor over HTTP, so that real agents do deterministic work without a vendor.
//!
//! [`Stage`] listens on loopback and hands each request to a [`Play`], which says what to answer, frame by frame. A
//! [`ScriptedPlay`] answers from a [`Script`] that people write in YAML; one script plays on every vendor's interface. A
//! [`RecordingPlay`] asks a real vendor and writes a cassette, a [`ReplayingPlay`] answers from one.
//!
//! **Invariant:** no clock and no randomness decides what is answered: the same script and the same requests give the same
//! bytes. A play that is asked for more than it was told fails loudly, in the vendor's own form of an error.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use rehearsal_stage::{Script, ScriptedPlay, Stage};
//!
//! let script = Script::parse("turns:\n  - say: Hello.\n")?;
//! let play = std::sync::Arc::new(ScriptedPlay::new(script, &[]));
//! let stage = Stage::open(([127, 0, 0, 1], 0).into(), play.clone())?;
//! println!("ANTHROPIC_BASE_URL=http://{}", stage.address());
//! stage.close().await;
//! assert!(play.report().is_clean());
//! # Ok(())
//! # }
//! ```

mod action;
mod answering;
mod body;
mod client;
mod clip;
mod fixed;
mod ids;
mod lint;
mod listening;
mod matching;
mod pace;
mod play;
mod record;
mod recording;
mod replaying;
mod route;
mod schema;
mod script;
mod scripted;
mod server;
mod side;
mod template;

pub use body::{Body, Cut, Frames, Step};
pub use listening::ListeningPlay;
pub use play::{Answer, Asked, Play};
pub use record::{Answered, Exchange, Report, TurnReport};
pub use recording::{RecordError, RecordingPlay, Upstreams};
pub use replaying::{ReplaySpeed, ReplayingPlay};
pub use route::{Endpoint, Framing, Named, route};
pub use script::{Script, StageScriptFile};
pub use scripted::ScriptedPlay;
pub use server::Stage;
