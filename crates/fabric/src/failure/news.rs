//! How news of failures is flooded from switch to switch, as in link-state protocols (OSPF, RFC 2328 section 13;
//! IS-IS).
//!
//! The switches adjacent to a change detect it after a delay and tell their neighbours. A switch that hears something
//! new tells its own neighbours. News is numbered, so a switch ignores news older than what it knows. News crosses
//! links that work at that time. When a link or switch comes back, the two ends exchange all that they know, so a node
//! that was cut off catches up.
//!
//! Deliberately absent: news that is lost on lossy links (protocols repeat it), pacing of news and of computations (SPF
//! back-off), and hosts that forward.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use units::{Duration, LinkId, SwitchId, Time};

use crate::{Fabric, Failures};

/// The news that a switch has learned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotificationArrival {
    pub at: Time,
    pub switch: SwitchId,
    /// Everything that the switch takes to be dead.
    pub dead: Failures,
}

/// A link or a switch that may be dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    /// A directed link.
    Link(LinkId),
    Switch(SwitchId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A switch detects the state of its own links and neighbours as of this change.
    Notice { switch: SwitchId, change: usize },
    /// A switch hears the state of a link or switch as of this change.
    Hear { switch: SwitchId, thing: Thing, change: usize },
}

struct Flood<'a> {
    fabric: &'a Fabric,
    /// The dead links and switches from each time on.
    dead: &'a [(Time, Failures)],
    /// Those of them that routing learns of.
    news: &'a [(Time, Failures)],
    per_hop: Duration,
    /// By link or switch: the changes that concern it.
    changes: BTreeMap<Thing, Vec<usize>>,
    /// By switch: the last change that it knows of, for each link or switch.
    known: Vec<BTreeMap<Thing, usize>>,
    events: BinaryHeap<Reverse<(Time, Event)>>,
}

/// The news of each switch and their times, in order of time. `dead` lists what is dead from each time on, `news` those
/// of it that routing learns of.
pub(super) fn spread(
    fabric: &Fabric,
    dead: &[(Time, Failures)],
    news: &[(Time, Failures)],
    delay: Duration,
    per_hop: Duration,
) -> Vec<NotificationArrival> {
    let mut flood = Flood {
        fabric,
        dead,
        news,
        per_hop,
        changes: BTreeMap::new(),
        known: vec![BTreeMap::new(); fabric.switches as usize],
        events: BinaryHeap::new(),
    };
    let none = Failures::default();
    for (change, (at, now)) in news.iter().enumerate() {
        let before = change.checked_sub(1).map_or(&none, |last| &news[last].1);
        let links = before.links.symmetric_difference(&now.links).map(|&link| Thing::Link(link));
        let switches = before.switches.symmetric_difference(&now.switches).map(|&switch| Thing::Switch(switch));
        let mut who = BTreeSet::new();
        for thing in links.chain(switches) {
            flood.changes.entry(thing).or_default().push(change);
            who.extend(flood.beside(thing));
        }
        for switch in who {
            flood.events.push(Reverse((at.saturating_add(delay), Event::Notice { switch, change })));
        }
    }
    flood.run()
}

