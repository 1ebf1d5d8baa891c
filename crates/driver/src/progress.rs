//! Whether a run made progress, and what stood in its way: findings and warnings from what [`crate::pulse`] has noted.
//!
//! A class *stands still* if flows of it are under way, between hosts that have a path, and nothing new has come of it
//! for longer than anything on the network takes ([`Plan::patience`]). If meanwhile its hosts send a packet each round
//! trip or more, its packets keep each other out: a livelock. If its packets wait at the head of a queue whose link
//! serves others, it starves. Both are faults at the end of a run. A class that idles, that is paused, or whose senders
//! wait for a timer does neither.
//!
//! Two shares are worth a warning. Most of what a class sent had been sent before: a sender that repeats only what was
//! lost does so only if every second packet is lost. And most bytes that came were not of data packets, and the others
//! were more than four times as many as its transport says that it sends beside such data on a network without much
//! loss ([`Scheme::control_packets`](contract::Scheme::control_packets)): losses alone may double them, and double them
//! again where what is lost are control packets.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use fabric::{Change, Failures, Routes};
use node::packet::CLASSES;
use node::wire::{Malformed, Reader, Writer};
use run::audit::Ending;
use run::{Finding, Flows, Group, Plan, Status};
use units::{Duration, FlowId, LinkId, PortId, Time};

use crate::pulse::{self, ReceivedPackets, Sent, Span};
use crate::{Carrier, Driver, Probe, Summary, Whole};

/// When each group last received something new, and its counters: of a whole run, or of some of its parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moved {
    /// By group, when something new came last.
    pub new_at: Vec<Time>,
    /// By group, what came.
    pub came: Vec<ReceivedPackets>,
    /// The last span.
    pub span: Span,
}

impl Moved {
    /// Of a part that has come to `end`.
    pub fn of<C: Carrier, P: Probe>(part: &Driver<C, P>, end: Time) -> Moved {
        let pulse = &part.pulse;
        let mut came = vec![ReceivedPackets::default(); pulse.count];
        for (index, of_host) in pulse.came.iter().enumerate() {
            came[index % pulse.count].add(of_host);
        }
        let new_at = |(group, &at): (usize, &Time)| if pulse.moves(group) { end } else { at };
        Moved { new_at: pulse.new_at.iter().enumerate().map(new_at).collect(), came, span: pulse.last.clone() }
    }

    /// Writes it for another process.
    pub fn pack(&self, to: &mut Writer<'_>) {
        let Moved { new_at, came, span: (began, sent) } = self;
        for (at, came) in new_at.iter().zip(came) {
            let ReceivedPackets { packets, bytes, data_packets, payload_bytes } = *came;
            [at.ps(), packets, bytes, data_packets, payload_bytes].into_iter().for_each(|number| to.u64(number));
        }
        to.u64(began.ps());
        to.u64(sent.len() as u64);
        for Sent { packets, new_packets, hosts, kinds } in sent {
            [*packets, *new_packets, hosts.len() as u64, kinds.len() as u64]
                .into_iter()
                .for_each(|number| to.u64(number));
            hosts.iter().for_each(|&host| to.u32(host));
            for ((class, kind), packets) in kinds {
                to.u8(*class);
                to.u8(kind.len().min(usize::from(u8::MAX)) as u8);
                to.bytes(&kind.as_bytes()[..kind.len().min(usize::from(u8::MAX))]);
                to.u64(*packets);
            }
        }
    }

