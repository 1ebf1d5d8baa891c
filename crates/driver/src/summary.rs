//! The results of one process's parts of the network, for another process to combine when a run is over.
//!
//! It travels as bytes that the reader does not trust. Numbers are limited so that their sums fit, and statements about
//! flows, links and switches that the sending process does not have are refused.

use std::collections::BTreeSet;

use job::{Done, StepId};
use node::PortStats;
use node::link::Cause;
use node::wire::{Malformed, Reader, Writer};
use run::audit::Left;
use run::{Counted, FlowEvent, FlowRecord, InFlight, Journey, Measured, Noted, Plan, counted};
use units::{Duration, FlowId, LinkId, NodeId, Time};

use crate::audit::left;
use crate::deadlock::{Queue, Waits, waits};
use crate::progress::Moved;
use crate::results::{Lost, Sent, counted_by_links, link_ends};
use crate::{Carrier, Driver, Probe, Tally, digest};

/// The results of some parts, without the parts themselves.
pub struct Summary<P> {
    /// The sum of their nodes' digests. The sum over all processes is the digest of the run.
    pub digest: u64,
    /// Packets that came out of links.
    pub packet_hops: u64,
    /// Number of events processed.
    pub events: u64,
    /// What hosts noted about flows.
    pub records: Vec<FlowRecord>,
    /// What they saw, in a probe of the process that reads this.
    pub probe: P,
    pub(crate) measures: Vec<Measured>,
    pub(crate) done: Vec<Noted>,
    pub(crate) counted: Vec<Counted>,
    pub(crate) senders: Vec<Sent>,
    pub(crate) receivers: Vec<Lost>,
    pub(crate) tally: Tally,
    pub(crate) left: Left,
    pub(crate) moved: Moved,
    /// Flows of the packets that they have lost.
    pub lost_flows: Vec<FlowId>,
    pub(crate) waits: Waits,
}

/// No count may be greater, and no time in picoseconds (13 days): so sums of them fit.
const MOST: u64 = 1 << 60;

/// The most parts that one process has.
const PARTS_MAX: u64 = 1_000;

/// The longest reason of a flow that was given up: a program's own may have a traceback.
const REASON_BYTES_MAX: usize = 2_000;

/// The longest name of what is counted or measured.
const NAME_BYTES_MAX: usize = 100;

/// Writes the summary of some parts.
pub fn pack<C: Carrier, P: Probe>(plan: &Plan, parts: &[Driver<C, P>], end: Time, to: &mut Writer<'_>) {
    let hosts = || parts.iter().flat_map(|part| &part.hosts);
    let switches = || parts.iter().flat_map(|part| &part.switches);
    to.u64(digest(switches(), hosts()));
    to.u64(parts.iter().map(|part| part.packet_hops).sum());
    to.u64(parts.iter().map(|part| part.events).sum());
    let Tally { sent, received, lost, inside } = parts.iter().map(Tally::of).fold(Tally::default(), Tally::and);
    [sent, received, lost, inside].into_iter().for_each(|bytes| to.u64(bytes));
    let Left { events, starts, job_parts } = parts.iter().map(left).fold(Left::default(), Left::and);
    [events.into(), starts.into(), job_parts].into_iter().for_each(|number| to.u64(number));
    let ends: Vec<_> = parts.iter().map(|part| link_ends(plan, part, end)).collect();
    each(to, ends.iter().flat_map(|ends| &ends.0).collect(), |to, (link, of)| {
        to.u32(link.0);
        port_words(of).into_iter().for_each(|word| to.u64(word));
    });
    each(to, ends.iter().flat_map(|ends| &ends.1).collect(), |to, (link, of)| {
        to.u32(link.0);
        let words = [of.dead_packets, of.lossy_packets, of.corrupted_packets, of.unnoticed_packets];
        words.into_iter().for_each(|word| to.u64(word));
    });
    each(to, hosts().flat_map(|slot| &slot.host.records).collect(), pack_record);
    each(to, hosts().flat_map(|slot| &slot.host.measures).collect(), |to, measured| {
        to.u32(measured.flow.0);
        pack_name(to, measured.what);
        to.u64(measured.value);
    });
    each(to, hosts().flat_map(|slot| slot.host.done()).collect(), |to, (job, done)| {
        to.u16(job);
        to.u32(done.step.0);
        to.u64(done.begin.ps());
        to.u64(done.end.ps());
    });
    let counted = counted(plan, hosts().map(|slot| &slot.host), switches().map(|slot| &slot.switch));
    each(to, counted.into_iter().chain(counted_by_links(plan, parts)).collect(), |to, (by, name, value)| {
        to.u64(by as u64);
        pack_name(to, name);
        to.u64(value);
    });
    parts.iter().fold(Moved::default(), |sum, part| sum.and(&Moved::of(part, end))).pack(to);
    // Each once; what limiters and attached hosts send is of no flow.
    let lost_flows = parts.iter().flat_map(Driver::lost_flows).filter(|&flow| plan.flows.try_get(flow).is_some());
    let lost_flows: BTreeSet<FlowId> = lost_flows.collect();
    each(to, lost_flows.into_iter().collect(), |to, flow| to.u32(flow.0));
    let Waits { on, shared } = waits(plan, parts);
    each(to, on.into_iter().collect(), |to, (queue, on)| {
        pack_queue(to, queue);
        each(to, on, pack_queue);
    });
    each(to, shared.into_iter().collect(), pack_queue);
    each(to, parts.iter().collect(), |to, part| part.probe.pack(to));
}