impl Flood<'_> {
    fn run(mut self) -> Vec<NotificationArrival> {
        let mut heard = Vec::new();
        let mut said: BTreeMap<SwitchId, Failures> = BTreeMap::new();
        while let Some(&Reverse((now, _))) = self.events.peek() {
            // All events of one time are handled together, so a switch computes its routes once.
            let mut learned = BTreeSet::new();
            while let Some(&Reverse((at, event))) = self.events.peek()
                && at == now
            {
                self.events.pop();
                match event {
                    Event::Notice { switch, change } => self.notice(now, switch, change, &mut learned),
                    Event::Hear { switch, thing, change } => self.hear(now, switch, thing, change, &mut learned),
                }
            }
            for switch in learned {
                let dead = self.dead_to(switch);
                let before = said.entry(switch).or_default();
                if *before != dead {
                    before.clone_from(&dead);
                    heard.push(NotificationArrival { at: now, switch, dead });
                }
            }
        }
        heard
    }

    fn notice(&mut self, now: Time, switch: SwitchId, change: usize, learned: &mut BTreeSet<SwitchId>) {
        let things: Vec<Thing> =
            self.changes.keys().copied().filter(|&thing| self.beside(thing).contains(&switch)).collect();
        for thing in things {
            let last = self.changes[&thing].iter().rev().find(|&&of| of <= change).copied();
            let Some(last) = last else { continue };
            self.hear(now, switch, thing, last, learned);
            // A neighbour that has just come back is told everything.
            if last == change && !self.is_dead(thing, change) {
                let all: Vec<(Thing, usize)> =
                    self.known[switch.index()].iter().map(|(&thing, &of)| (thing, of)).collect();
                for other in self.beside(thing).into_iter().filter(|&other| other != switch) {
                    self.tell(now, switch, Some(other), &all);
                }
            }
        }
    }

    fn hear(&mut self, now: Time, switch: SwitchId, thing: Thing, change: usize, learned: &mut BTreeSet<SwitchId>) {
        let works = self.state_at(now).is_none_or(|dead| !dead.switches.contains(&switch));
        let known = &mut self.known[switch.index()];
        if !works || known.get(&thing).is_some_and(|&known| known >= change) {
            return;
        }
        known.insert(thing, change);
        learned.insert(switch);
        self.tell(now, switch, None, &[(thing, change)]);
    }

    /// Sends news over all working links, or only to one neighbour.
    fn tell(&mut self, now: Time, switch: SwitchId, only: Option<SwitchId>, news: &[(Thing, usize)]) {
        let fabric = self.fabric;
        let dead = self.state_at(now);
        let mut to: Vec<SwitchId> = fabric.ports[fabric.switch_node(switch).index()]
            .iter()
            .filter(|&&link| dead.is_none_or(|dead| !dead.kills(fabric, link)))
            .filter_map(|&link| fabric.as_switch(fabric.link(link).to))
            .filter(|&to| only.is_none_or(|only| only == to))
            .collect();
        to.sort_unstable();
        to.dedup();
        let at = now.saturating_add(self.per_hop);
        for (switch, &(thing, change)) in to.into_iter().flat_map(|to| news.iter().map(move |of| (to, of))) {
            self.events.push(Reverse((at, Event::Hear { switch, thing, change })));
        }
    }

    /// The dead links now; `None` before the first failure.
    fn state_at(&self, now: Time) -> Option<&Failures> {
        let count = self.dead.partition_point(|of| of.0 <= now);
        count.checked_sub(1).map(|last| &self.dead[last].1)
    }

    fn is_dead(&self, thing: Thing, change: usize) -> bool {
        let dead = &self.news[change].1;
        match thing {
            Thing::Link(link) => dead.links.contains(&link),
            Thing::Switch(switch) => dead.switches.contains(&switch),
        }
    }

    fn dead_to(&self, switch: SwitchId) -> Failures {
        let mut dead = Failures::default();
        let known = self.known[switch.index()].iter().filter(|(thing, change)| self.is_dead(**thing, **change));
        for (&thing, _) in known {
            match thing {
                Thing::Link(link) => dead.links.insert(link),
                Thing::Switch(switch) => dead.switches.insert(switch),
            };
        }
        dead
    }

    /// The switches that detect whether a link or switch works: the ends of the link, or the switch and its neighbours.
    fn beside(&self, thing: Thing) -> BTreeSet<SwitchId> {
        let fabric = self.fabric;
        let ends = |link: LinkId| [fabric.link(link).from, fabric.link(link).to];
        let switches =
            |nodes: &mut dyn Iterator<Item = units::NodeId>| nodes.filter_map(|node| fabric.as_switch(node)).collect();
        match thing {
            Thing::Link(link) => switches(&mut ends(link).into_iter()),
            Thing::Switch(switch) => {
                let node = fabric.switch_node(switch);
                switches(&mut fabric.ports[node.index()].iter().flat_map(|&link| ends(link)))
            }
        }
    }
}

#[cfg(test)]
mod tests;
