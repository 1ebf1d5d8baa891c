//! The entities of a plan: which packets belong to each, and which shares they request on which links.

use std::collections::{BTreeMap, BTreeSet};

use contract::CongestionSignal;
use contract::sharing::{AqId, Hose, Ids, Place, Position, Request, Share, Step, portion};
use fabric::{Fabric, Quotient};
use node::Packet;
use units::{Duration, FlowId, HostId, LinkId, Problem, Rate, SwitchId, Time};

use crate::{FlowInfo, FlowTable, WorkloadPlan};
use scenario::{Each, EntitySpec, RequestSpec, Scenario};

/// The entities of a run.
#[derive(Debug, Default)]
pub struct Entities {
    /// Their names, in the scenario's order.
    pub names: Vec<String>,
    /// Per traffic class, the entity that it belongs to.
    of_class: Vec<Option<u16>>,
    /// Per host, the entity that it belongs to.
    of_host: Vec<Option<u16>>,
    members: u32,
    /// The owner of each AQ id; the first id is 1.
    owners: Vec<(u16, Position)>,
    /// The requests, in the scenario's order.
    pub requests: Vec<Asked>,
    /// The AQs of packets that have none: where, and their share.
    pub untagged: Vec<(SwitchId, AqId, Place)>,
    /// Per flow, its tags as its own group's; empty if no group asks for anything.
    flow_tags: Vec<[u32; 2]>,
    /// Per host, its tags as a host's: on what it sends at ingress, on what it receives at egress.
    host_tags: Vec<[u32; 2]>,
    /// Per id, from the first, how long a full packet takes at the least rate that it is guaranteed in any switch;
    /// empty where no AQs are.
    full_packet: Vec<Duration>,
}

/// A request of one member of an entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The entity.
    pub entity: u16,
    /// Which of the entity's requests.
    pub index: usize,
    /// The part's number, counted over all entities.
    member: u32,
    /// Which part of the entity it is for.
    pub part: AqScope,
    /// Whether the requested rate is also its cap, even when others leave bandwidth unused.
    pub capped: bool,
    /// Whether the threshold of marks follows from the AQ's rate: the entity sets none.
    pub derive_threshold: bool,
    /// The id that its packets are tagged with.
    pub id: AqId,
    /// The link and pipeline.
    pub place: Place,
    /// The switch that has that pipeline.
    pub switch: SwitchId,
    /// How much.
    pub share: Share,
    /// The signal of its congestion control.
    pub feedback: CongestionSignal,
    /// From when on.
    pub start: Time,
    /// Until when.
    pub end: Option<Time>,
    /// The hosts whose sending it is about.
    pub senders: Vec<HostId>,
    /// The hosts whose receiving it is about.
    pub receivers: Vec<HostId>,
}

/// Which part of an entity an AQ is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AqScope {
    /// All of an entity.
    Whole,
    /// One host of the entity.
    Host(HostId),
    /// One flow of the entity.
    Flow(FlowId),
}

/// A part of an entity that has AQs of its own.
struct Member {
    part: AqScope,
    flows: Vec<FlowId>,
    hosts: Vec<HostId>,
}

impl Entities {
    /// Works out what a scenario says, with keys as in it.
    pub fn new(scenario: &Scenario, work: &WorkloadPlan) -> Result<Entities, Problem> {
        let (fabric, flows) = (&work.fabric, &work.flows);
        let mut entities = Entities {
            of_class: vec![None; scenario.classes().count()],
            of_host: vec![None; fabric.hosts as usize],
            ..Entities::default()
        };
        let mut ids = Ids::default();
        for (index, spec) in scenario.entity.iter().enumerate() {
            let result = entities.add(index as u16, spec, &mut ids, scenario, work);
            result.map_err(|problem| problem.under(format!("entity[{index}]")))?;
        }
        entities.check_flows(flows)?;
        if let Some(tagging) = scenario.sharing.as_scheme().and_then(|scheme| scheme.tagging()) {
            if tagging.untagged.is_some() {
                let under = |problem: Problem| problem.under(scenario.sharing.name()).under("sharing");
                entities.add_untagged(fabric, &mut ids).map_err(under)?;
            }
            entities.full_packet = vec![Duration::ZERO; entities.owners.len()];
            for (asked, rate) in entities.requests.iter().zip(entities.rates(fabric)) {
                // Requests that come to nothing are declined later.
                let longest = &mut entities.full_packet[asked.id.tag() as usize - 1];
                let rate = Rate::from_bps(rate.mul_f64(1.0 - tagging.headroom).bps().max(1));
                *longest = (*longest).max(rate.transmit(scenario.host.mtu.get()));
            }
        }
        Ok(entities)
    }

