//! Stories that every engine must tell alike.

pub(crate) mod claims;
pub(crate) mod commits;
pub(crate) mod dependencies;
pub(crate) mod leases;
pub(crate) mod runs;
pub(crate) mod sessions;
pub(crate) mod tasks;
pub(crate) mod tested;
