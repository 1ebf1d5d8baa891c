//! Which packets are recorded one by one (`measure.packets`, and by what happens to them `measure.events`), which flows
//! are followed (`measure.flows`), and which ports are watched (`measure.ports`).

use std::collections::BTreeSet;

use fabric::Fabric;
use scenario::{EventKind, FlowsSpec, PacketsSpec, Scenario};
use units::{Duration, FlowId, HostId, LinkId, Problem, Time};

use crate::FlowTable;

/// Which packets are recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    flows: Chosen,
    /// Links that packets leave by; none if all.
    pub links: Option<BTreeSet<LinkId>>,
    /// From when on.
    pub from: Time,
    /// Until when.
    pub until: Time,
    /// The events of them; none if that does not matter.
    pub events: Option<Vec<EventKind>>,
    /// Most rows.
    pub rows_max: u64,
}

/// Ports that are watched, as the links that they send by: each once.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedPorts {
    /// These links, in their order.
    pub links: BTreeSet<LinkId>,
    /// Most rows of each.
    pub rows_max: usize,
}

/// Which flows are followed.
#[derive(Clone, Debug, PartialEq)]
pub struct Followed {
    flows: Chosen,
    /// By host, flows from there and to there, in the order in which they begin.
    of_host: Vec<Vec<(Time, FlowId)>>,
    /// From when on.
    pub from: Time,
    /// Until when.
    pub until: Time,
    /// Most rows.
    pub rows_max: u64,
}

/// By flow, whether it is chosen; none if all are.
#[derive(Clone, Debug, PartialEq)]
struct Chosen(Option<Vec<bool>>);

impl Recorded {
    /// Works out what a scenario asks for, if it asks.
    pub(crate) fn new(scenario: &Scenario, fabric: &Fabric, flows: &FlowTable) -> Result<Option<Recorded>, Problem> {
        let Some(spec) = &scenario.measure.packets else { return Ok(None) };
        let recorded = Recorded::of(spec, scenario, fabric, flows);
        recorded.map(Some).map_err(|problem| problem.under("measure.packets"))
    }

    fn of(spec: &PacketsSpec, scenario: &Scenario, fabric: &Fabric, flows: &FlowTable) -> Result<Recorded, Problem> {
        let (from, until) = times(spec.from, spec.until)?;
        if spec.rows_max == 0 {
            return Err(Problem::new("rows_max", "at least 1; without measure.packets none are recorded"));
        }
        let links = listed(&spec.links, "links", |name| fabric.find_links(name))?;
        Ok(Recorded {
            flows: Choice { flows: &spec.flows, classes: &spec.classes, hosts: &spec.hosts }
                .of(scenario, fabric, flows)?,
            links: (!links.is_empty()).then(|| links.into_iter().flatten().collect()),
            from,
            until,
            events: None,
            rows_max: spec.rows_max,
        })
    }

    /// Those to which something happens that a scenario asks for, if it asks.
    pub(crate) fn events(scenario: &Scenario) -> Result<Option<Recorded>, Problem> {
        let events = &scenario.measure.events;
        let again = (1..events.len()).find(|&place| events[..place].contains(&events[place]));
        if let Some(place) = again {
            let message = format!("\"{}\" is there already; name each once", events[place].name());
            return Err(Problem::new(format!("measure.events[{place}]"), message));
        }
        if !events.is_empty() && scenario.measure.rows_max == 0 {
            return Err(Problem::new("measure.rows_max", "at least 1; without measure.events none are recorded"));
        }
        Ok((!events.is_empty()).then(|| Recorded {
            flows: Chosen(None),
            links: None,
            from: Time::ZERO,
            until: Time::MAX,
            events: Some(events.clone()),
            rows_max: scenario.measure.rows_max,
        }))
    }

    /// Whether packets of a flow are recorded; those of no flow are.
    #[inline]
    pub fn has(&self, flow: FlowId) -> bool {
        self.flows.has(flow)
    }
}

impl WatchedPorts {
    /// Fewer rows than this show nothing.
    const ROWS_LEAST: u64 = 16;

    /// Works out what a scenario asks for, if it asks.
    pub(crate) fn new(scenario: &Scenario, fabric: &Fabric) -> Result<Option<WatchedPorts>, Problem> {
        let links = listed(&scenario.measure.ports, "measure.ports", |name| fabric.find_ports(name))?;
        let links: BTreeSet<LinkId> = links.into_iter().flatten().collect();
        if links.is_empty() {
            return Ok(None);
        }
        let rows_max = scenario.measure.rows_max / links.len() as u64;
        if rows_max < Self::ROWS_LEAST {
            let least = Self::ROWS_LEAST * links.len() as u64;
            let message = format!("at least {least} for {} ports of measure.ports", links.len());
            return Err(Problem::new("measure.rows_max", message));
        }
        Ok(Some(WatchedPorts { links, rows_max: usize::try_from(rows_max).unwrap_or(usize::MAX) }))
    }
}

