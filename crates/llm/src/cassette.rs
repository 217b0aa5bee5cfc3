//! Cassettes: recorded exchanges with a model, and the players that give them back.
//!
//! A cassette is a file of JSON lines, one a test, made to be committed and read in a diff. It holds requests as they are
//! after normalising ([`Normaliser`]): what differs between two runs of the same work (directories, ids, dates) has
//! become a placeholder such as `⟦cwd⟧` or `⟦uuid:2⟧`. Each message, tool and long field is stored once, under the hash of its
//! content, so a session of sixty turns costs its unique bytes.
//!
//! One function, [`Keys::key`], makes the key of a request, for the [`Recorder`] and for the [`Player`]. Keys live in lanes:
//! what one conversation asks comes in order, and conversations and side calls do not disturb each other.
//!
//! **Invariant:** what has no end record, or a wrong one, is refused. A stream that broke off is kept as broken.
//!
//! **Invariant:** no secret is written: what is recognised becomes a placeholder, and a file in which one is found
//! afterwards never gets its name.

mod blob;
mod compare;
mod delta;
mod difference;
mod doctor;
mod exchange;
mod key;
mod lane;
mod line;
mod lint;
mod normalise;
mod player;
mod policy;
mod read;
mod recorder;
mod relaxed;
mod response;
mod scan;
mod write;

pub use compare::{CassetteChange, ChangeKind, compare};
pub use difference::Difference;
pub use doctor::{Heard, Proposal, propose};
pub use exchange::{Asked, Ended};
pub use key::{Key, Keys};
pub use lane::LaneName;
pub use line::Header;
pub use lint::{Finding, LintError, Severity, lint};
pub use normalise::{Normaliser, PatternError, Place, Rule, RuleError, RuleName};
pub use player::{Miss, PlayError, PlayReport, Playback, PlayedBody, PlayedFrame, Player, RelaxedUse};
pub use read::{Cassette, Entry, ReadError};
pub use recorder::{Recorder, Take};
pub use relaxed::{LADDER, Matching, Rung};
pub use response::{Body, Frame, Response};
pub use scan::{Secret, Secrets};
pub use write::{WriteError, Written, redacted};
