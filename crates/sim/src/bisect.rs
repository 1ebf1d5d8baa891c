//! Bisect: the first event after which two runs differ.
//!
//! Both runs go side by side, to times that are twice as far each time, and their states are compared there node by
//! node, in the form that a person sees ([`Tree`]): packets stand where they wait, so neither the cut into parts nor
//! places in memory count. Between the last time at which they were equal and the first at which they were not the time
//! is halved, each time from a checkpoint of the former, down to a picosecond. All of this takes no longer than about
//! three times the runs up to the difference.
//!
//! Two scenarios differ from the start in what follows from their settings: a threshold that a switch keeps, a message
//! that is to start. Such fields are named and left out, in all nodes, whatever becomes of them. There are two answers:
//! the first difference in any other field, and the first packet that comes to a node at another time, or is another
//! one. The second moves a run's digest, and is often later.
//!
//! A difference that goes away again before the states are looked at is not found.

use std::collections::BTreeSet;

use driver::{Cut, Stuck};
use engine::{Bounds, Ended, Outcome};
use run::Plan;
use serde::Serialize;
use units::saved::Tree;
use units::{Duration, LinkId, NodeId, Problem, Time, interrupt};

use crate::checkpoint::{draw, drawn, refusal, written};
use crate::part::{self, Part, ReceivedBytes};
use crate::{Checkpoint, Course};

/// One of two runs.
pub struct Side<'a> {
    /// Its plan.
    pub plan: &'a Plan,
    /// Threads, and parts of its network.
    pub threads: usize,
}

/// How two runs differ.
#[derive(Clone, Debug, Serialize)]
pub struct Bisected {
    /// Fields that differ before the first event, because settings do. They are left out.
    pub from_start: Vec<String>,
    /// The first difference in another field.
    pub state: Option<Apart>,
    /// The first packet that comes otherwise.
    pub arrival: Option<Apart>,
    /// The time up to which both were looked at, in picoseconds.
    pub end_ps: u64,
}

/// A difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Apart {
    /// The time of the event that made it, in picoseconds.
    pub at_ps: u64,
    /// The same in words.
    pub at: String,
    /// The node, or the link.
    pub place: String,
    /// The field, by the names of those that hold it.
    pub field: String,
    /// The values that the two have there.
    pub values: [Tree; 2],
    /// Other nodes and links that differ after the events of that time.
    pub also: Vec<String>,
}

/// The kind of difference.
#[derive(Clone, Copy, PartialEq)]
enum What {
    State,
    Arrivals,
}

/// A run as it is at a time.
struct Moment {
    /// Of nodes and links, by name.
    trees: Vec<(String, Tree)>,
    /// Where it goes on; `None` if it has ended.
    on: Option<Checkpoint>,
    end: Time,
}