    /// The tags of a packet that its source is about to send.
    #[inline]
    pub fn tags(&self, flows: &FlowTable, packet: &Packet) -> [u32; 2] {
        // Answers to a group's data are not the group's: they go the other way.
        let forth = flows.try_get(packet.flow).is_some_and(|flow| flow.src == packet.src);
        let [ingress, egress] = match self.flow_tags.get(packet.flow.index()) {
            Some(&tags) if forth => tags,
            _ => [0, 0],
        };
        let or = |tag: u32, host: HostId, position: Position| {
            if tag != 0 { tag } else { self.host_tags.get(host.index()).map_or(0, |tags| tags[position as usize]) }
        };
        [or(ingress, packet.src, Position::Ingress), or(egress, packet.dst, Position::Egress)]
    }

    /// How long a full packet of a flow takes at the rates that its AQs guarantee while no entity is idle. Several AQs
    /// may have the same id, and the path decides which of them a packet meets. So the slowest in each pipeline counts.
    pub fn virtual_serialisation(&self, flow: FlowId, src: HostId, dst: HostId) -> Duration {
        let of_flow = self.flow_tags.get(flow.index()).copied().unwrap_or_default();
        let tag = |host: HostId, position: usize| match of_flow[position] {
            0 => self.host_tags.get(host.index()).map_or(0, |tags| tags[position]),
            tag => tag,
        };
        let full = |tag: u32| (tag as usize).checked_sub(1).and_then(|at| self.full_packet.get(at)).copied();
        [tag(src, 0), tag(dst, 1)].into_iter().filter_map(full).fold(Duration::ZERO, |sum, each| sum + each)
    }

    /// Whether a flow's packets have no AQ anywhere.
    pub fn is_untagged(&self, flows: &FlowTable, flow: FlowId) -> bool {
        let info = flows.get(flow);
        let of_host =
            |host: HostId, position: usize| self.host_tags.get(host.index()).is_some_and(|tags| tags[position] != 0);
        let of_flow = self.flow_tags.get(flow.index()).is_some_and(|tags| *tags != [0, 0]);
        !of_flow && !of_host(info.src, 0) && !of_host(info.dst, 1)
    }

    /// Whether any packet is tagged.
    pub fn tag_anything(&self) -> bool {
        !self.requests.is_empty()
    }

    /// The entities whose data packet this is, as it comes in: that of its flow's class or source, and that of its
    /// destination; none of an answer.
    #[inline]
    pub fn of(&self, flow: &FlowInfo, packet: &Packet) -> [Option<u16>; 3] {
        if packet.payload_bytes == 0 || packet.src != flow.src {
            return [None; 3];
        }
        let host = |host: HostId| self.of_host[host.index()];
        [self.of_class[usize::from(flow.class)], host(flow.src), host(flow.dst)]
    }

    /// The same for a packet from outside, which has the tags of its two hosts and of no flow.
    #[inline]
    pub fn of_outside(&self, packet: &Packet) -> [Option<u16>; 3] {
        [None, self.of_host[packet.src.index()], self.of_host[packet.dst.index()]]
    }

    /// The entity and the pipeline that a tag stands for.
    pub fn owner(&self, tag: u32) -> Option<(u16, Position)> {
        self.owners.get((tag as usize).checked_sub(1)?).copied()
    }

    /// A share of packets without a tag that comes to nothing.
    pub fn idle_untagged(&self, scenario: &Scenario) -> Option<Problem> {
        scenario.sharing.as_scheme()?.tagging()?.untagged?;
        let message =
            "has no effect, because all AQs are on hosts' own links, which carry no untagged packets; delete it";
        let problem = Problem::new("untagged", message).under(scenario.sharing.name()).under("sharing");
        self.untagged.is_empty().then_some(problem)
    }

    /// An AQ for packets without one in each pipeline of each switch's own links in which any is asked for.
    fn add_untagged(&mut self, fabric: &Fabric, ids: &mut Ids) -> Result<(), Problem> {
        let own = |asked: &&Asked| fabric.as_switch(fabric.link(asked.place.link).from) == Some(asked.switch);
        let places: BTreeSet<(SwitchId, Place)> =
            self.requests.iter().filter(own).map(|asked| (asked.switch, asked.place)).collect();
        for (switch, place) in places {
            let id = ids
                .next_id()
                .ok_or_else(|| Problem::new("untagged", "more than 2^32 - 1 AQs are requested; request fewer"))?;
            self.untagged.push((switch, id, place));
        }
        Ok(())
    }