    /// Reads what another process has written, which is not trusted.
    pub fn parse(plan: &Plan, from: &mut Reader<'_>) -> Result<Moved, Malformed> {
        let wrong = Malformed { what: "progress of a summary" };
        // So that sums fit.
        let number = |from: &mut Reader<'_>| from.u64().map(|number| number.min(1 << 56));
        let mut moved = Moved::default();
        for _ in plan.groups.all() {
            moved.new_at.push(Time::from_ps(number(from)?));
            let (packets, bytes) = (number(from)?, number(from)?);
            let (data_packets, payload_bytes) = (number(from)?.min(packets), number(from)?);
            moved.came.push(ReceivedPackets { packets, bytes, data_packets, payload_bytes });
        }
        moved.span.0 = Time::from_ps(number(from)?);
        let count = from.u64()?;
        if count > 0 && count != plan.groups.all().len() as u64 {
            return Err(wrong);
        }
        for _ in 0..count {
            let (packets, new_packets, hosts, kinds) = (number(from)?, number(from)?, from.u64()?, from.u64()?);
            let mut sent = Sent { packets, new_packets, ..Sent::default() };
            for _ in 0..hosts {
                let host = from.u32()?;
                sent.hosts.insert(if host < plan.fabric.hosts { host } else { return Err(wrong) });
            }
            for _ in 0..kinds {
                let (class, length) = (from.u8()?, usize::from(from.u8()?));
                let kind = std::str::from_utf8(from.bytes(length)?).map_err(|_| wrong)?.to_owned();
                sent.kinds.insert((class, kind), number(from)?);
            }
            moved.span.1.push(sent);
        }
        Ok(moved)
    }

    /// Of two parts.
    pub fn and(mut self, other: &Moved) -> Moved {
        if self.came.is_empty() {
            return other.clone();
        }
        self.new_at.iter_mut().zip(&other.new_at).for_each(|(at, other)| *at = (*at).max(*other));
        self.came.iter_mut().zip(&other.came).for_each(|(came, other)| came.add(other));
        pulse::join(&mut self.span, &other.span);
        self
    }
}

impl ReceivedPackets {
    pub(crate) fn add(&mut self, other: &ReceivedPackets) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.data_packets += other.data_packets;
        self.payload_bytes += other.payload_bytes;
    }
}

/// All parts together.
fn moved<C: Carrier, P: Probe>(whole: &Whole<'_>, parts: &[Driver<C, P>], others: &[Summary<P>]) -> Moved {
    let here = parts.iter().fold(Moved::default(), |sum, part| sum.and(&Moved::of(part, whole.end)));
    others.iter().fold(here, |sum, other| sum.and(&other.moved))
}

/// The name of the finding that no class stands still.
pub const EVERY_CLASS_MOVES: &str = "every class moves";

/// How the classes of a run that is over have moved.
#[derive(Clone, Debug)]
pub struct Movement {
    /// Of each class that stood still when the run ended, by its own fault or because it starved: what happened.
    faults: Vec<String>,
    /// Warnings: classes whose packets are all lost, or that mostly repeat or mostly carry no data.
    pub warnings: Vec<String>,
}

impl Movement {
    /// Of all parts of a run. `ending` says how it came to its end. `others` are the summaries of parts that other
    /// processes ran.
    pub fn of<C: Carrier, P: Probe>(
        whole: &Whole<'_>,
        parts: &[Driver<C, P>],
        others: &[Summary<P>],
        flows: &Flows,
        ending: Ending,
    ) -> Movement {
        let (plan, moved) = (whole.plan, moved(whole, parts, others));
        let said = said(whole, parts, &moved, flows, ending);
        let (faults, locked_out): (Vec<_>, Vec<_>) = said.into_iter().partition(|of| of.0);
        let mut of_groups = vec![Sums::default(); plan.groups.all().len()];
        for (row, (flow, info)) in plan.flows.rows().enumerate() {
            if let Some(group) = plan.groups.of(info.transport, flow) {
                of_groups[group].add(flows, row);
            }
        }
        unlisted_groups(plan).for_each(|group| of_groups[group].started += flows.unlisted.started);
        let all = plan.groups.all().iter().zip(&moved.came).zip(&of_groups);
        let shares =
            all.flat_map(|((&group, came), sums)| [repeats(plan, group, sums), control(plan, group, came, sums)]);
        Movement {
            faults: faults.into_iter().map(|of| of.1).collect(),
            warnings: locked_out.into_iter().map(|of| of.1).chain(shares.flatten()).collect(),
        }
    }

