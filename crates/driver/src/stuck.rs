//! Whether a run without a stated end can still come to anything. One that can't is over, and says what waits for what.
//!
//! A run with a job ends when the job does, or after a simulated day. If a link on its way fails for good and its
//! transport never gives up, the timers go on for that day. So such a run pauses at set times, each twice as long after
//! the last change of the fabric as the one before. It is *stuck* if since the last of these times no flow began, ended
//! or was delivered, no rank computes, no flow has a start to come, and one of these holds:
//!
//! - No flow is under way: ranks wait for messages that were given up.
//! - Each flow under way is between hosts without a path, over a transport that never gives up: on each way one way or
//!   the other a link is dead or loses all packets. Nothing in the scenario repairs one.
//! - Paused ports wait for each other in a circle, and no payload came.
//! - No answer has come for long: each packet that hosts sent was payload that came or was lost where all is lost, 256
//!   of them for each flow under way, and no transport gives a flow up. So a path that a flow keeps is dead, though
//!   there are others. A sender without an answer soon sends by its timer alone, or all payload a hundred times. If its
//!   timer backs off, it would not come to ten thousand packets in a day.
//! - For as long as a hundred times the audit's patience, or the longest timer of a transport, hosts have sent ten
//!   thousand packets for each flow under way, and no payload came, or all of it a hundred times.
//!
//! All but the last are certain, or as good as that where packets choose paths at random. The last is a limit to how
//! often a transport may ask in vain: losses at random, of 99 of 100 packets, do not come near it.
//!
//! A pause comes before all events at its time, and all that is counted is of the whole network. So the end is the same
//! on any threads and however the network is cut. Nothing is asked of a run with `measure.end`: it has an end.
//!
//! Workers of a live run look at the same times, each at its own part ([`Stuck::look_at_part`]).

use std::collections::BTreeSet;

use fabric::{Change, Fabric, Failures, Routes};
use run::audit::Left;
use run::{FlowInfo, Flows, Plan, Status, Unlisted};
use units::{Duration, FlowId, HostId, LinkId, Time};

use crate::audit::left;
use crate::{Carrier, Driver, Probe, Tally, deadlock};

/// The time to the first look, in times of the audit's patience.
const FIRST_LOOK: u64 = 32;
/// How long hosts may ask in vain, in times of the audit's patience, or of a transport's longest timer.
const IN_VAIN: u64 = 100;
/// Packets that hosts send meanwhile for each flow under way.
const IN_VAIN_PACKETS: u64 = 10_000;
/// How many times over all payload under way has come, if what comes is no news.
const OVER_AND_OVER: u64 = 100;

/// Packets that hosts send for each flow under way without an answer, where all is lost that does not come.
const UNANSWERED_PACKETS: u64 = 256;

/// Looks at a run now and then.
#[derive(Clone, Debug, node::Saved)]
pub struct Stuck {
    /// The last change of the fabric.
    changed: Time,
    at: Time,
    seen: Option<(Time, Seen)>,
    /// The first look since which no answer has come.
    unanswered: Option<(Time, Seen)>,
}

/// Counts of what the whole network has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, node::Saved)]
struct Seen {
    /// Starts and ends of flows.
    noted: u64,
    sent_packets: u64,
    payload_bytes: u64,
    /// Packets without payload that have come.
    answers: u64,
    /// Bytes that were lost where others are not.
    mislaid_bytes: u64,
}

/// Flows under way, but those that have no row.
struct Open {
    flows: Vec<(FlowId, FlowInfo)>,
    unlisted: u64,
}

impl Stuck {
    /// Of a run that has not begun.
    pub fn new(plan: &Plan) -> Stuck {
        let open_ended = plan.scenario.measure.end.is_none() && !plan.jobs.is_empty() && plan.attached.is_empty();
        let changed = plan.changes.last().map_or(Time::ZERO, |epoch| epoch.at);
        let first = changed.saturating_add(patience(plan, FIRST_LOOK));
        Stuck { changed, at: if open_ended { first } else { Time::MAX }, seen: None, unanswered: None }
    }

    /// Of a run that has come to this time, and has not been looked at.
    #[must_use]
    pub fn from(mut self, now: Time) -> Stuck {
        while self.at < now {
            self.at = self.at.saturating_add(self.at.since(self.changed));
        }
        self
    }

    /// When it looks next; [`Time::MAX`] for never.
    pub fn next_at(&self) -> Time {
        self.at
    }

