//! What is driven.

use super::Capabilities;
use super::check::Requirement;
use super::offer::Offer;

/// A program, the user's own arguments for it, and what it says it can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    name: String,
    args: Vec<String>,
    capabilities: Option<Capabilities>,
    is_root: bool,
}

impl Program {
    /// With arguments of the user's own: they come first, before all that a driver adds.
    pub fn with_args(self, args: Vec<String>) -> Self {
        Self { args, ..self }
    }

    /// With what the program said about itself. Without it, it is taken to have everything.
    pub fn with_capabilities(self, capabilities: impl Into<Option<Capabilities>>) -> Self {
        Self { capabilities: capabilities.into(), ..self }
    }

    /// Run by root or not; by default as this process is.
    pub fn run_by_root(self, is_root: bool) -> Self {
        Self { is_root, ..self }
    }

    /// A command line of it, begun with the user's arguments.
    pub(super) fn offer(&self, flags: &'static [Requirement]) -> Offer<'_> {
        let mut offer = Offer::new(&self.name, flags, self.capabilities.as_ref(), self.is_root);
        offer.args(&self.args);
        offer
    }
}

impl<T: Into<String>> From<T> for Program {
    fn from(name: T) -> Self {
        let is_root = rustix::process::geteuid().is_root();
        Self { name: name.into(), args: Vec::new(), capabilities: None, is_root }
    }
}