    /// The requests and releases at each switch, in order of time. At equal times releases come first, to make room for
    /// requests. `untagged` is the share of packets without an AQ.
    pub fn steps(&self, untagged: Option<Share>) -> BTreeMap<SwitchId, Vec<(Time, Step)>> {
        let mut steps: BTreeMap<SwitchId, Vec<(Time, Step)>> = BTreeMap::new();
        for &(switch, id, place) in &self.untagged {
            let share = untagged.expect("it was asked for");
            let request = Request::new(share, CongestionSignal::Drop, place);
            steps.entry(switch).or_default().push((Time::ZERO, Step::Request(id, request)));
        }
        for asked in &self.requests {
            let Asked { share, feedback, derive_threshold, capped, place, .. } = *asked;
            let at = steps.entry(asked.switch).or_default();
            let request = Request { share, feedback, derive_threshold, capped, place };
            at.push((asked.start, Step::Request(asked.id, request)));
            at.extend(asked.end.map(|end| (end, Step::Release(asked.id))));
        }
        for at in steps.values_mut() {
            at.sort_by_key(|(at, step)| (*at, matches!(step, Step::Request(..))));
        }
        steps
    }

    /// The bandwidth of each request if all entities were there at once and none was idle.
    pub fn rates(&self, fabric: &Fabric) -> Vec<Rate> {
        let mut links: BTreeMap<LinkId, (u64, u64)> = BTreeMap::new();
        for asked in &self.requests {
            let (absolute, weights) = links.entry(asked.place.link).or_default();
            match asked.share {
                Share::Absolute(rate) => *absolute += rate.bps(),
                Share::Weight(weight) => *weights += u64::from(weight),
            }
        }
        let rate = |asked: &Asked| match asked.share {
            Share::Absolute(rate) => rate,
            Share::Weight(weight) => {
                let (absolute, weights) = links[&asked.place.link];
                let left = fabric.link(asked.place.link).rate.bps().saturating_sub(absolute);
                Rate::from_bps(portion(left, u64::from(weight), u128::from(weights)))
            }
        };
        self.requests.iter().map(rate).collect()
    }

    /// By host, what limiters at hosts let out of it and into it: a request's bandwidth, divided evenly among the hosts
    /// that it is about. A host can be limited for one entity alone.
    pub(crate) fn hoses(&self, fabric: &Fabric) -> Result<Vec<Hose>, Problem> {
        let mut hoses = vec![[None; 2]; fabric.hosts as usize];
        let mut owners: Vec<[Option<&Asked>; 2]> = vec![[None; 2]; fabric.hosts as usize];
        for (asked, rate) in self.requests.iter().zip(self.rates(fabric)) {
            if rate == Rate::ZERO {
                let message =
                    "comes to 0bps: write a weight of at least 1, and let absolute shares leave bandwidth for it";
                return Err(Problem::new(format!("entity[{}].request[{}].share", asked.entity, asked.index), message));
            }
            for (way, hosts) in [&asked.senders, &asked.receivers].into_iter().enumerate() {
                for host in hosts {
                    let each = Rate::from_bps((rate.bps() / hosts.len() as u64).max(1));
                    let hose = &mut hoses[host.index()][way];
                    match owners[host.index()][way].replace(asked) {
                        Some(other) if other.member != asked.member => {
                            let message = format!(
                                "host {} {} for \"{}\" too, and a host's limiter cannot tell the two apart; let each \
                                 host belong to one entity",
                                host.0,
                                ["sends", "receives"][way],
                                self.names[usize::from(other.entity)],
                            );
                            return Err(Problem::new(
                                format!("entity[{}].request[{}]", asked.entity, asked.index),
                                message,
                            ));
                        }
                        _ => *hose = Some(hose.map_or(each, |least: Rate| least.min(each))),
                    }
                }
            }
        }
        Ok(hoses.into_iter().map(|[outbound, inbound]| Hose { outbound, inbound }).collect())
    }

