//! What is driven.

use super::offer::Offer;
use super::{Capabilities, DriverKind};

/// A program, the user's own arguments for it, and what it says it can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    name: String,
    args: Vec<String>,
    capabilities: Option<Capabilities>,
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

    /// A command line of it, begun with the user's arguments.
    pub(super) fn offer(&self, kind: DriverKind) -> Offer<'_> {
        let mut offer = Offer::new(&self.name, kind, self.capabilities.as_ref());
        offer.args(&self.args);
        offer
    }
}

impl<T: Into<String>> From<T> for Program {
    fn from(name: T) -> Self {
        Self { name: name.into(), args: Vec::new(), capabilities: None }
    }
}
