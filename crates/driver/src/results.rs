//! From parts to tables.

use node::PortStats;
use run::{Counted, Flows, InFlight, Plan, Table, counted, counter_table, job_tables, link_table, measure_table};
use units::{LinkId, SwitchId, Time};

use crate::{Carrier, Driver, End, LinkRx, LinkTx, Probe, Summary, Whole, sender_stats};

/// The tables of a run that is over, in a fixed order: `flows`, `links`, `counters`, then those of probes. `others` are
/// the summaries of parts that other processes ran.
pub fn tables<C: Carrier, P: Probe>(
    whole: &Whole<'_>,
    parts: &[Driver<C, P>],
    others: &[Summary<P>],
    flows: Flows,
) -> Vec<Table> {
    let Whole { plan, end, .. } = *whole;
    let links = plan.fabric.links.len();
    let (mut stats, mut in_flight) = (vec![PortStats::default(); links], vec![InFlight::default(); links]);
    let ends = parts.iter().map(|part| link_ends(plan, part, end));
    let told = others.iter().map(|other| (other.senders.clone(), other.receivers.clone()));
    for (senders, receivers) in ends.chain(told) {
        senders.into_iter().for_each(|(link, of)| stats[link.index()] = of);
        receivers.into_iter().for_each(|(link, of)| in_flight[link.index()] = of);
    }
    let hosts = || whole.hosts.iter().map(|slot| &slot.host);
    let counted = counted(plan, hosts(), whole.switches.iter().map(|slot| &slot.switch));
    let counted = counted.into_iter().chain(others.iter().flat_map(|other| other.counted.iter().copied()));
    let counted = counted.chain(counted_by_links(plan, parts));
    let measured = hosts().flat_map(|host| &host.measures).chain(others.iter().flat_map(|other| &other.measures));
    let done = hosts().flat_map(|host| host.done()).chain(others.iter().flat_map(|other| other.done.iter().copied()));
    let summed = hosts().flat_map(|host| host.summed());
    let jobs = job_tables(&plan.jobs, &plan.fabric, flows.times(), done, summed);
    let mut tables = vec![flows.table(plan), link_table(plan, &stats, &in_flight, end), counter_table(plan, counted)];
    tables.extend(P::tables(&probes(parts, others), whole));
    tables.extend(jobs);
    tables.extend(measure_table(measured.copied().collect()));
    tables
}

/// Counters of link-level retry and of lost frames, at the ends of links, which [`counted`] does not see.
pub(crate) fn counted_by_links<'a, C: Carrier, P: Probe>(
    plan: &Plan,
    parts: &'a [Driver<C, P>],
) -> impl Iterator<Item = Counted> + 'a {
    let repeaters = parts.iter().flat_map(|part| part.links.link_txs.iter().flat_map(|link_tx| &link_tx.repeater));
    let link_rxs =
        parts.iter().flat_map(|part| part.links.link_rxs.iter().filter(|link_rx| link_rx.acceptor.is_some()));
    let hits = link_rxs.flat_map(|link_rx| &link_rx.noise).flat_map(|noise| {
        [("llr_damaged_packets", noise.corrupted_packets), ("llr_vanished_packets", noise.lossy_packets)]
    });
    let noise = parts.iter().flat_map(|part| part.links.link_rxs.iter().flat_map(|link_rx| &link_rx.noise));
    let frames = noise.filter(|noise| noise.hits_frames).map(|noise| ("lost_frames", noise.lost_frames));
    let by_links = plan.transports.len() + 2;
    repeaters.flat_map(|of| of.counters()).chain(hits).chain(frames).map(move |(name, value)| (by_links, name, value))
}

/// Notes for readers of the tables.
pub fn notes<C: Carrier, P: Probe>(whole: &Whole<'_>, parts: &[Driver<C, P>], others: &[Summary<P>]) -> Vec<String> {
    P::notes(&probes(parts, others), whole)
}

/// The probes of all parts, those of other processes included.
pub(crate) fn probes<'a, C: Carrier, P: Probe>(parts: &'a [Driver<C, P>], others: &'a [Summary<P>]) -> Vec<&'a P> {
    parts.iter().map(|part| &part.probe).chain(others.iter().map(|other| &other.probe)).collect()
}

/// What a link's sender counted.
pub(crate) type Sent = (LinkId, PortStats);

/// What became of packets in flight on a link.
pub(crate) type Lost = (LinkId, InFlight);

/// What links' ends in a part noted: senders' counters, and what became of packets in flight, each with its link.
pub(crate) fn link_ends<C: Carrier, P: Probe>(plan: &Plan, part: &Driver<C, P>, end: Time) -> (Vec<Sent>, Vec<Lost>) {
    let in_flight = |link_rx: &LinkRx<C::Receiver>| {
        let mut lost = InFlight { dead_packets: link_rx.lost_packets, ..InFlight::default() };
        // Under link-level retry such packets are repeated and not lost. `counted_by_links` counts them.
        if let Some(noise) = link_rx.noise.as_ref().filter(|_| link_rx.acceptor.is_none()) {
            lost.lossy_packets = noise.lossy_packets;
            lost.corrupted_packets = noise.corrupted_packets;
        }
        lost.unnoticed_packets = link_rx.noise.as_ref().map_or(0, |noise| noise.unnoticed_packets);
        // The sender counts as dead all packets that had left when the link went down. Those accepted at this end were
        // not lost.
        let accepted = link_rx.acceptor.as_ref().map_or(0, |acceptor| acceptor.accepted_before().0);
        lost.dead_packets = lost.dead_packets.wrapping_sub(accepted);
        (LinkId(link_rx.link), lost)
    };
    let sender = |link_tx| (link_of(plan, part, link_tx), sender_stats(part, link_tx, end));
    let link_txs = part.links.link_txs.iter().filter(|link_tx| link_tx.begins);
    (link_txs.map(sender).collect(), part.links.link_rxs.iter().map(in_flight).collect())
}

/// The link that begins there.
fn link_of<C: Carrier, P: Probe>(plan: &Plan, part: &Driver<C, P>, link_tx: &LinkTx<C::Sender>) -> LinkId {
    let (node, port) = match link_tx.from {
        End::Switch { index, port } => (plan.fabric.switch_node(SwitchId(part.switches[index as usize].id)), port),
        End::Host { index, port } => (plan.fabric.host_node(part.hosts[index as usize].host.id()), port),
    };
    plan.fabric.ports[node.index()][port.index()]
}