    /// Whether a class stood still when the run ended.
    pub(crate) fn finding(&self) -> Finding {
        Finding {
            name: EVERY_CLASS_MOVES,
            ok: self.faults.is_empty(),
            detail: match self.faults.is_empty() {
                true => "no class stood still when the run ended".to_owned(),
                false => self.faults.join(". "),
            },
        }
    }
}

/// The groups of jobs some of whose flows have no row.
fn unlisted_groups(plan: &Plan) -> impl Iterator<Item = usize> {
    let of_job = |(flows, unlisted, (transport, _)): (Range<usize>, u64, (u8, u16))| {
        plan.groups.of(transport, FlowId::from(flows.start)).filter(|_| unlisted > 0)
    };
    plan.flows.jobs().filter_map(of_job).collect::<BTreeSet<_>>().into_iter()
}

/// A sentence for each class that stands still, and whether that is a fault.
fn said<C: Carrier, P: Probe>(
    whole: &Whole<'_>,
    parts: &[Driver<C, P>],
    moved: &Moved,
    flows: &Flows,
    ending: Ending,
) -> Vec<(bool, String)> {
    if ending == Ending::Itself {
        return Vec::new();
    }
    let stands = standing(whole, flows, moved);
    let mut waits = if stands.is_empty() { BTreeMap::new() } else { starving(whole, parts) };
    let say = |(group, still): (&usize, &Still)| {
        let sent = moved.span.1.get(*group).filter(|_| moved.span.0 >= still.since);
        let sent = sent.filter(|sent| still.flows(whole.plan, sent));
        match (sent, waits.remove(group)) {
            (Some(sent), _) if sent.new_packets == 0 => Some((true, still.livelock(whole.plan, sent))),
            (_, Some(waits)) => Some((true, still.starvation(whole.plan, &waits))),
            (Some(sent), None) => Some((false, still.lockout(whole.plan, sent))),
            // Who waits for a timer does no wrong; who stopped the run may want to know.
            (None, None) => (ending == Ending::Stopped).then(|| (false, still.says(whole.plan))),
        }
    };
    stands.iter().filter_map(say).collect()
}

/// A group that stands still.
struct Still {
    group: Group,
    /// Since when nothing new has come, or the first of its open flows began.
    since: Time,
    end: Time,
    open: u64,
}

/// By number, the groups that stand still.
fn standing(whole: &Whole<'_>, flows: &Flows, moved: &Moved) -> BTreeMap<usize, Still> {
    let (plan, end) = (whole.plan, whole.end);
    // After a failure, hosts and switches may need as long again until all of them use other paths.
    let changes = || plan.changes.iter().take_while(|epoch| epoch.at < end);
    let changed = changes().last().map_or(Time::ZERO, |epoch| epoch.at);
    let mut stands: BTreeMap<usize, Still> = BTreeMap::new();
    let patience = plan.patience();
    if end.since(changed) < patience {
        return stands;
    }
    let dead = changes().filter_map(|epoch| if let Change::Dead(dead) = &epoch.change { Some(dead) } else { None });
    let dead = dead.last().filter(|dead| **dead != Failures::default());
    let routes = dead.map(|dead| Routes::compute(&plan.fabric, dead));
    let mut add = |group: usize, started: Time, open: u64| {
        let new_at = moved.new_at.get(group).copied().unwrap_or(end).max(changed);
        let still = stands.entry(group).or_insert(Still { group: plan.groups.all()[group], since: end, end, open: 0 });
        still.since = still.since.min(started.max(new_at));
        still.open += open;
    };
    for (row, (flow, info)) in plan.flows.rows().enumerate() {
        let open = matches!(flows.status[row], Status::Unfinished) && flows.started[row] != Flows::NONE;
        let has_path = || routes.as_ref().is_none_or(|routes| routes.hops(info.src, info.dst).is_some());
        let Some(group) = plan.groups.of(info.transport, flow).filter(|_| open) else { continue };
        if has_path() {
            add(group, Time::from_ps(flows.times()[0][row]), 1);
        }
    }
    // Of those without a row it is not known which are open: each has begun by the time at which the last did.
    let unlisted = &flows.unlisted;
    if unlisted.under_way() > 0 && routes.is_none() {
        unlisted_groups(plan).for_each(|group| add(group, unlisted.last_start, unlisted.under_way()));
    }
    stands.retain(|_, still| end.since(still.since) >= patience);
    stands
}

