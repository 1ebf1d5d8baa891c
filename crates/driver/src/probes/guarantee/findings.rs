//! Whether queues and waits were within the guaranteed bounds, and no guaranteed packet was lost because there was no
//! room.

use node::packet::CLASSES;
use run::{Finding, Plan};
use units::{Duration, LinkId, Time};

use super::{Seen, share};
use crate::Whole;

pub(super) fn of(seen: &Seen, whole: &Whole<'_>) -> Vec<Finding> {
    let mut findings = vec![queues(seen, whole.plan), waits(seen), losses(seen, whole)];
    findings.extend(delays(seen, whole));
    findings
}

fn queues(seen: &Seen, plan: &Plan) -> Finding {
    let fullest = seen.rows(plan).max_by(|a, b| seen.queue_share(*a).total_cmp(&seen.queue_share(*b)));
    let fullest = fullest.map_or("no queue".to_owned(), |link| {
        let (most, bound) = (seen.queue_max[link.index()], seen.queue_bounds[link.index()]);
        format!(
            "at most {most}B of {bound}B queued on the link {} ({:.1}%)",
            plan.fabric.link_name(link),
            100.0 * seen.queue_share(link)
        )
    });
    let queue_first = seen.queue_breaches.first.map_or(String::new(), |(at, link, bytes)| {
        let bound = seen.queue_bounds[link.index()];
        format!(", first at {} on the link {}: {bytes}B of {bound}B", at.since(Time::ZERO), plan.fabric.link_name(link))
    });
    let (count, [faults, _]) = (seen.queue_breaches.count, seen.faults());
    Finding {
        name: "queues are within what is guaranteed",
        ok: faults == 0,
        detail: format!(
            "{fullest}; above the bound {count} times{queue_first}{}{}",
            seen.excuse(count, faults),
            open(plan)
        ),
    }
}

fn waits(seen: &Seen) -> Finding {
    let first = seen.wait_breaches.first.map_or(String::new(), |(at, [flow, src, dst], ps)| {
        let (at, wait) = (at.since(Time::ZERO), Duration::from_ps(ps));
        format!(", first a packet of flow {flow} that came from host {src} to host {dst} at {at}: {wait}")
    });
    let wait_share = 100.0 * share(seen.wait_max.ps(), seen.wait_bound.ps());
    let (count, [_, faults]) = (seen.wait_breaches.count, seen.faults());
    Finding {
        name: "waits are within what is guaranteed",
        ok: faults == 0,
        detail: format!(
            "at most {} of {} ({wait_share:.1}%), over {} data packets; {count} waited longer{first}{}",
            seen.wait_max,
            seen.wait_bound,
            seen.waits.len(),
            seen.excuse(count, faults)
        ),
    }
}

/// A loss is a fault where its class is guaranteed. Signals may be lost: their number is not bounded, and their
/// transport sends them again.
fn losses(seen: &Seen, whole: &Whole<'_>) -> Finding {
    let room = whole.plan.reserved.as_ref().expect("what is watched is reserved");
    let guaranteed = 1 + usize::from(room.guarantee.as_ref().map_or(0, |guarantee| guarantee.class));
    let lost = seen.last.lost;
    let guaranteed_of = |lost: [u64; CLASSES]| lost[..guaranteed].iter().sum();
    let [all, faults] = [lost, seen.end.map_or(lost, |end| end.lost)].map(guaranteed_of);
    let signals: u64 = lost[..usize::from(room.classes)].iter().skip(guaranteed).sum();
    Finding {
        name: "no packet with a guarantee was lost for lack of buffer",
        ok: faults == 0,
        detail: format!(
            "{all} packets were lost, and {signals} signals, which have no guarantee{}{}",
            seen.excuse(all, faults),
            tight(whole.plan, seen)
        ),
    }
}

/// What a finding adds if its bound is not proven.
fn open(plan: &Plan) -> &'static str {
    let guarantee = plan.reserved.as_ref().and_then(|reserved| reserved.guarantee.as_ref());
    if guarantee.is_some_and(|guarantee| !guarantee.proven) { "; the bound is not proven for this fabric" } else { "" }
}

/// What a finding adds if switches reserve less buffer than the guarantee may need. Bytes beyond the reserved ones
/// depend on what other traffic leaves free.
fn tight(plan: &Plan, seen: &Seen) -> String {
    let Some(guarantee) = plan.reserved.as_ref().and_then(|reserved| reserved.guarantee.as_ref()) else {
        return String::new();
    };
    let less = |link: &LinkId| guarantee.room_bytes[link.index()] < guarantee.queue_bytes[link.index()];
    let links: Vec<LinkId> = seen.rows(plan).filter(less).collect();
    links.first().map_or(String::new(), |link| {
        let (kept, most) = (guarantee.room_bytes[link.index()], guarantee.queue_bytes[link.index()]);
        let from = &plan.fabric.names[plan.fabric.link(*link).from.index()];
        format!(
            "; on {} links less buffer is reserved than is guaranteed to suffice, such as {kept}B of {most}B at {from}",
            links.len()
        )
    })
}

/// Whether no message took longer than its transport guaranteed; `None` if no transport said how long messages may
/// take. In a run with failures a late message is no fault.
fn delays(seen: &Seen, whole: &Whole<'_>) -> Option<Finding> {
    let (delays, bounds) = (&seen.last.delays, &seen.last.bounds);
    let shares = delays.iter().filter_map(|(flow, &delay)| Some((*flow, delay, *bounds.get(flow)?)));
    let slowest = shares.clone().max_by(|a, b| share(a.1, a.2).total_cmp(&share(b.1, b.2)))?;
    let late = shares.filter(|of| of.1 > of.2).count();
    let (flow, delay, bound) = slowest;
    let [took, may] = [delay, bound].map(Duration::from_ps);
    Some(Finding {
        name: "messages take no longer than is guaranteed",
        ok: late == 0 || !whole.plan.changes.is_empty(),
        detail: format!(
            "{} messages took at most {:.1}% of their bounds: flow {flow}, {took} of {may}; {late} took longer",
            delays.len(),
            100.0 * share(delay, bound)
        ),
    })
}
