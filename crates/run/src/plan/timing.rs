//! How nodes differ from ideal ones: hosts take a random time for a packet, and clocks are fast or slow.

use units::{Duration, LinkId, NodeId, Stream};

use fabric::Tier;

use crate::Plan;

impl Plan {
    /// The longest random time that a host takes for a packet that comes by this link; zero where it takes none. The
    /// link's own retry is the NIC's and takes none.
    pub fn jitter(&self, link: LinkId) -> Duration {
        let link = self.fabric.link(link);
        match link.tier == Tier::ToHost && self.scenario.link.llr.is_none() {
            true => self.scenario.jitter(link.rate),
            false => Duration::ZERO,
        }
    }

    /// By how many parts per billion a node's transmit clock is fast, or slow if that is negative: uniform within
    /// `link.clock_tolerance`, and the same for the whole run.
    pub fn clock_ppb(&self, node: NodeId) -> i32 {
        let most = self.scenario.clock_tolerance().ppb();
        let drawn = Stream::new(self.scenario.seed, u64::from(node.0), "transmit clock").below(2 * most + 1);
        drawn as i32 - most as i32
    }
}