impl Followed {
    /// Works out what a scenario asks for, if it asks.
    pub(crate) fn new(scenario: &Scenario, fabric: &Fabric, flows: &FlowTable) -> Result<Option<Followed>, Problem> {
        let Some(spec) = &scenario.measure.flows else { return Ok(None) };
        let followed = Followed::read(spec, scenario, fabric, flows);
        followed.map(Some).map_err(|problem| problem.under("measure.flows"))
    }

    fn read(spec: &FlowsSpec, scenario: &Scenario, fabric: &Fabric, flows: &FlowTable) -> Result<Followed, Problem> {
        let (from, until) = times(spec.from, spec.until)?;
        if spec.rows_max == 0 {
            return Err(Problem::new("rows_max", "at least 1; without measure.flows none are followed"));
        }
        let chosen =
            Choice { flows: &spec.flows, classes: &spec.classes, hosts: &spec.hosts }.of(scenario, fabric, flows)?;
        let mut of_host = vec![Vec::new(); fabric.hosts as usize];
        for (id, flow) in (0..).map(FlowId).zip(flows.iter()).filter(|(id, _)| chosen.has(*id)) {
            // The start of a flow that waits for something is not known beforehand.
            let begins = flow.begins().unwrap_or(Time::ZERO);
            for host in [flow.src, flow.dst] {
                of_host[host.index()].push((begins, id));
            }
        }
        of_host.iter_mut().for_each(|flows| flows.sort_unstable());
        Ok(Followed { flows: chosen, of_host, from, until, rows_max: spec.rows_max })
    }

    /// Those from and to a host, in the order in which they begin: when, at the earliest, and which.
    pub fn of(&self, host: HostId) -> &[(Time, FlowId)] {
        self.of_host.get(host.index()).map_or(&[], Vec::as_slice)
    }

    /// Whether a flow is followed.
    #[inline]
    pub fn has(&self, flow: FlowId) -> bool {
        self.flows.has(flow)
    }
}

impl Chosen {
    #[inline]
    fn has(&self, flow: FlowId) -> bool {
        self.0.as_ref().is_none_or(|flows| flows.get(flow.index()).copied().unwrap_or(true))
    }
}

/// How a scenario names flows: each list that is not empty must have them.
struct Choice<'a> {
    flows: &'a [u32],
    classes: &'a [String],
    hosts: &'a [String],
}

impl Choice<'_> {
    fn of(&self, scenario: &Scenario, fabric: &Fabric, flows: &FlowTable) -> Result<Chosen, Problem> {
        let hosts = listed(self.hosts, "hosts", |name| {
            let message = || format!("\"{name}\" is a switch, where no flow begins or ends; name a host");
            fabric.as_host(fabric.find(name)?).ok_or_else(|| Problem::new("", message()))
        })?;
        let classes = listed(self.classes, "classes", |name| {
            let known: Vec<&str> = scenario.classes().map(|class| class.name).collect();
            let place = known.iter().position(|known| *known == name);
            let message = || format!("there is no class \"{name}\"; there are \"{}\"", known.join("\", \""));
            place.map(|place| place as u16).ok_or_else(|| Problem::new("", message()))
        })?;
        let wanted: BTreeSet<FlowId> = self.flows.iter().map(|&flow| FlowId(flow)).collect();
        if let Some(place) = self.flows.iter().position(|&flow| flow as usize >= flows.len()) {
            let message = format!("there is no flow {}; there are {}, from 0 on", self.flows[place], flows.len());
            return Err(Problem::new(format!("flows[{place}]"), message));
        }
        let is_wanted = |id: FlowId, src: HostId, dst: HostId, class: u16| {
            (wanted.is_empty() || wanted.contains(&id))
                && (hosts.is_empty() || hosts.contains(&src) || hosts.contains(&dst))
                && (classes.is_empty() || classes.contains(&class))
        };
        let all = wanted.is_empty() && hosts.is_empty() && classes.is_empty();
        let of_flows =
            (0..).zip(flows.iter()).map(|(id, flow)| is_wanted(FlowId(id), flow.src, flow.dst, flow.class)).collect();
        Ok(Chosen((!all).then_some(of_flows)))
    }
}

/// From when on, and until when.
fn times(from: Duration, until: Option<Duration>) -> Result<(Time, Time), Problem> {
    let (begin, end) = (Time::ZERO + from, until.map_or(Time::MAX, |until| Time::ZERO + until));
    if end <= begin {
        return Err(Problem::new("until", format!("it must be later than from, which is {from}")));
    }
    Ok((begin, end))
}

/// The meaning of names. Errors say which of them.
fn listed<T>(names: &[String], key: &str, find: impl Fn(&str) -> Result<T, Problem>) -> Result<Vec<T>, Problem> {
    let each = names.iter().enumerate();
    each.map(|(place, name)| find(name).map_err(|problem| problem.under(format!("{key}[{place}]")))).collect()
}