    fn add(
        &mut self,
        entity: u16,
        spec: &EntitySpec,
        ids: &mut Ids,
        scenario: &Scenario,
        work: &WorkloadPlan,
    ) -> Result<(), Problem> {
        let (fabric, flows) = (&work.fabric, &work.flows);
        if self.names.contains(&spec.name) {
            return Err(Problem::new(
                "name",
                format!("\"{}\" is the name of another entity; give each a different name", spec.name),
            ));
        }
        self.names.push(spec.name.clone());
        if spec.end.is_some_and(|end| end <= spec.start) {
            return Err(Problem::new("end", format!("must be later than start = \"{}\"", spec.start)));
        }
        let members = match (&spec.traffic[..], &spec.transports[..], &spec.hosts) {
            ([], [], Some(hosts)) => self.claim_hosts(entity, spec, hosts, scenario, fabric)?,
            (traffic @ [_, ..], [], None) => {
                let class = |(index, name): (usize, &String)| {
                    scenario.classes().position(|class| class.name == name).ok_or_else(|| {
                        let known: Vec<&str> = scenario.classes().map(|class| class.name).collect();
                        let message =
                            format!("there is no traffic class \"{name}\"; the scenario has {}", known.join(", "));
                        Problem::new(format!("traffic[{index}]"), message)
                    })
                };
                let classes = traffic.iter().enumerate().map(class).collect::<Result<Vec<_>, _>>()?;
                self.claim_classes(entity, spec, "traffic", &classes, scenario, flows)?
            }
            ([], transports @ [_, ..], None) => {
                let mut classes = Vec::new();
                for (index, name) in transports.iter().enumerate() {
                    let before = classes.len();
                    let of = scenario.classes().enumerate().filter(|(_, class)| class.transport.name() == name);
                    classes.extend(of.map(|of| of.0));
                    if classes.len() == before {
                        let message = format!("no traffic class uses \"{name}\"; name a transport that one uses");
                        return Err(Problem::new(format!("transports[{index}]"), message));
                    }
                }
                self.claim_classes(entity, spec, "transports", &classes, scenario, flows)?
            }
            _ => {
                let message = "needs exactly one of `traffic`, `transports` and `hosts`, which say what belongs to \
                               the entity";
                return Err(Problem::new("", message));
            }
        };
        let feedback = match spec.feedback {
            Some(feedback) => feedback,
            None => default_feedback(&members, work)?,
        };
        self.requests.reserve(members.len() * spec.request.len());
        for member in members {
            self.ask(entity, spec, &member, feedback, ids, fabric, flows)?;
        }
        Ok(())
    }

    fn claim_hosts(
        &mut self,
        entity: u16,
        spec: &EntitySpec,
        hosts: &workload::Hosts,
        scenario: &Scenario,
        fabric: &Fabric,
    ) -> Result<Vec<Member>, Problem> {
        let hosts = hosts
            .resolve(&crate::workload_plan::fabric_view(fabric, &Quotient::new(fabric)))
            .map_err(|problem| problem.under("hosts"))?;
        for host in &hosts {
            if let Some(other) = self.of_host[host.index()].replace(entity) {
                let message = format!(
                    "host {} belongs to the entity \"{}\" already; leave it out of one of them",
                    host.0,
                    scenario.entity[usize::from(other)].name
                );
                return Err(Problem::new("hosts", message));
            }
        }
        match spec.each {
            Each::Entity => Ok(vec![Member { part: AqScope::Whole, flows: Vec::new(), hosts }]),
            Each::Host => {
                let member = |host| Member { part: AqScope::Host(host), flows: Vec::new(), hosts: vec![host] };
                Ok(hosts.into_iter().map(member).collect())
            }
            Each::Flow => Err(Problem::new(
                "each",
                "\"flow\" needs an entity of `traffic` or `transports`; for `hosts` write \"entity\" or \"host\"",
            )),
        }
    }

    fn claim_classes(
        &mut self,
        entity: u16,
        spec: &EntitySpec,
        key: &str,
        classes: &[usize],
        scenario: &Scenario,
        flows: &FlowTable,
    ) -> Result<Vec<Member>, Problem> {
        for &class in classes {
            if class >= scenario.first_socket_class() && !spec.request.is_empty() {
                let message = "messages of programs are not known beforehand, so that nothing can be requested for \
                               their classes; name the hosts instead";
                return Err(Problem::new(key, message));
            }
            if let Some(other) = self.of_class[class].replace(entity) {
                let name = scenario.classes().nth(class).map_or("", |class| class.name);
                let other = &scenario.entity[usize::from(other)].name;
                return Err(Problem::new(
                    key,
                    format!("class \"{name}\" belongs to the entity \"{other}\" already; leave it out of one of them"),
                ));
            }
        }
        let mine = |flow: &FlowId| self.of_class[usize::from(flows.get(*flow).class)] == Some(entity);
        let mine: Vec<FlowId> = (0..flows.len()).map(FlowId::from).filter(mine).collect();
        let member = |part, flows| Member { part, flows, hosts: Vec::new() };
        Ok(match spec.each {
            Each::Entity => vec![member(AqScope::Whole, mine)],
            Each::Flow => mine.into_iter().map(|flow| member(AqScope::Flow(flow), vec![flow])).collect(),
            Each::Host => {
                let mut by_host: BTreeMap<HostId, Vec<FlowId>> = BTreeMap::new();
                for flow in mine {
                    by_host.entry(flows.get(flow).src).or_default().push(flow);
                }
                by_host.into_iter().map(|(host, flows)| member(AqScope::Host(host), flows)).collect()
            }
        })
    }

