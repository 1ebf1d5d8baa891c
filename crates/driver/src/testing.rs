//! Networks in memory, cut into parts that take turns: the least that drives nodes, for tests.

use node::pool::{PacketId, Slot};
use run::Plan;
use units::Time;

use crate::{Carrier, Cut, Departure, Driver, Links, Probe, Whole, drivers};

/// Hands packets over at once, or when the parts meet.
pub(crate) struct Memory {
    part: usize,
    outbox: Vec<Crossing>,
}

struct Crossing {
    /// The part and the place of the receiving end in it.
    to: (usize, u32),
    at: Time,
    slot: Slot,
}

impl Carrier for Memory {
    type Sender = (usize, u32);
    type Receiver = ();

    fn carry(links: &mut Links<Memory>, link_tx: u32, Departure { at, .. }: Departure, id: PacketId) {
        let to = links.link_txs[link_tx as usize].sender;
        if to.0 == links.carrier.part {
            links.put(to.1, id, at);
        } else {
            let slot = links.pool.remove(id);
            links.carrier.outbox.push(Crossing { to, at, slot });
        }
    }
}

/// Runs a plan in this many parts until all flows have ended, nothing is left to happen, or its time is over.
pub(crate) fn run<P: Probe>(plan: &Plan, parts: usize, probe: impl FnMut() -> P) -> Vec<Driver<Memory, P>> {
    let cut = Cut::new(plan, parts);
    let mut part = 0..;
    let carrier = || Memory { part: part.next().expect("endless"), outbox: Vec::new() };
    let sender =
        |link: Option<_>| link.map(|link| (cut.receiver_of(link), cut.link_rx_of(link))).expect("it begins here");
    let mut parts = drivers(plan, &cut, carrier, sender, |_| (), probe);
    loop {
        let next = parts.iter().map(|part| part.links.agenda.first().0).min().expect("a part at least");
        let ended: u64 = parts.iter().map(Driver::ended_flows).sum();
        if next >= plan.horizon || ended == plan.goal() {
            break;
        }
        let end = next.saturating_add(plan.lookahead).min(plan.horizon);
        parts.iter_mut().for_each(|part| part.advance(end));
        let crossings: Vec<Crossing> = parts.iter_mut().flat_map(|part| part.links.carrier.outbox.drain(..)).collect();
        for Crossing { to: (part, link_rx), at, slot } in crossings {
            let links = &mut parts[part].links;
            let id = links.pool.insert(slot.packet, slot.transit);
            links.put(link_rx, id, at);
        }
    }
    parts.iter_mut().for_each(Driver::end);
    parts
}

/// All parts of a run that is over.
pub(crate) fn whole<'a, P: Probe>(plan: &'a Plan, parts: &'a [Driver<Memory, P>]) -> Whole<'a> {
    let switches = parts.iter().flat_map(|part| &part.switches).collect();
    let sample_interval = plan.scenario.measure.interval;
    Whole {
        plan,
        end: plan.horizon,
        sample_interval,
        switches,
        hosts: parts.iter().flat_map(|part| &part.hosts).collect(),
    }
}
