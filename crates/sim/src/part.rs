//! One part of a network on the engine, and what carries packets between its nodes and to other parts: memory.
//!
//! A packet stays in its part's pool from the sending end of a link to the receiving one. What leaves for another part
//! is handed over at the end of the engine's window, with all that it has gathered.

mod echo;

use driver::{Carrier, Cut, Departure, Driver, Fork, Links, Probe};
use engine::{Outbox, Partition};
use node::packet::flags;
use node::pool::{PacketId, Slot};
use node::{Telemetry, prefetch};
use run::Plan;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::saved::{Damaged, Loader};
use units::{LinkId, Time};

pub(crate) use echo::{Echo, Events};

/// A part of a network, and what is skipped in its island while others are simulated.
pub(crate) struct Part<P: Probe>(pub Driver<Memory, P>, pub Echo);

/// Carries packets in memory.
#[derive(Default)]
pub(crate) struct Memory {
    /// Packets for other parts. During a window this is the engine's outbox, which it lends.
    outbox: Outbox<Crossing>,
    /// The progress of the run, and how many received bytes this part has added to it.
    board: ReceivedBytes,
    told: u64,
    /// The island of this part, and of each part; 0 for none. Empty where nobody asks.
    island: u32,
    islands: Arc<[u32]>,
    /// Whether a packet has left for another island.
    pub breached: bool,
    /// Whether the run pauses where a message may have started.
    pub heeds_starts: bool,
}

/// The progress that all parts of a run report: payload that hosts have received, retransmissions included.
#[derive(Clone, Default)]
pub(crate) struct ReceivedBytes(Arc<AtomicU64>);

impl ReceivedBytes {
    /// The run begins anew.
    pub fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    pub fn delivered_bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A packet that goes from one part to another.
pub(crate) struct Crossing {
    /// The link's end in the receiving part.
    link_rx: u32,
    /// When it comes out there; [`Time::MAX`] if the link has failed since it left.
    at: Time,
    slot: Slot,
    /// What the packet has gathered, if it is flagged for it.
    telemetry: Option<Box<Telemetry>>,
}

impl Memory {
    /// From now on, this part lies in that island, and others in these.
    pub fn lies_in(&mut self, island: u32, islands: Arc<[u32]>) {
        (self.island, self.islands, self.breached) = (island, islands, false);
    }

    /// Whether a part is in another island than this one. What comes to a part that is in none disturbs nobody.
    fn is_beyond(&self, part: u32) -> bool {
        self.islands.get(part as usize).is_some_and(|&island| island != self.island && island != 0)
    }
}

/// Where the receiving end of a link is.
#[derive(Clone, Copy)]
pub(crate) enum LinkRxRef {
    Here(u32),
    There { part: u32, link_rx: u32 },
}

impl Carrier for Memory {
    type Sender = LinkRxRef;
    type Receiver = ();

    #[inline]
    fn carry(links: &mut Links<Memory>, link_tx: u32, Departure { at, .. }: Departure, id: PacketId) {
        match links.link_txs[link_tx as usize].sender {
            LinkRxRef::Here(link_rx) => links.put(link_rx, id, at),
            LinkRxRef::There { part, link_rx } => {
                links.carrier.breached |= links.carrier.is_beyond(part);
                let slot = links.pool.remove(id);
                let telemetry = slot.packet.has(flags::TELEMETRY).then(|| Box::new(*links.pool.telemetry_mut(id)));
                links.carrier.outbox.post(part as usize, Crossing { link_rx, at, slot, telemetry });
            }
        }
    }

    fn fail(links: &mut Links<Memory>, link_tx: u32) {
        let LinkRxRef::There { part, link_rx: failed } = links.link_txs[link_tx as usize].sender else { return };
        let posted = links.carrier.outbox.posted(part as usize).iter_mut();
        posted.filter(|crossing| crossing.link_rx == failed).for_each(|crossing| crossing.at = Time::MAX);
    }
}

/// The network cut into parts, each with a probe of its own.
pub(crate) fn parts<P: Probe>(plan: &Plan, cut: &Cut, board: &ReceivedBytes, probe: impl FnMut() -> P) -> Vec<Part<P>> {
    let sender = |link: Option<LinkId>| {
        let link = link.expect("a node is in one part");
        let (here, there, link_rx) = (cut.sender_of(link), cut.receiver_of(link), cut.link_rx_of(link));
        match here == there {
            true => LinkRxRef::Here(link_rx),
            false => LinkRxRef::There { part: there as u32, link_rx },
        }
    };
    let memory = || Memory { board: board.clone(), ..Memory::default() };
    let drivers = driver::drivers(plan, cut, memory, sender, |_| (), probe);
    drivers.into_iter().map(|driver| Part(driver, Echo::default())).collect()
}

impl<P: Probe> Part<P> {
    /// Reads its state, where nothing has happened yet, as one of `parts` parts.
    pub fn load(
        &mut self,
        parts: usize,
        from: &mut Loader<'_>,
        now: Time,
        fork: Option<Fork<'_>>,
    ) -> Result<(), Damaged> {
        // Changes of the fabric that are applied anew may make nodes send: such packets are lost, as all is read over.
        self.0.links.carrier.outbox = Outbox::new(parts);
        let loaded = self.0.load(from, now, fork);
        self.0.links.carrier.outbox = Outbox::default();
        let carrier = &mut self.0.links.carrier;
        carrier.told = self.0.delivered_bytes;
        carrier.board.0.fetch_add(carrier.told, Ordering::Relaxed);
        loaded
    }
}

impl<P: Probe> Partition for Part<P> {
    type Mail = Crossing;

    fn next_at(&self) -> Time {
        self.0.links.agenda.first().0.min(self.1.next_at())
    }

    fn is_quiet(&self) -> bool {
        self.0.is_quiet() && self.1.next_at() == Time::MAX
    }

    fn advance(&mut self, end: Time, outbox: &mut Outbox<Crossing>) {
        std::mem::swap(&mut self.0.links.carrier.outbox, outbox);
        self.0.advance(end);
        std::mem::swap(&mut self.0.links.carrier.outbox, outbox);
        self.1.advance(end);
        let (delivered, carrier) = (self.0.delivered_bytes, &mut self.0.links.carrier);
        if delivered > carrier.told {
            carrier.board.0.fetch_add(delivered - carrier.told, Ordering::Relaxed);
            carrier.told = delivered;
        }
    }

    fn effect_at(mail: &Crossing) -> Time {
        mail.at
    }

    fn accept(&mut self, mail: &mut Vec<Crossing>) {
        let links = &mut self.0.links;
        // All ends are known before the first packet is read.
        for crossing in mail.iter() {
            prefetch(&links.link_rxs[crossing.link_rx as usize].packets);
        }
        for crossing in mail.iter() {
            links.link_rxs[crossing.link_rx as usize].packets.prefetch_last(&links.pool);
        }
        for Crossing { link_rx, at, slot, telemetry } in mail.drain(..) {
            let end = &mut links.link_rxs[link_rx as usize];
            if !end.up || at == Time::MAX {
                end.lose(&slot.packet);
                continue;
            }
            let id = links.pool.insert(slot.packet, slot.transit);
            if let Some(telemetry) = telemetry {
                *links.pool.telemetry_mut(id) = *telemetry;
            }
            links.put(link_rx, id, at);
        }
    }

    fn reached(&self) -> u64 {
        self.0.ended_flows()
    }

    fn pauses(&self) -> bool {
        self.0.strayed || self.0.stirred && self.0.links.carrier.heeds_starts
    }
}

#[cfg(test)]
mod tests;