impl Still {
    /// Whether its hosts send a packet each round trip or more.
    fn flows(&self, plan: &Plan, sent: &Sent) -> bool {
        let round_trips = pulse::span(plan).ps() / plan.round_trip().ps().max(1);
        sent.packets > 0 && sent.packets >= round_trips
    }

    /// Over which transport, of which class, for how long.
    fn says(&self, plan: &Plan) -> String {
        let length = self.end.since(self.since);
        let round_trips = length.ps() / plan.round_trip().ps().max(1);
        let open = if self.open == 1 { "1 flow is".to_owned() } else { format!("{} flows are", self.open) };
        format!(
            "nothing new has come {} for {length} ({round_trips} unloaded round trips), though {open} under way",
            name(plan, self.group)
        )
    }

    /// Its senders say something new, and it is lost on the way.
    fn lockout(&self, plan: &Plan, sent: &Sent) -> String {
        format!("{}, and {}; all of it is lost on the way", self.says(plan), self.who(plan, sent))
    }

    fn livelock(&self, plan: &Plan, sent: &Sent) -> String {
        let scheme = plan.transports[usize::from(self.group.transport)].as_scheme();
        let advice = scheme.when_stuck(&plan.network).map_or(String::new(), |advice| format!("; {advice}"));
        format!("livelock: {}, and {}{advice}", self.says(plan), self.who(plan, sent))
    }

    /// "3 hosts (a, b, c) sent 12 packets in 10us: 100% Finish in priority class 0".
    fn who(&self, plan: &Plan, sent: &Sent) -> String {
        let mut hosts: Vec<String> = sent.hosts.iter().take(3).map(|host| plan.host_name(*host)).collect();
        if sent.hosts.len() > hosts.len() {
            hosts.push("...".to_owned());
        }
        let all: u64 = sent.kinds.values().sum();
        let mut kinds: Vec<_> = sent.kinds.iter().collect();
        kinds.sort_by_key(|&(kind, packets)| (std::cmp::Reverse(*packets), kind));
        let kinds = kinds.iter().take(3).map(|((class, kind), packets)| {
            format!("{}% {kind} in priority class {class}", (*packets * 100 + all / 2) / all.max(1))
        });
        format!(
            "{} host{} ({}) sent {} packets in {}: {}",
            sent.hosts.len(),
            if sent.hosts.len() == 1 { "" } else { "s" },
            hosts.join(", "),
            sent.packets,
            pulse::span(plan),
            kinds.collect::<Vec<_>>().join(", "),
        )
    }

    fn starvation(&self, plan: &Plan, waits: &Waits) -> String {
        let link = plan.fabric.link(waits.link);
        let names = &plan.fabric.names;
        format!(
            "starvation: {}: a packet of priority class {} has waited for {} at the link from {} to {}, which served \
             others; switch.levels puts classes on one level, where they take turns",
            self.says(plan),
            waits.class,
            waits.time,
            names[link.from.index()],
            names[link.to.index()]
        )
    }
}

/// A packet at the head of its queue.
struct Waits {
    link: LinkId,
    class: u8,
    time: Duration,
}

