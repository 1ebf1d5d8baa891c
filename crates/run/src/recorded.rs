//! Which packets are recorded one by one: `measure.packets`, worked out.

use std::collections::BTreeSet;

use fabric::Fabric;
use scenario::{PacketsSpec, Scenario};
use units::{FlowId, HostId, LinkId, Problem, Time};

use crate::FlowTable;

/// Which packets are recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// By flow, whether its packets are; none if those of all flows are.
    flows: Option<Vec<bool>>,
    /// Links that packets leave by; none if all.
    pub links: Option<BTreeSet<LinkId>>,
    /// From when on.
    pub from: Time,
    /// Until when.
    pub until: Time,
    /// Most rows.
    pub rows_max: u64,
}

impl Recorded {
    /// Works out what a scenario asks for, if it asks.
    pub(crate) fn new(scenario: &Scenario, fabric: &Fabric, flows: &FlowTable) -> Result<Option<Recorded>, Problem> {
        let Some(spec) = &scenario.measure.packets else { return Ok(None) };
        let recorded = Recorded::of(spec, scenario, fabric, flows);
        recorded.map(Some).map_err(|problem| problem.under("measure.packets"))
    }

    fn of(spec: &PacketsSpec, scenario: &Scenario, fabric: &Fabric, flows: &FlowTable) -> Result<Recorded, Problem> {
        let until = spec.until.map_or(Time::MAX, |until| Time::ZERO + until);
        if until <= Time::ZERO + spec.from {
            return Err(Problem::new("until", format!("it must be later than from, which is {}", spec.from)));
        }
        if spec.rows_max == 0 {
            return Err(Problem::new("rows_max", "at least 1; without measure.packets none are recorded"));
        }
        let hosts = listed(&spec.hosts, "hosts", |name| {
            let message = || format!("\"{name}\" is a switch; name a link of it in `links`, or a host here");
            fabric.as_host(fabric.find(name)?).ok_or_else(|| Problem::new("", message()))
        })?;
        let classes = listed(&spec.classes, "classes", |name| {
            let known: Vec<&str> = scenario.traffic.iter().map(|class| class.name.as_str()).collect();
            let place = known.iter().position(|known| *known == name);
            let message = || format!("there is no class \"{name}\"; there are \"{}\"", known.join("\", \""));
            place.map(|place| place as u16).ok_or_else(|| Problem::new("", message()))
        })?;
        let wanted: BTreeSet<FlowId> = spec.flows.iter().map(|&flow| FlowId(flow)).collect();
        if let Some(place) = spec.flows.iter().position(|&flow| flow as usize >= flows.len()) {
            let message = format!("there is no flow {}; there are {}, from 0 on", spec.flows[place], flows.len());
            return Err(Problem::new(format!("flows[{place}]"), message));
        }
        let links = listed(&spec.links, "links", |name| fabric.find_links(name))?;
        let is_wanted = |id: FlowId, src: HostId, dst: HostId, class: u16| {
            (wanted.is_empty() || wanted.contains(&id))
                && (hosts.is_empty() || hosts.contains(&src) || hosts.contains(&dst))
                && (classes.is_empty() || classes.contains(&class))
        };
        let all = wanted.is_empty() && hosts.is_empty() && classes.is_empty();
        let of_flows =
            (0..).zip(flows.iter()).map(|(id, flow)| is_wanted(FlowId(id), flow.src, flow.dst, flow.class)).collect();
        Ok(Recorded {
            flows: (!all).then_some(of_flows),
            links: (!links.is_empty()).then(|| links.into_iter().flatten().collect()),
            from: Time::ZERO + spec.from,
            until,
            rows_max: spec.rows_max,
        })
    }

    /// Whether packets of a flow are recorded; those of no flow are.
    #[inline]
    pub fn has(&self, flow: FlowId) -> bool {
        self.flows.as_ref().is_none_or(|flows| flows.get(flow.index()).copied().unwrap_or(true))
    }
}

/// What names stand for. Errors say which of them.
fn listed<T>(names: &[String], key: &str, find: impl Fn(&str) -> Result<T, Problem>) -> Result<Vec<T>, Problem> {
    let each = names.iter().enumerate();
    each.map(|(place, name)| find(name).map_err(|problem| problem.under(format!("{key}[{place}]")))).collect()
}
