//! When a node searches for better routing, and for which flows (section 3.4).
//!
//! One node at a time searches with what it knows. If the gain is large enough, it broadcasts the protocols that
//! change: five bytes each, up to 300 in a packet of 1,500 bytes ([`assignments`](super::selection::assignments)). All
//! nodes, including the flows' own, apply them.
//!
//! Young flows are left alone and left out of the search: they may end before its result takes effect.

use fabric::{LinkWeight, Routing};
use node::Cx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem, Stream, Time};

use super::network::flow;
use super::plane::Plane;
use super::rates::Flow;
use super::selection::{Fitness, Settings, Utility, select};
use super::view::{Key, Known};

/// Selection of routing protocols.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Adapt {
    /// Time between one node's turn and the next node's. Default: 1s.
    #[schemars(extend("x-least" = "1us"))]
    pub every: Duration,
    /// Which node searches next. Default: `token`.
    pub turns: Turns,
    /// Age from which on a flow may change. Default: 1ms.
    pub older_than: Duration,
    /// The protocols to choose from. Default: `["rps", "vlb"]`.
    pub among: Vec<Routing>,
    /// The utility to maximise. Default: `aggregate`.
    pub utility: Utility,
    /// Least relative gain in utility that changes anything. Default: 0.01.
    pub gain: f64,
    /// Parameters of the search.
    pub search: Settings,
}

/// Which node searches next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Turns {
    /// Each node in turn, in the order of addresses.
    #[default]
    Token,
    /// Nodes at random, equally often on average.
    Random,
}

impl Default for Adapt {
    /// Section 5.2's choice between two protocols. "Every few seconds or minutes" is long for a simulation, so this is
    /// the shortest of it.
    fn default() -> Adapt {
        Adapt {
            every: Duration::from_ms(1_000),
            turns: Turns::Token,
            older_than: Duration::from_ms(1),
            among: vec![Routing::RandomPacketSpraying, Routing::Vlb],
            utility: Utility::default(),
            gain: 0.01,
            search: Settings::default(),
        }
    }
}

impl Adapt {
    /// Checks what the types can't express.
    pub(super) fn check(&self) -> Result<(), Problem> {
        if self.every == Duration::ZERO || self.every > Duration::from_ms(1_000_000) {
            return Err(Problem::new("every", format!("{} is not a time up to 1000s, such as \"1s\"", self.every)));
        }
        if self.among.len() < 2 {
            return Err(Problem::new("among", "needs at least two routing protocols, such as [\"rps\", \"vlb\"]"));
        }
        if self.gain.is_nan() || self.gain < 0.0 {
            return Err(Problem::new(
                "gain",
                format!(
                    "{} is not a share; write a number of at least 0, such as 0.01 for one in a hundred",
                    self.gain
                ),
            ));
        }
        self.search.check().map_err(|problem| problem.under("search"))
    }
}

/// A node's turns.
#[derive(Default, node::Saved)]
pub(super) struct Turn {
    next: Option<Time>,
    pub searches: u64,
    pub assignments: u64,
}

impl Turn {
    /// When this node next checks whether it is its turn; never if routing is not adapted.
    pub fn at(&self, plane: &Plane) -> Time {
        match plane.config.adapt {
            Some(_) => self.next.unwrap_or(Time::ZERO),
            None => Time::MAX,
        }
    }

    /// Searches if it is this node's turn.
    pub fn look(&mut self, cx: &mut Cx<'_>, plane: &mut Plane) -> Vec<(Key, Routing)> {
        let Some(adapt) = plane.config.adapt.clone() else { return Vec::new() };
        if self.at(plane) > cx.now {
            return Vec::new();
        }
        let (host, hosts) = (u64::from(plane.site.host.0), u64::from(plane.site.hosts));
        let first = self.next.is_none();
        let wait = match adapt.turns {
            Turns::Token => adapt.every * if first { host + 1 } else { hosts },
            Turns::Random => Duration::from_ps(cx.random.exponential((adapt.every * hosts).ps() as f64) as u64 + 1),
        };
        self.next = Some(cx.now.saturating_add(wait));
        if first { Vec::new() } else { self.search(cx.now, cx.random, &adapt, plane) }
    }

    fn search(&mut self, now: Time, random: &mut Stream, adapt: &Adapt, plane: &Plane) -> Vec<(Key, Routing)> {
        let lasts = |flow: &(Key, Known)| now.since(flow.1.since) >= adapt.older_than;
        let flows: Vec<(Key, Known)> = plane.view.iter().filter(lasts).collect();
        if flows.is_empty() {
            return Vec::new();
        }
        self.searches += 1;
        let network = &plane.calculator.network;
        let of = |key: &Key, routing| network.links(routing, key.src, key.dst);
        let options = |(key, known): &(Key, Known)| -> (f64, Vec<Vec<LinkWeight>>) {
            (f64::from(known.params.weight), adapt.among.iter().map(|&routing| of(key, routing)).collect())
        };
        let options: Vec<_> = flows.iter().map(options).collect();
        let mut worth = adapt.utility.measure(&flows.iter().map(|flow| flow.0.src).collect::<Vec<_>>());
        // A gene is an index among the protocols. A flow with another protocol counts as having the first.
        let gene =
            |known: &Known| adapt.among.iter().position(|&routing| routing == known.params.routing).unwrap_or(0) as u8;
        let current: Vec<u8> = flows.iter().map(|flow| gene(&flow.1)).collect();
        let genes: Vec<u8> = (0..adapt.among.len() as u8).collect();
        let plain = |known: &Known| {
            known.params.priority == flows[0].1.params.priority && known.params.demand_bps().is_infinite()
        };
        let found = if flows.iter().all(|flow| plain(&flow.1)) {
            let mut fitness = Fitness::new(plane.calculator.capacity_bps(), &options);
            select(&current, &genes, &adapt.search, random, |genes| worth.of(fitness.rates(genes)))
        } else {
            select(&current, &genes, &adapt.search, random, |genes| {
                let links = |(index, &gene): (usize, &u8)| &options[index].1[usize::from(gene)];
                let asked = genes.iter().enumerate().map(links).zip(&flows);
                let asked: Vec<Flow<'_>> = asked.map(|(links, (_, known))| flow(&known.params, links)).collect();
                worth.of(&plane.calculator.allocate(&asked))
            })
        };
        if found.gain() < adapt.gain {
            return Vec::new();
        }
        let changed = flows.iter().zip(&found.assignment).filter_map(|((key, known), &gene)| {
            let routing = adapt.among[usize::from(gene)];
            (routing != known.params.routing).then_some((*key, routing))
        });
        let changed: Vec<_> = changed.collect();
        self.assignments += changed.len() as u64;
        changed
    }
}
