//! A block of ports for each slot, so that the servers of two tasks never meet.

use std::ops::Range;

use crate::policy::{FIRST_PORT, PORT_SLOTS, PORTS_PER_SLOT};

/// The ports of one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortBlock {
    first: u16,
}

impl PortBlock {
    /// The ports of a slot. Two slots share a block only when there are more of them than ports.
    pub fn of_slot(slot: u32) -> Self {
        let block = u16::try_from(slot % PORT_SLOTS).unwrap_or_default();
        Self { first: FIRST_PORT + block * PORTS_PER_SLOT }
    }

    /// The first port, for those who need only one.
    pub fn first(self) -> u16 {
        self.first
    }

    /// All of them.
    pub fn ports(self) -> Range<u16> {
        self.first..self.first + PORTS_PER_SLOT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_have_ports_of_their_own_below_the_ephemeral_range() {
        assert_eq!(PortBlock::of_slot(0).ports(), 20_000..20_020);
        assert_eq!(PortBlock::of_slot(1).first(), 20_020);
        assert_eq!(PortBlock::of_slot(PORT_SLOTS - 1).ports().end, 32_000);
        assert_eq!(PortBlock::of_slot(u32::MAX).first() % PORTS_PER_SLOT, 0);
    }
}