impl<P: Probe> Summary<P> {
    /// Packets that bit errors hit, which no checksum showed.
    pub fn unnoticed_packets(&self) -> u64 {
        self.receivers.iter().map(|(_, of)| of.unnoticed_packets).sum()
    }

    /// Reads the summary of parts that have these nodes.
    ///
    /// # Errors
    /// If the bytes can't be such a summary.
    pub fn parse(
        plan: &Plan,
        has: impl Fn(NodeId) -> bool,
        mut probe: P,
        from: &mut Reader<'_>,
    ) -> Result<Summary<P>, Malformed> {
        from.begin("summary");
        let digest = from.u64()?;
        let (packet_hops, events) = (number(from)?, number(from)?);
        let (sent, received) = (number(from)?, number(from)?);
        let tally = Tally { sent, received, lost: difference(from)?, inside: difference(from)? };
        let left = Left { events: from.u64()? > 0, starts: from.u64()? > 0, job_parts: number(from)? };
        let link = |from: &mut Reader<'_>, end: fn(&fabric::Link) -> NodeId| {
            let id = LinkId(from.u32()?);
            let known = plan.fabric.links.get(id.index()).is_some_and(|link| has(end(link)));
            known.then_some(id).ok_or(Malformed { what: "link of a summary" })
        };
        let flow = |from: &mut Reader<'_>| {
            let id = FlowId(from.u32()?);
            let node = |host| plan.fabric.host_node(host);
            let known = plan.flows.try_get(id).is_some_and(|flow| has(node(flow.src)) || has(node(flow.dst)));
            known.then_some(id).ok_or(Malformed { what: "flow of a summary" })
        };
        let senders = all(from, |from| Ok((link(from, |link| link.from)?, parse_port(from)?)))?;
        let receivers = all(from, |from| {
            let link = link(from, |link| link.to)?;
            let (dead_packets, lossy_packets) = (difference(from)?, number(from)?);
            let (corrupted_packets, unnoticed_packets) = (number(from)?, number(from)?);
            Ok((link, InFlight { dead_packets, lossy_packets, corrupted_packets, unnoticed_packets }))
        })?;
        let mut names = BTreeSet::new();
        let records = all(from, |from| parse_record(plan, flow(from)?, &mut names, from))?;
        let measures = all(from, |from| {
            Ok(Measured { flow: flow(from)?, what: parse_name(&mut names, from)?, value: from.u64()? })
        })?;
        let done = all(from, |from| {
            let (job, step) = (from.u16()?, StepId(from.u32()?));
            let of = plan.jobs.iter().nth(usize::from(job));
            let known = of.filter(|of| step.index() < of.graph.steps().len()).map(|of| (of, of.graph.step(step)));
            let here =
                known.is_some_and(|(of, step)| has(plan.fabric.host_node(of.placement.host_of[step.rank.index()])));
            let (begin, end) = (time(from)?, time(from)?);
            let sound = here && begin <= end;
            sound.then_some((job, Done { step, begin, end })).ok_or(Malformed { what: "step of a summary" })
        })?;
        let counted = all(from, |from| {
            let by = from.u64()? as usize;
            if by > plan.transports.len() + 2 {
                return Err(Malformed { what: "counter of a summary" });
            }
            Ok((by, parse_name(&mut names, from)?, number(from)?))
        })?;
        let moved = Moved::parse(plan, from)?;
        let lost_flows = all(from, |from| parse_known(plan, from))?;
        let queue = |from: &mut Reader<'_>| parse_queue(plan, from);
        let on = all(from, |from| Ok((queue(from)?, all(from, queue)?)))?.into_iter().collect();
        let waits = Waits { on, shared: all(from, queue)?.into_iter().collect() };
        for _ in 0..from.u64()?.min(PARTS_MAX) {
            probe.absorb(from)?;
        }
        Ok(Summary {
            digest,
            packet_hops,
            events,
            records,
            probe,
            measures,
            done,
            counted,
            senders,
            receivers,
            tally,
            left,
            moved,
            lost_flows,
            waits,
        })
    }
}