/// By group, a packet that has waited at the head of a queue of a link that was free to send it: the longest wait.
fn starving<C: Carrier, P: Probe>(whole: &Whole<'_>, parts: &[Driver<C, P>]) -> BTreeMap<usize, Waits> {
    let (plan, patience) = (whole.plan, whole.plan.patience());
    let mut longest: BTreeMap<usize, Waits> = BTreeMap::new();
    for part in parts {
        for slot in &part.switches {
            let node = plan.fabric.switch_node(units::SwitchId(slot.id));
            for (port, out) in (0..).map(PortId).zip(slot.switch.ports()) {
                for class in 0..CLASSES as u8 {
                    let Some(first) = out.class_packets(class).first() else { continue };
                    let waiting = part.links.pool.get(first);
                    let time = whole.end.since(waiting.transit.at);
                    let held = out.paused_time(whole.end).ps() * 2 > time.ps() || !out.is_up();
                    let Some(group) = plan.groups.of(waiting.packet.transport, waiting.packet.flow) else { continue };
                    if held || time < patience || longest.get(&group).is_some_and(|of| of.time >= time) {
                        continue;
                    }
                    longest.insert(group, Waits { link: plan.fabric.ports[node.index()][port.index()], class, time });
                }
            }
        }
    }
    longest
}

/// Fewer packets than that say nothing of a share.
const PACKETS_MIN: u64 = 1_000;

/// More control packets than this many times those that a transport declares are worth a warning.
const CONTROL_MOST: f64 = 4.0;

/// Sums over the flows of a group.
#[derive(Clone, Copy, Default)]
struct Sums {
    sent_packets: u64,
    resent_packets: u64,
    started: u64,
}

impl Sums {
    fn add(&mut self, flows: &Flows, flow: usize) {
        let (sent, resent) = flows.packets(flow);
        self.sent_packets += sent;
        self.resent_packets += resent;
        self.started += u64::from(flows.started[flow] != Flows::NONE);
    }
}

fn repeats(plan: &Plan, group: Group, sums: &Sums) -> Option<String> {
    let Sums { sent_packets: sent, resent_packets: resent, .. } = *sums;
    let most = sent >= PACKETS_MIN && resent * 2 > sent;
    let transport = &plan.transports[usize::from(group.transport)];
    let timers = transport.as_scheme().timers(&plan.network).into_iter().filter(|timer| timer.set);
    let shortest = timers.min_by_key(|timer| timer.after);
    let advice = shortest.map_or(String::new(), |timer| {
        format!("; {} = \"{}\" is set, and leaving it out derives it from the network", timer.key, timer.after)
    });
    most.then(|| format!("{resent} of {sent} data packets {} had been sent before{advice}", name(plan, group)))
}

fn control(plan: &Plan, group: Group, came: &ReceivedPackets, sums: &Sums) -> Option<String> {
    let control = came.packets - came.data_packets;
    let header = run::data_header_bytes(&plan.scenario, &plan.transports[usize::from(group.transport)]);
    let data_bytes = came.payload_bytes + came.data_packets * header;
    let says = plan.transports[usize::from(group.transport)].as_scheme().control_packets();
    let own = came.data_packets as f64 * says.per_packet
        + sums.started as f64 * (says.per_message + says.broadcasts * f64::from(plan.fabric.hosts));
    let most = control >= PACKETS_MIN && data_bytes < came.bytes - data_bytes.min(came.bytes);
    (most && control as f64 > CONTROL_MOST * own).then(|| {
        format!(
            "{control} of {} packets {} carried no data, {:.0} times as many as on a network without losses",
            came.packets,
            name(plan, group),
            control as f64 / own.max(1.0)
        )
    })
}

/// "over rdma (class calls)".
fn name(plan: &Plan, group: Group) -> String {
    let transport = plan.transports[usize::from(group.transport)].name();
    let class = group.class.and_then(|class| plan.scenario.classes().nth(usize::from(class)));
    class.map_or(format!("over {transport}"), |class| format!("over {transport} (class {})", class.name))
}
