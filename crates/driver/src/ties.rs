//! Packets that come to one node at one picosecond.
//!
//! In a simulation such ties recur: two senders that a switch clocks may meet at it again and again, for as long as
//! both last. If one of them always went first, it would get the last room in a full queue each time, and the other
//! would lose. A real switch serves its inputs in turn, and its clock and theirs drift apart, so neither is favoured.
//!
//! **Who goes first.** Packets that leave a node by one port contend for it; a host counts as one port. Of `k` links
//! whose packets contend in a tie, each is due to go first once in `k` such ties. A link that does gets into debt with
//! the others, and packets of a tie are served in the order of their links' credits. This is how Fagin and Williams let
//! the members of a carpool drive ("A fair carpool scheduling algorithm", 1983): credits stay bounded, so in the long
//! run each goes first as often as it is due to, whichever links tie when.
//!
//! The first tie decides much where all begins with it, so the credits that links begin with are drawn. Where hosts and
//! clocks are ideal, they begin with none, and links of equal credit are served in the order of ports.
//!
//! Other rules favour some:
//! - *Least recently served first*: two links that have been served in one order at every tie are served so again.
//! - *A pointer that goes round the ports*: if ports 0 and 1 tie, then 2 and 3, and so on in turns, the pointer is past
//!   3 whenever 0 and 1 tie, and 0 always goes first.
//! - *Longest not gone first*: if ports 0 and 1 tie, then 0 and 2, and so on in turns, 0 has gone first more recently
//!   than others in two ties of three, and goes first in every third instead of every second.
//! - *All of a tie contend, wherever they go*: if every second tie is of packets for different ports, as of
//!   acknowledgements between packets of data, going first there costs a turn and gains nothing, and one link goes
//!   first whenever both packets are for one port.
//!
//! Packets for different ports of a switch may contend for its memory. The order among them decides only about the last
//! packet that fits, and is left as it falls.
//!
//! Credits are of one node, so results don't depend on how a network is cut. They are whole numbers that recur, so a
//! state can ([`node::walk`]).

use std::cmp::Reverse;

use node::Received;
use node::packet::flags;
use node::pool::PacketId;
use units::Time;

use crate::{Carrier, Driver, End, LinkRx, Links, Probe};

/// A packet that has come out of a link at the same instant as another at the same node.
#[derive(Clone, Copy)]
pub(crate) struct Tied {
    /// Its link's.
    credit: i64,
    /// Its link's source of events.
    source: usize,
    id: PacketId,
    goal: Goal,
}

/// The resource that packets at a node contend for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    Nothing,
    /// The switch will say.
    Unknown,
    Port(u32),
    /// A transport's agent in a switch.
    Agent,
    Host,
}

/// Credit of one turn to go first. It is divisible by 2 to 16, so that the dues of as many links are whole numbers.
pub(crate) const DUE: i64 = 720_720;

/// Puts packets of a tie in the order in which they are served. Those of one link stay in their order.
fn put_in_order(tied: &mut [Tied]) {
    tied.sort_by_key(|of| (Reverse(of.credit), of.source));
}

/// Packets were served in this order: changes the credits of their links, by source of events. The first of those with
/// one goal pays each of the others what was its due.
fn settle(tied: &[Tied], mut change: impl FnMut(usize, i64)) {
    for (place, first) in tied.iter().enumerate() {
        if first.goal == Goal::Nothing || tied[..place].iter().any(|of| of.goal == first.goal) {
            continue;
        }
        // Packets of one link are one behind the other.
        let pairs = tied[place..].windows(2).filter(|pair| pair[1].source != pair[0].source);
        let others = pairs.map(|pair| pair[1]).filter(|of| of.goal == first.goal);
        let count = others.clone().count() as i64;
        if count == 0 {
            continue;
        }
        let due = DUE / (count + 1);
        others.for_each(|of| change(of.source, due));
        change(first.source, -due * count);
    }
}

impl<C: Carrier> Links<C> {
    /// Notes at each receiving end which ends are at the same node. They are numbered one after the other.
    pub(crate) fn find_siblings(&mut self) {
        let first = self.arrival(0);
        let mut end = self.link_rxs.len();
        for siblings in self.link_rxs.chunk_by_mut(|one, next| one.is_at_node_of(next)).rev() {
            let last = first + end - 1;
            end -= siblings.len();
            siblings.iter_mut().for_each(|link_rx| link_rx.last_at_node = last as u32);
        }
    }

    /// A packet of a tie, which has come out of this link.
    fn tied(&self, source: usize, id: PacketId) -> Tied {
        let packet = &self.pool.get(id).packet;
        let LinkRx { credit, to, .. } = self.link_rxs[source - 1];
        let goal = match to {
            _ if packet.has(flags::LINK_FRAME) => Goal::Nothing,
            End::Host { .. } => Goal::Host,
            End::Switch { .. } if packet.has(flags::ROUTER_ALERT) => Goal::Agent,
            End::Switch { .. } => Goal::Unknown,
        };
        Tied { credit, source, id, goal }
    }

    /// The source of another packet that is due at the node to which one has just come, if there is one. Sources are
    /// those of arrivals: that of the packet, and the last of the node.
    #[inline(always)]
    pub(crate) fn ties(&self, now: Time, source: usize, last_at_node: u32) -> Option<usize> {
        self.agenda.first_at(now, source, last_at_node as usize)
    }
}

impl<R> LinkRx<R> {
    fn is_at_node_of(&self, other: &LinkRx<R>) -> bool {
        match (self.to, other.to) {
            (End::Switch { index, .. }, End::Switch { index: of_other, .. })
            | (End::Host { index, .. }, End::Host { index: of_other, .. }) => index == of_other,
            _ => false,
        }
    }
}

impl<C: Carrier, P: Probe> Driver<C, P> {
    /// A packet has come out of a link, and at least one other is due at the same node: see the [module](self). Returns
    /// the one that is served first, with its link's source of events.
    #[cold]
    #[inline(never)]
    pub(crate) fn gather_tied(
        &mut self,
        now: Time,
        source: usize,
        last_at_node: u32,
        id: PacketId,
    ) -> (usize, PacketId) {
        self.tied.push(self.links.tied(source, id));
        while let Some(source) = self.links.ties(now, source, last_at_node) {
            self.note_event(now, source);
            let (id, _) = self.links.take(source);
            self.tied.push(self.links.tied(source, id));
        }
        put_in_order(&mut self.tied);
        self.tied_served = 0;
        (self.tied[0].source, self.tied[0].id)
    }

    /// A packet of a tie has been served. Returns the next, or settles what their links owe each other.
    #[cold]
    #[inline(never)]
    pub(crate) fn next_tied(&mut self, received: Option<Received>) -> Option<(usize, PacketId)> {
        let of = &mut self.tied[self.tied_served];
        of.goal = match (received, of.goal) {
            (None, _) | (_, Goal::Nothing) => Goal::Nothing,
            (Some(Received::Queued(out) | Received::Through(out) | Received::Lost(_, Some(out))), Goal::Unknown) => {
                Goal::Port(out.0)
            }
            (Some(_), Goal::Unknown) => Goal::Nothing,
            (Some(_), known) => known,
        };
        self.tied_served += 1;
        if let Some(next) = self.tied.get(self.tied_served) {
            return Some((next.source, next.id));
        }
        settle(&self.tied, |source, by| self.links.link_rxs[source - 1].credit += by);
        self.tied.clear();
        None
    }
}

#[cfg(test)]
mod tests;