    /// The requests of a member: an id for each pipeline that they name, and its packets tagged with it.
    #[expect(clippy::too_many_arguments, reason = "everything that a scenario's entity can refer to")]
    fn ask(
        &mut self,
        entity: u16,
        spec: &EntitySpec,
        member: &Member,
        feedback: CongestionSignal,
        ids: &mut Ids,
        fabric: &Fabric,
        flows: &FlowTable,
    ) -> Result<(), Problem> {
        let mut tags = [0; 2];
        let before = self.requests.len();
        let number = self.members;
        self.members += 1;
        for (index, request) in spec.request.iter().enumerate() {
            let under = |problem: Problem| problem.under(format!("request[{index}]"));
            let position = request.position as usize;
            if tags[position] == 0 {
                let id = ids
                    .next_id()
                    .ok_or_else(|| under(Problem::new("", "more than 2^32 - 1 AQs are requested; request fewer")))?;
                tags[position] = id.tag();
                self.owners.push((entity, request.position));
            }
            let id = AqId::from_tag(tags[position]).expect("just given");
            // A host's request at ingress is about what it sends, one at egress about what it receives.
            let ends = |position: Position, end: &dyn Fn(&FlowInfo) -> HostId| {
                let mut hosts: Vec<HostId> = member.flows.iter().map(|&flow| end(&flows.get(flow))).collect();
                hosts.extend(member.hosts.iter().filter(|_| request.position == position));
                hosts.sort_unstable();
                hosts.dedup();
                hosts
            };
            let (senders, receivers) =
                (ends(Position::Ingress, &|flow| flow.src), ends(Position::Egress, &|flow| flow.dst));
            for link in links(request, member, fabric).map_err(under)? {
                let switch = switch_of(fabric, link, request.position).map_err(under)?;
                if self.requests[before..].iter().any(|asked| asked.id == id && asked.switch == switch) {
                    let name = &fabric.names[fabric.switch_node(switch).index()];
                    let message = format!(
                        "two requests meet in the {} pipeline of {name}, and a packet has one AQ in each; name one \
                         link, or let each host ask for itself (each = \"host\")",
                        request.position.name(),
                    );
                    return Err(under(Problem::new("", message)));
                }
                self.requests.push(Asked {
                    entity,
                    index,
                    member: number,
                    part: member.part,
                    capped: spec.work_conserving == Some(false),
                    derive_threshold: spec.feedback.is_none(),
                    id,
                    place: Place { link, position: request.position },
                    switch,
                    share: request.share,
                    feedback,
                    start: spec.start,
                    end: spec.end,
                    senders: senders.clone(),
                    receivers: receivers.clone(),
                });
            }
        }
        if tags != [0, 0] && !member.flows.is_empty() {
            self.flow_tags.resize(flows.len(), [0, 0]);
            member.flows.iter().for_each(|flow| self.flow_tags[flow.index()] = tags);
        }
        if tags != [0, 0] && !member.hosts.is_empty() {
            self.host_tags.resize(fabric.hosts as usize, [0, 0]);
            member.hosts.iter().for_each(|host| self.host_tags[host.index()] = tags);
        }
        Ok(())
    }

    /// A packet has one tag a pipeline: no flow may be asked for twice in one.
    fn check_flows(&self, flows: &FlowTable) -> Result<(), Problem> {
        if self.flow_tags.is_empty() || self.host_tags.is_empty() {
            return Ok(());
        }
        for (flow, info) in flows.iter().enumerate() {
            for (position, host) in [(0, info.src), (1, info.dst)] {
                let (group, of_host) = (self.flow_tags[flow][position], self.host_tags[host.index()][position]);
                if let (Some((group, _)), Some((of_host, position))) = (self.owner(group), self.owner(of_host)) {
                    let message = format!(
                        "\"{}\" and \"{}\" both ask for the flow from host {} to host {} at {}; a packet has one AQ \
                         in each pipeline",
                        self.names[usize::from(group)],
                        self.names[usize::from(of_host)],
                        info.src.0,
                        info.dst.0,
                        position.name(),
                    );
                    return Err(Problem::new(format!("entity[{of_host}]"), message));
                }
            }
        }
        Ok(())
    }
}