    /// All events before [`Stuck::next_at`] have happened, and none since. If the run is stuck: why, as a sentence.
    pub fn look<'d, C, P>(
        &mut self,
        plan: &Plan,
        parts: impl Iterator<Item = &'d Driver<C, P>> + Clone,
    ) -> Option<String>
    where
        C: Carrier + 'd,
        P: Probe + 'd,
    {
        let now = self.at;
        self.at = now.saturating_add(now.since(self.changed));
        let seen = parts.clone().fold(Seen::default(), Seen::and);
        let unanswered = self.unanswered.filter(|(_, since)| since.is_unanswered_until(seen)).unwrap_or((now, seen));
        self.unanswered = Some(unanswered);
        let (then, before) = self.seen.replace((now, seen))?;
        let Left { starts, job_parts, .. } = parts.clone().map(left).fold(Left::default(), Left::and);
        if seen.noted != before.noted || starts {
            return None;
        }
        let open = Open::of(plan, parts.clone());
        if open.count() == 0 {
            return nothing_under_way(job_parts);
        }
        let payload_bytes = seen.payload_bytes - before.payload_bytes;
        let circle = || deadlock::found(plan, parts.clone()).filter(|_| payload_bytes == 0);
        cut_off(plan, &open)
            .or_else(|| circle().map(|circle| format!("{circle}; {}", open.first(plan))))
            .or_else(|| {
                let times = now.since(then).ps().checked_div(longest_timer(plan).ps()).unwrap_or(0);
                let is_slow = seen.sent_packets - before.sent_packets <= times.saturating_mul(open.count());
                let came = seen.payload_bytes - unanswered.1.payload_bytes;
                (is_slow || !open.is_news(came)).then(|| locked_out(plan, &open, now, (unanswered, seen)))?
            })
            .or_else(|| in_vain(plan, &open, now.since(then), seen.sent_packets - before.sent_packets, payload_bytes))
    }

    /// The same for one part of a run whose parts are not looked at together: whether it can't go on by itself, for one
    /// of the first two reasons. The run is stuck if at the same time no part can.
    pub fn look_at_part<C: Carrier, P: Probe>(&mut self, plan: &Plan, part: &Driver<C, P>) -> bool {
        let now = self.at;
        self.at = now.saturating_add(now.since(self.changed));
        let seen = Seen::default().and(part);
        let before = self.seen.replace((now, seen));
        let waits = before.is_some_and(|(_, before)| before.noted == seen.noted) && !left(part).starts;
        let open = waits.then(|| Open::of(plan, std::iter::once(part)));
        open.is_some_and(|open| open.count() == 0 || cut_off(plan, &open).is_some())
    }

    /// Why a run is stuck of which each part has said so.
    pub fn why<'d, C, P>(plan: &Plan, parts: impl Iterator<Item = &'d Driver<C, P>> + Clone) -> Option<String>
    where
        C: Carrier + 'd,
        P: Probe + 'd,
    {
        let open = Open::of(plan, parts.clone());
        let Left { job_parts, .. } = parts.map(left).fold(Left::default(), Left::and);
        if open.count() == 0 { nothing_under_way(job_parts) } else { cut_off(plan, &open) }
    }
}

/// Ranks wait, if any do, and no message is under way to them.
fn nothing_under_way(job_parts: u64) -> Option<String> {
    let hosts = if job_parts == 1 { "1 host wait".to_owned() } else { format!("{job_parts} hosts wait") };
    (job_parts > 0).then(|| format!("no message is under way, and the ranks of jobs on {hosts} for one"))
}

/// No flow under way has a path, and no transport gives one up.
fn cut_off(plan: &Plan, open: &Open) -> Option<String> {
    let changes = dead_at(plan);
    let dead = changes.last().map(|of| &of.1).filter(|dead| **dead != Failures::default())?;
    if open.unlisted > 0 || open.gives_up(plan) {
        return None;
    }
    let routes = Routes::compute(&plan.fabric, dead);
    let has_path = |a, b| routes.hops(a, b).is_some();
    // A delivered message still waits for its acknowledgement, which travels back.
    let cut = |(_, flow): &(FlowId, FlowInfo)| !has_path(flow.src, flow.dst) || !has_path(flow.dst, flow.src);
    open.flows.iter().all(cut).then(|| {
        let (_, flow) = open.flows[0];
        format!("{}, and no path is left: {}", open.first(plan), cause(plan, &changes, dead, &flow))
    })
}