/// How many, and each.
fn each<T>(to: &mut Writer<'_>, of: Vec<T>, mut pack: impl FnMut(&mut Writer<'_>, T)) {
    to.u64(of.len() as u64);
    of.into_iter().for_each(|one| pack(to, one));
}

/// All of a list. No memory is reserved for data that are only announced.
fn all<T>(
    from: &mut Reader<'_>,
    mut parse: impl FnMut(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let mut list = Vec::new();
    for _ in 0..from.u64()? {
        list.push(parse(from)?);
    }
    Ok(list)
}

fn number(from: &mut Reader<'_>) -> Result<u64, Malformed> {
    from.u64().and_then(|number| (number <= MOST).then_some(number).ok_or(Malformed { what: "number of a summary" }))
}

/// A count that may be below zero (two's complement): under link-level retry, one end of a link adds and the other
/// subtracts.
fn difference(from: &mut Reader<'_>) -> Result<u64, Malformed> {
    let number = from.u64()?;
    let sound = number.cast_signed().unsigned_abs() <= MOST;
    sound.then_some(number).ok_or(Malformed { what: "difference of a summary" })
}

fn time(from: &mut Reader<'_>) -> Result<Time, Malformed> {
    number(from).map(Time::from_ps)
}

fn duration(from: &mut Reader<'_>) -> Result<Duration, Malformed> {
    number(from).map(Duration::from_ps)
}

fn pack_name(to: &mut Writer<'_>, name: &str) {
    to.u16(name.len() as u16);
    to.bytes(name.as_bytes());
}

/// A name that lives as long as the program: there are few, and each is kept once a summary.
fn parse_name(names: &mut BTreeSet<&'static str>, from: &mut Reader<'_>) -> Result<&'static str, Malformed> {
    parse_words(names, NAME_BYTES_MAX, from)
}

fn parse_words(
    names: &mut BTreeSet<&'static str>,
    bytes_max: usize,
    from: &mut Reader<'_>,
) -> Result<&'static str, Malformed> {
    let wrong = Malformed { what: "name of a summary" };
    let count = usize::from(from.u16()?);
    let name = std::str::from_utf8(from.bytes(count)?).map_err(|_| wrong)?;
    if count > bytes_max || names.len() > 1_000 {
        return Err(wrong);
    }
    if !names.contains(name) {
        names.insert(Box::leak(name.into()));
    }
    names.get(name).copied().ok_or(wrong)
}

fn port_words(of: &PortStats) -> [u64; 19] {
    [
        of.sent_packets,
        of.sent_bytes,
        of.waited.ps(),
        of.waited_packets,
        of.queued_bytes_max.into(),
        of.overflow_packets,
        of.overflow_bytes,
        of.trimmed_packets,
        of.dead_packets,
        of.dead_bytes,
        of.marked_packets,
        of.sent_frames,
        of.own_queues_max.into(),
        of.pauses,
        of.paused.ps(),
        of.expired_packets,
        of.expired_bytes,
        of.unroutable_packets,
        of.unsent_bytes,
    ]
}

fn parse_port(from: &mut Reader<'_>) -> Result<PortStats, Malformed> {
    let small = |number: u64| u32::try_from(number).map_err(|_| Malformed { what: "number of a summary" });
    Ok(PortStats {
        sent_packets: number(from)?,
        sent_bytes: number(from)?,
        waited: duration(from)?,
        waited_packets: number(from)?,
        queued_bytes_max: small(from.u64()?)?,
        overflow_packets: number(from)?,
        overflow_bytes: number(from)?,
        trimmed_packets: number(from)?,
        dead_packets: number(from)?,
        dead_bytes: number(from)?,
        marked_packets: number(from)?,
        sent_frames: number(from)?,
        own_queues_max: small(from.u64()?)?,
        pauses: number(from)?,
        paused: duration(from)?,
        expired_packets: number(from)?,
        expired_bytes: number(from)?,
        unroutable_packets: number(from)?,
        unsent_bytes: number(from)?,
    })
}