/// The signal of all transports of an entity.
fn default_feedback(
    members: &[Member],
    WorkloadPlan { flows, requirements, attached, outside, .. }: &WorkloadPlan,
) -> Result<CongestionSignal, Problem> {
    let of_hosts: BTreeSet<HostId> = members.iter().flat_map(|member| &member.hosts).copied().collect();
    let of_host = |flow: &FlowInfo| of_hosts.contains(&flow.src) || of_hosts.contains(&flow.dst);
    let of_group = members.iter().flat_map(|member| &member.flows).map(|&flow| flows.get(flow));
    let mut transports: Vec<u8> = of_group.chain(flows.iter().filter(of_host)).map(|flow| flow.transport).collect();
    transports.extend(outside.filter(|_| attached.keys().any(|host| of_hosts.contains(host))));
    transports.sort_unstable();
    transports.dedup();
    let mut feedback = transports.iter().map(|&transport| requirements[usize::from(transport)].signal);
    let Some(first) = feedback.next() else { return Ok(CongestionSignal::Drop) };
    if feedback.any(|other| other != first) {
        let message = "is needed, because its transports react to different signals; write \"drop\", \"delay\" or { \
                       ecn = ... }";
        return Err(Problem::new("feedback", message));
    }
    Ok(first)
}

/// The links that a member's request is for.
fn links(request: &RequestSpec, member: &Member, fabric: &Fabric) -> Result<Vec<LinkId>, Problem> {
    let Some([from, to]) = &request.link else {
        let hosts = match (member.part, request.position) {
            // The traffic that a host sends of a group of flows shares its link; it arrives elsewhere.
            (AqScope::Host(host), Position::Ingress) => &[host][..],
            _ => &member.hosts,
        };
        if hosts.is_empty() {
            let message = "is needed for a group of flows; name the two ends of the link that it shares, such as \
                           [\"left\", \"right\"], or let each host ask for its own (each = \"host\", at ingress)";
            return Err(Problem::new("link", message));
        }
        if let Some(&host) = hosts.iter().find(|&&host| fabric.uplinks(host).len() > 1) {
            let (name, uplinks) = (&fabric.names[host.index()], fabric.uplinks(host));
            let switch = &fabric.names[fabric.link(uplinks[0]).to.index()];
            let ends = match request.position {
                Position::Ingress => [name, switch],
                Position::Egress => [switch, name],
            };
            let message = format!(
                "{name} has {} links, and an AQ controls one; write a request for each link that names it, such as \
                 {ends:?}",
                uplinks.len()
            );
            return Err(Problem::new("link", message));
        }
        let own = |&host: &HostId| match request.position {
            Position::Ingress => fabric.uplink(host),
            Position::Egress => Fabric::reverse(fabric.uplink(host)),
        };
        return Ok(hosts.iter().map(own).collect());
    };
    let find = |name: &str| fabric.find(name).map_err(|problem| problem.under("link"));
    let (a, b) = (find(from)?, find(to)?);
    let links: Vec<LinkId> = fabric.links_between(a, b).collect();
    match links.len() {
        1 => Ok(links),
        0 => Err(Problem::new("link", format!("there is no link from {from} to {to}; name two neighbours"))),
        several => Err(Problem::new(
            "link",
            format!(
                "there are {several} links from {from} to {to}, and an AQ controls one; name two nodes with one link \
                 between them"
            ),
        )),
    }
}

/// The switch in whose pipeline a link is controlled.
fn switch_of(fabric: &Fabric, link: LinkId, position: Position) -> Result<SwitchId, Problem> {
    let ends = fabric.link(link);
    match (fabric.as_switch(ends.from), position) {
        (Some(switch), _) => Ok(switch),
        (None, Position::Ingress) => Ok(fabric.as_switch(ends.to).expect("a host's link leads to a switch")),
        (None, Position::Egress) => {
            let message = "a host's own link ends at a switch's ingress, not at an egress; write \"ingress\"";
            Err(Problem::new("position", message))
        }
    }
}
