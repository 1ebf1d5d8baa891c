//! The random time that a host takes for a packet.
//!
//! In a simulation without it, all is determined: a sender that a full link clocks sends again exactly when the queue
//! has room for a packet, and finds room each time, while another finds the queue full each time. Floyd and Jacobson
//! call that a phase effect ("On traffic phase effects in packet-switched gateways", 1992), and show that a random
//! processing time of up to the time of a packet on the bottleneck ends it (section 4).
//!
//! **Where it applies.** From when a packet has come in until the host's transport sees it. On the way out it would
//! have to be a gap between packets, at which a busy NIC would fall below the rate of its link. No real NIC does: its
//! queue hides such gaps. On the way in it costs no rate. Acknowledgements clock a sender, so its
//! packets are as far off the bottleneck's clock as if it had taken the time itself. And it costs no event: the packet
//! comes out of its link later. The time is drawn as the packet leaves for the host, where its order among the link's
//! packets is known, so that no other part of the network needs to wait for the draw.
//!
//! Packets keep their order, and several may be taken in at one instant, as in a batch. Frames of a flow control are
//! handled by the NIC itself, and go ahead of packets that wait. So the room that a flow control keeps for what is on
//! its way holds.

use run::Plan;
use units::{Duration, LinkId, NodeId, Stream, Time};

/// The random times of a host for packets that come by one link.
#[derive(node::State)]
pub struct Jitter {
    most: Duration,
    random: Stream,
    /// When the last packet is taken in.
    #[state(expired)]
    last: Time,
}

impl Jitter {
    /// That of the host at the end of a link, if there is any.
    pub(crate) fn new(plan: &Plan, link: LinkId) -> Option<Box<Jitter>> {
        let most = plan.jitter(link);
        let NodeId(host) = plan.fabric.link(link).to;
        let random = || Stream::new(plan.scenario.seed, u64::from(link.0) << 32 | u64::from(host), "jitter");
        (most > Duration::ZERO).then(|| Box::new(Jitter { most, random: random(), last: Time::ZERO }))
    }

    /// A packet comes in at `at`. Returns when the host takes it in.
    #[inline]
    pub(crate) fn takes_in(&mut self, at: Time) -> Time {
        let time = Duration::from_ps(self.random.below(self.most.ps() + 1));
        self.last = self.last.max(at + time);
        self.last
    }
}

#[cfg(test)]
mod tests;
