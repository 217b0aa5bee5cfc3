//! The tables, written and read. The same for every engine: a [`Link`](crate::link::Link) knows which it is.

pub(crate) mod commit;
pub(crate) mod find;
pub(crate) mod flows;
pub(crate) mod lanes;
pub(crate) mod log;
pub(crate) mod runs;
pub(crate) mod sessions;
pub(crate) mod situation;
pub(crate) mod tasks;
pub(crate) mod tested;
pub(crate) mod verify;