/// The failure that cut a flow off: the link of one of its hosts, or else all that is dead.
fn cause(plan: &Plan, changes: &[(Time, Failures)], dead: &Failures, flow: &FlowInfo) -> String {
    let fabric = &plan.fabric;
    let dies = |dead: &Failures, link: LinkId| dead.kills(fabric, link) || dead.kills(fabric, Fabric::reverse(link));
    let cut = |&host: &HostId| fabric.uplinks(host).iter().all(|&link| dies(dead, link));
    let since = |kills: &dyn Fn(&Failures) -> bool| {
        let works = changes.iter().rposition(|of| !kills(&of.1)).map_or(0, |place| place + 1);
        changes.get(works).map_or(Time::ZERO, |of| of.0)
    };
    if let Some(host) = [flow.src, flow.dst].into_iter().find(cut) {
        let link = fabric.uplink(host);
        let at = since(&|dead| dies(dead, link));
        return format!("the link from {} failed at {at}, and nothing repairs it", fabric.link_name(link));
    }
    let first = dead.links.first().map(|&link| format!("the link from {}", fabric.link_name(link)));
    let first = first.or_else(|| {
        let switch = fabric.switch_node(*dead.switches.first()?);
        Some(format!("the switch {}", fabric.names[switch.index()]))
    });
    let more = if dead.links.len() / 2 + dead.switches.len() > 1 { " and others" } else { "" };
    format!("{}{more} failed, and nothing repairs what has", first.unwrap_or_default())
}

/// Nothing answers, and all that does not come is lost where everything is.
fn locked_out(plan: &Plan, open: &Open, now: Time, ((since, then), seen): ((Time, Seen), Seen)) -> Option<String> {
    let packets = seen.sent_packets - then.sent_packets;
    if packets / UNANSWERED_PACKETS < open.count() || open.gives_up(plan) {
        return None;
    }
    let changes = dead_at(plan);
    let link = changes.last()?.1.links.first().map(|&link| plan.fabric.link_name(link));
    let place = link.map_or(String::new(), |link| format!(", as on the link from {link}"));
    let time = now.since(since);
    Some(format!(
        "for {time} hosts have sent {packets} packets, and no answer has come: they take paths that lose all \
         packets{place}; {}",
        open.first(plan)
    ))
}

/// The longest timer of a transport, before any backoff.
fn longest_timer(plan: &Plan) -> Duration {
    let timers = plan.transports.iter().flat_map(|transport| transport.as_scheme().timers(&plan.network));
    timers.map(|timer| timer.after).max().unwrap_or_default()
}

/// Hosts have asked so often that they would do so for ever.
fn in_vain(plan: &Plan, open: &Open, time: Duration, packets: u64, payload_bytes: u64) -> Option<String> {
    let long = patience(plan, IN_VAIN).max(longest_timer(plan) * IN_VAIN);
    if time < long || packets / IN_VAIN_PACKETS < open.count() || open.is_news(payload_bytes) {
        return None;
    }
    let came = match payload_bytes {
        0 => "no payload has come".to_owned(),
        bytes => format!("the same payload has come again and again, {bytes} bytes of it"),
    };
    Some(format!("for {time} hosts have sent {packets} packets, and {came}; {}", open.first(plan)))
}

/// A multiple of the time that the audit gives a class without new payload.
fn patience(plan: &Plan, times: u64) -> Duration {
    Duration::from_ps(plan.patience().ps().saturating_mul(times))
}

/// The links and switches that carry nothing, from each change on: they are dead, or lose all packets.
fn dead_at(plan: &Plan) -> Vec<(Time, Failures)> {
    let (mut dead, mut lossy) = (Failures::default(), BTreeSet::new());
    let mut changes = Vec::new();
    for epoch in &plan.changes {
        match &epoch.change {
            Change::Dead(all) => dead = all.clone(),
            Change::Noisy(all) => lossy = all.iter().filter(|of| of.1.loss >= 1.0).map(|of| of.0).collect(),
            Change::Slow(_) | Change::Reroute(..) => continue,
        }
        let links = dead.links.union(&lossy).copied().collect();
        changes.push((epoch.at, Failures { links, switches: dead.switches.clone() }));
    }
    changes
}

