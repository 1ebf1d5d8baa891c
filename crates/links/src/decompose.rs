//! Which flows cross which link.

use fabric::Fabric;
use run::{Way, Ways, WorkloadPlan, compatibility};
use scenario::Scenario;
use units::{FlowId, Problem, Rate};

use crate::answers;
use crate::piece::{Crossing, Hop};

/// The ways of all flows through resources: links, or bundles of links that switches spread packets over.
pub(crate) struct Decomposition<'a> {
    pub ways: Ways<'a>,
    work: &'a WorkloadPlan,
    /// By resource: its links.
    hops: Vec<Hop>,
    /// By resource: their rate, as far as answers to flows of the other direction leave it.
    left: Vec<Rate>,
    /// By flow, where its resources begin in `passes`; one more at the end.
    first: Vec<u32>,
    passes: Vec<u32>,
    /// By resource: the flows that cross it, in the order of their numbers.
    pub crossing: Vec<Vec<FlowId>>,
}

impl<'a> Decomposition<'a> {
    pub fn new(scenario: &Scenario, work: &'a WorkloadPlan) -> Result<Decomposition<'a>, Problem> {
        let ways = Ways::new(work, scenario.path_seed());
        let hops: Vec<Hop> = (0..ways.resources()).map(|resource| hop(&ways, work, resource)).collect();
        let (mut first, mut passes) = (vec![0], Vec::new());
        let mut crossing = vec![Vec::new(); hops.len()];
        let mut way = Way::default();
        for (flow, id) in work.flows.iter().zip(0..).map(|(flow, id)| (flow, FlowId(id))) {
            ways.find_way(id, &flow, &mut way);
            compatibility::check_links_ways(scenario, id, &flow, &way)?;
            for &(resource, _) in &way.passes {
                passes.push(resource);
                crossing[resource as usize].push(id);
            }
            first.push(passes.len() as u32);
        }
        let left = answers::rates_left(scenario, work, &ways, &hops);
        Ok(Decomposition { ways, work, hops, left, first, passes, crossing })
    }

    /// The resources on a flow's way, from its sender on.
    pub fn way(&self, flow: FlowId) -> &[u32] {
        &self.passes[self.first[flow.index()] as usize..self.first[flow.index() + 1] as usize]
    }

    /// The place of a resource on the way of a flow that crosses it.
    pub fn place(&self, flow: FlowId, resource: usize) -> usize {
        self.way(flow).iter().position(|&passed| passed as usize == resource).expect("it crosses it")
    }

    /// The links on a flow's way.
    pub fn hops(&self, flow: FlowId) -> Vec<Hop> {
        self.way(flow).iter().map(|&resource| self.hops[resource as usize]).collect()
    }

    /// A resource's links, as slow as answers make them.
    pub fn target(&self, resource: usize) -> Hop {
        Hop { rate: self.left[resource], ..self.hops[resource] }
    }

    /// The rate of a resource's links together.
    pub fn capacity_bps(&self, resource: usize) -> f64 {
        self.hops[resource].rate.bps() as f64 * f64::from(self.hops[resource].width)
    }

    /// Whether nothing can wait at a resource: only one flow crosses it, or all its flows come over one earlier link
    /// that is no faster. In that case they wait at the earlier link, whose own run shows it.
    pub fn is_idle(&self, resource: usize) -> bool {
        let flows = &self.crossing[resource];
        let before = |flow: FlowId| &self.way(flow)[..self.place(flow, resource)];
        let Some(&first) = flows.first() else { return true };
        let narrow = |&&earlier: &&u32| {
            let (earlier, this) = (self.hops[earlier as usize], self.hops[resource]);
            earlier.width == 1 && earlier.rate <= this.rate
        };
        let mut common: Vec<u32> = before(first).iter().filter(narrow).copied().collect();
        for &flow in &flows[1..] {
            if common.is_empty() {
                return false;
            }
            common.retain(|earlier| before(flow).contains(earlier));
        }
        flows.len() == 1 || !common.is_empty()
    }

    /// Bytes of a flow's packets, headers included.
    pub fn wire_bytes(&self, scenario: &Scenario, flow: FlowId) -> u64 {
        self.work.wire_bytes(scenario, &self.work.flows.get(flow))
    }

    /// Calls `make` with the flows that cross a resource, as its piece sees them.
    pub fn crossings<R>(&self, resource: usize, make: impl FnOnce(&[Crossing<'_>]) -> R) -> R {
        let flows = &self.crossing[resource];
        let ways: Vec<(Vec<Hop>, usize)> =
            flows.iter().map(|&flow| (self.hops(flow), self.place(flow, resource))).collect();
        let crossings: Vec<Crossing<'_>> = flows
            .iter()
            .zip(&ways)
            .map(|(&flow, (hops, place))| Crossing {
                flow,
                before: &hops[..*place],
                after: &hops[*place + 1..],
                edge_rate: self.left[self.way(flow)[0] as usize],
            })
            .collect();
        make(&crossings)
    }
}

fn hop(ways: &Ways<'_>, work: &WorkloadPlan, resource: usize) -> Hop {
    let (link, width) = ways.link(resource);
    let back = Fabric::reverse(link);
    let (rate, back_rate) = (work.fabric.link(link).rate, work.fabric.link(back).rate);
    Hop { rate, delay: work.fabric.delay(link), back_rate, back_delay: work.fabric.delay(back), width: width as u32 }
}