fn pack_record(to: &mut Writer<'_>, record: &FlowRecord) {
    to.u32(record.flow.0);
    to.u64(record.at.ps());
    to.u64(record.due.ps());
    match record.fate {
        FlowEvent::Started => to.u8(0),
        FlowEvent::Resubmitted => to.u8(1),
        FlowEvent::Delivered { journey: Journey { sent, queued: [up, down, last], serialised }, transport } => {
            to.u8(2);
            to.u8(transport);
            [sent.ps(), up.ps(), down.ps(), last.ps(), serialised.ps()].into_iter().for_each(|ps| to.u64(ps));
        }
        FlowEvent::Completed { sent_packets, resent_packets } => {
            to.u8(3);
            to.u64(sent_packets);
            to.u64(resent_packets);
        }
        FlowEvent::Rejected => to.u8(4),
        FlowEvent::Failed(reason) => {
            to.u8(5);
            pack_name(to, reason);
        }
    }
}

fn parse_record(
    plan: &Plan,
    flow: FlowId,
    names: &mut BTreeSet<&'static str>,
    from: &mut Reader<'_>,
) -> Result<FlowRecord, Malformed> {
    let (at, due) = (time(from)?, time(from)?);
    let wrong = Malformed { what: "fate of a flow" };
    let fate = match from.u8()? {
        0 => FlowEvent::Started,
        1 => FlowEvent::Resubmitted,
        2 => {
            let transport = from.u8()?;
            if usize::from(transport) >= plan.transports.len() {
                return Err(wrong);
            }
            let (sent, queued) = (time(from)?, [duration(from)?, duration(from)?, duration(from)?]);
            FlowEvent::Delivered { journey: Journey { sent, queued, serialised: duration(from)? }, transport }
        }
        3 => FlowEvent::Completed { sent_packets: number(from)?, resent_packets: number(from)? },
        4 => FlowEvent::Rejected,
        5 => FlowEvent::Failed(parse_words(names, REASON_BYTES_MAX, from)?),
        _ => return Err(wrong),
    };
    Ok(FlowRecord { flow, at, due, fate })
}

fn pack_queue(to: &mut Writer<'_>, (link, cause): Queue) {
    to.u32(link.0);
    pack_cause(to, cause);
}

fn parse_queue(plan: &Plan, from: &mut Reader<'_>) -> Result<Queue, Malformed> {
    let link = LinkId(from.u32()?);
    let known = (link.index() < plan.fabric.links.len()).then_some(link);
    Ok((known.ok_or(Malformed { what: "queue of a summary" })?, parse_cause(from, "queue of a summary")?))
}

/// What a queue is for.
pub(crate) fn pack_cause(to: &mut Writer<'_>, cause: Cause) {
    let (kind, one, other, class) = match cause {
        Cause::Class(class) => (0, class.into(), 0, 0),
        Cause::Queue(queue) => (1, queue, 0, 0),
        Cause::Flow(flow) => (2, flow.0, 0, 0),
        Cause::Root { node, port, class } => (3, node, port, class),
    };
    to.u8(kind);
    to.u32(one);
    to.u16(other);
    to.u8(class);
}

/// A flow of the run.
fn parse_known(plan: &Plan, from: &mut Reader<'_>) -> Result<FlowId, Malformed> {
    let id = FlowId(from.u32()?);
    plan.flows.try_get(id).map(|_| id).ok_or(Malformed { what: "lost flow of a summary" })
}

/// What [`pack_cause`] wrote; `what` names it in an error. Whether there is such a root is for the caller to check.
pub(crate) fn parse_cause(from: &mut Reader<'_>, what: &'static str) -> Result<Cause, Malformed> {
    let (kind, one, port, class) = (from.u8()?, from.u32()?, from.u16()?, from.u8()?);
    match kind {
        0 => Ok(Cause::Class(one as u8)),
        1 => Ok(Cause::Queue(one)),
        2 => Ok(Cause::Flow(FlowId(one))),
        3 => Ok(Cause::Root { node: one, port, class }),
        _ => Err(Malformed { what }),
    }
}