impl Seen {
    fn and<C: Carrier, P: Probe>(self, part: &Driver<C, P>) -> Seen {
        let host = |sum: Seen, host: &run::Host| {
            let Unlisted { started, delivered, completed, failed, .. } = host.unlisted;
            Seen {
                noted: sum.noted + host.records.len() as u64 + started + delivered + completed + failed + host.ended,
                sent_packets: sum.sent_packets + host.sent_packets,
                ..sum
            }
        };
        let seen = part.hosts.iter().fold(self, |sum, slot| host(sum, &slot.host));
        Seen {
            payload_bytes: seen.payload_bytes + part.delivered_bytes,
            answers: seen.answers + part.pulse.came.iter().map(|came| came.packets - came.data_packets).sum::<u64>(),
            mislaid_bytes: seen.mislaid_bytes.wrapping_add(Tally::of(part).lost.wrapping_sub(lost_for_sure(part))),
            ..seen
        }
    }

    /// Whether from this on to later counts no flow began or ended, no answer came, and nothing was lost where others
    /// were not.
    fn is_unanswered_until(&self, later: Seen) -> bool {
        let Seen { noted, answers, mislaid_bytes, .. } = *self;
        (noted, answers, mislaid_bytes) == (later.noted, later.answers, later.mislaid_bytes)
    }
}

/// Bytes that a part has lost where by now everything is lost, or was when they were.
fn lost_for_sure<C: Carrier, P: Probe>(part: &Driver<C, P>) -> u64 {
    let link_rxs = part.links.link_rxs.iter().filter(|link_rx| link_rx.acceptor.is_none()).map(|link_rx| {
        let noise = link_rx.noise.as_ref().filter(|noise| noise.loses_all());
        link_rx.lost_bytes + noise.map_or(0, |noise| noise.lossy_bytes)
    });
    let switches = part.switches.iter().map(|slot| {
        let dead = slot.switch.ports().iter().map(|port| port.stats.dead_bytes).sum::<u64>();
        slot.switch.unroutable_bytes + dead
    });
    link_rxs.sum::<u64>() + switches.sum::<u64>() + part.hosts.iter().map(|slot| slot.lost.1).sum::<u64>()
}

impl Open {
    fn of<'d, C: Carrier + 'd, P: Probe + 'd>(
        plan: &Plan,
        parts: impl Iterator<Item = &'d Driver<C, P>> + Clone,
    ) -> Open {
        let hosts = || parts.clone().flat_map(|part| &part.hosts);
        let unlisted = hosts().map(|slot| slot.host.unlisted).fold(Unlisted::default(), Unlisted::and);
        let flows = Flows::gather(&plan.flows, unlisted, hosts().flat_map(|slot| &slot.host.records));
        // Of one part it may not be known whether a flow was delivered elsewhere that its sender knows to be.
        let open = |row: usize| {
            let under_way = matches!(flows.status[row], Status::Unfinished | Status::Delivered);
            under_way && flows.started[row] != Flows::NONE && flows.completed[row] == Flows::NONE
        };
        let open = plan.flows.rows().enumerate().filter(|&(row, _)| open(row)).map(|(_, flow)| flow).collect();
        Open { flows: open, unlisted: flows.unlisted.under_way() }
    }

    /// Whether a transport of theirs may give one up.
    fn gives_up(&self, plan: &Plan) -> bool {
        let gives_up = |transport: usize| plan.transports[transport].as_scheme().capabilities().gives_up();
        match self.unlisted {
            0 => self.flows.iter().any(|(_, flow)| gives_up(usize::from(flow.transport))),
            _ => (0..plan.transports.len()).any(gives_up),
        }
    }

    /// Whether so much payload of theirs may have come for the first time, in part.
    fn is_news(&self, payload_bytes: u64) -> bool {
        let bytes = self.flows.iter().fold(0u64, |sum, (_, flow)| sum.saturating_add(flow.bytes.max(1)));
        match (payload_bytes, self.unlisted) {
            (0, _) => false,
            (_, 0) => payload_bytes / OVER_AND_OVER < bytes,
            // Their lengths are not known here.
            _ => true,
        }
    }

    fn count(&self) -> u64 {
        self.flows.len() as u64 + self.unlisted
    }

    /// The first flow, as a clause, and how many wait as it does.
    fn first(&self, plan: &Plan) -> String {
        let Some((id, FlowInfo { src, dst, .. })) = self.flows.first() else {
            return format!("{} messages of jobs wait", self.unlisted);
        };
        let class = plan.scenario.classes().nth(usize::from(plan.flows.class(*id)));
        let of = class.map_or(String::new(), |class| format!(" of {}", class.name));
        let others = match self.count() - 1 {
            0 => String::new(),
            1 => ", and 1 more waits".to_owned(),
            some => format!(", and {some} more wait"),
        };
        format!("flow {}{of} from {} to {} waits{others}", id.0, plan.host_name(src.0), plan.host_name(dst.0))
    }
}