/// Finds where two runs of the same nodes begin to differ.
///
/// # Errors
/// If they have other nodes or links, or one of them can't be written down.
pub fn bisect(sides: [Side<'_>; 2]) -> Result<Bisected, Problem> {
    for side in &sides {
        refusal(side.plan).map_or(Ok(()), Err)?;
    }
    let [one, other] = [&sides[0].plan.fabric, &sides[1].plan.fabric];
    if one.names != other.names || one.links.len() != other.links.len() {
        let message = "the two have other nodes or links, and states are compared node by node";
        return Err(Problem::new("fabric", message));
    }
    let begin = || Ok::<_, Problem>([moment(&sides[0], None, Time::ZERO)?, moment(&sides[1], None, Time::ZERO)?]);
    let alike = begin()?;
    let mut from_start = BTreeSet::new();
    for ((_, one), (_, other)) in alike[0].trees.iter().zip(&alike[1].trees) {
        all_apart(one, other, &mut Vec::new(), &mut from_start);
    }
    let (state, _) = first(&sides, alike, What::State, &from_start)?;
    let (arrival, end) = first(&sides, begin()?, What::Arrivals, &from_start)?;
    Ok(Bisected { from_start: from_start.into_iter().collect(), state, arrival, end_ps: end.ps() })
}

/// The first difference of some kind, and the time up to which was looked.
fn first(
    sides: &[Side<'_>; 2],
    begin: [Moment; 2],
    what: What,
    but: &BTreeSet<String>,
) -> Result<(Option<Apart>, Time), Problem> {
    let mut alike = begin;
    let mut step = sides[0].plan.lookahead.max(sides[1].plan.lookahead) * 16;
    let mut low = Time::ZERO;
    let (mut high, mut found) = loop {
        let to = low.saturating_add(step);
        let next = [on(&sides[0], &alike[0], to)?, on(&sides[1], &alike[1], to)?];
        if let Some(apart) = apart(&next, what, but) {
            break (to, apart);
        }
        if next.iter().any(|of| of.on.is_none()) {
            return Ok((None, next[0].end.min(next[1].end)));
        }
        (alike, low, step) = (next, to, step * 2);
    };
    // All before `low` is alike, and not all before `high`.
    while high.since(low) > Duration::from_ps(1) {
        let to = low + Duration::from_ps(high.since(low).ps() / 2);
        let next = [on(&sides[0], &alike[0], to)?, on(&sides[1], &alike[1], to)?];
        match apart(&next, what, but) {
            Some(apart) => (high, found) = (to, apart),
            None => (alike, low) = (next, to),
        }
    }
    (found.at_ps, found.at) = (low.ps(), low.to_string());
    Ok((Some(found), low))
}

/// Goes on from a moment, if the run has not ended.
fn on(side: &Side<'_>, from: &Moment, to: Time) -> Result<Moment, Problem> {
    match &from.on {
        Some(on) => moment(side, Some(on), to),
        None => Ok(Moment { trees: from.trees.clone(), on: None, end: from.end }),
    }
}

/// A run when all events before a time have happened.
fn moment(side: &Side<'_>, from: Option<&Checkpoint>, to: Time) -> Result<Moment, Problem> {
    let Side { plan, threads } = *side;
    let cut = Cut::new(plan, threads.max(1));
    let mut parts = part::parts(plan, &cut, &ReceivedBytes::default(), || ());
    let mut stuck = Stuck::new(plan);
    let mut bounds = Bounds::new(plan.lookahead, plan.horizon, plan.goal());
    let (before, windows) = Course::new(from, None).begin(plan, &mut parts, &mut stuck, &mut bounds)?;
    bounds.pause = to;
    let mut outcome = Outcome { end: before, ended: Ended::Paused, windows: 0, open_until: bounds.open_until };
    if to > Time::ZERO {
        let threads = threads.clamp(1, parts.len());
        outcome = engine::run(&mut parts, threads, bounds, |_, _| interrupt::check().is_err());
    }
    interrupt::check()?;
    let end = before.max(outcome.end);
    let kept = || {
        let so_far = Outcome { end, windows: windows + outcome.windows, ..outcome };
        let bytes = written(plan, &parts, &stuck, to, so_far, "").map_err(|why| Problem::new("", why))?;
        Checkpoint::read(bytes)
    };
    let on = if outcome.ended == Ended::Paused { Some(kept()?) } else { None };
    let come =
        if outcome.ended == Ended::Horizon { plan.horizon } else { end.max(from.map_or(Time::ZERO, |of| of.at)) };
    Ok(Moment { trees: trees(plan, &parts), on, end: come })
}

/// All nodes, then all links.
fn trees(plan: &Plan, parts: &[Part<()>]) -> Vec<(String, Tree)> {
    let node = |id: NodeId| {
        let tree = parts.iter().find_map(|part| drawn(plan, &part.0, id)).unwrap_or(Tree::None);
        (plan.fabric.names[id.index()].clone(), tree)
    };
    let nodes = (0..plan.fabric.nodes()).map(NodeId).map(node);
    let mut links: Vec<(u32, Tree)> = Vec::new();
    for Part(part, _) in parts {
        links.extend(part.links.link_rxs.iter().map(|link_rx| (link_rx.link, draw(plan, part, link_rx))));
    }
    links.sort_unstable_by_key(|of| of.0);
    let links = links.into_iter().map(|(link, tree)| (format!("link {}", plan.fabric.link_name(LinkId(link))), tree));
    nodes.chain(links).collect()
}

/// The first node or link that differs, with all others.
fn apart(sides: &[Moment; 2], what: What, but: &BTreeSet<String>) -> Option<Apart> {
    let mut found: Option<Apart> = None;
    for ((place, one), (_, other)) in sides[0].trees.iter().zip(&sides[1].trees) {
        let Some((field, values)) = field_apart(one, other, what, but) else { continue };
        match &mut found {
            Some(found) => found.also.push(place.clone()),
            None => {
                let place = place.clone();
                found = Some(Apart { at_ps: 0, at: String::new(), place, field, values, also: Vec::new() });
            }
        }
    }
    found
}

fn field_apart(one: &Tree, other: &Tree, what: What, but: &BTreeSet<String>) -> Option<(String, [Tree; 2])> {
    if what == What::State {
        let mut at = Vec::new();
        let values = first_apart(one, other, &mut at, but)?;
        return Some((at.join("."), values));
    }
    // A host's is in the host.
    let digest = |tree: &Tree| tree.find("digest").cloned();
    match (digest(one), digest(other)) {
        (Some(one), Some(other)) if one != other => Some(("digest".to_owned(), [one, other])),
        _ => None,
    }
}

/// The first field that differs: its place is left in `at`.
fn first_apart(one: &Tree, other: &Tree, at: &mut Vec<String>, but: &BTreeSet<String>) -> Option<[Tree; 2]> {
    if one == other || but.contains(&pattern(at)) {
        return None;
    }
    let Some(parts) = parts(one, other) else { return Some([one.clone(), other.clone()]) };
    for (name, one, other) in parts {
        at.push(name);
        let values = match (one, other) {
            (Some(one), Some(other)) => first_apart(one, other, at, but),
            _ if but.contains(&pattern(at)) => None,
            (one, other) => Some([one, other].map(|of| of.cloned().unwrap_or(Tree::None))),
        };
        if values.is_some() {
            return values;
        }
        at.pop();
    }
    None
}

/// All fields that differ, without numbers of items.
fn all_apart(one: &Tree, other: &Tree, at: &mut Vec<String>, found: &mut BTreeSet<String>) {
    if one == other {
        return;
    }
    let Some(parts) = parts(one, other).filter(|parts| parts.iter().all(|of| of.1.is_some() && of.2.is_some())) else {
        found.insert(pattern(at));
        return;
    };
    for (name, one, other) in parts {
        at.push(name);
        if let (Some(one), Some(other)) = (one, other) {
            all_apart(one, other, at, found);
        }
        at.pop();
    }
}

type Parts<'a> = Vec<(String, Option<&'a Tree>, Option<&'a Tree>)>;

/// The fields or items of two values of one kind, by name or number.
fn parts<'a>(one: &'a Tree, other: &'a Tree) -> Option<Parts<'a>> {
    match (one, other) {
        (Tree::Fields(ones), Tree::Fields(others)) => {
            let of = |fields: &'a [(String, Tree)], name: &str| fields.iter().find(|of| of.0 == name).map(|of| &of.1);
            let mut parts: Parts<'a> =
                ones.iter().map(|(name, one)| (name.clone(), Some(one), of(others, name))).collect();
            let more = others.iter().filter(|(name, _)| of(ones, name).is_none());
            parts.extend(more.map(|(name, other)| (name.clone(), None, Some(other))));
            Some(parts)
        }
        (Tree::List(ones), Tree::List(others)) => {
            let count = ones.len().max(others.len());
            Some((0..count).map(|place| (place.to_string(), ones.get(place), others.get(place))).collect())
        }
        _ => None,
    }
}

/// A place without the numbers of items and flows.
fn pattern(at: &[String]) -> String {
    let names = at.iter().filter(|part| part.parse::<u64>().is_err()).map(String::as_str);
    names.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests;
