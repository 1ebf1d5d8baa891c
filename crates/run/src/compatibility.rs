//! Which settings can't be combined in a run, and why: one rule each, in the order in which they are checked. Rules of
//! tables named `ADVICE` refuse nothing: the setting that they name has no effect, which a result says.
//!
//! A rule sees a scenario and what its schemes declare; no node is built for it. A scenario is also checked by its
//! reader (`scenario::Scenario::check`: mistakes that show without a network), by its schemes (`check` and `check_on`:
//! what each needs of its settings and of the network), and by the plan (names, numbers, memory).

use catalogue::Transport;
use contract::{Family, SwitchRequirements};
use fabric::{Fabric, FailureSpec};
use node::packet::CLASSES;
use node::{Buffer, MarkAt, Overflow};
use scenario::{EntitySpec, Scenario};
use units::{Duration, Problem, Rate};

/// A rule: where `when` finds something, `key` is refused, or has no effect, `because`. The findings fill the places
/// `{0}`, `{1}`, ... of both.
struct Rule<When> {
    key: &'static str,
    when: When,
    because: &'static str,
}

/// The words that a broken rule puts into its message.
type Found = Option<Vec<String>>;

type OfRun = fn(&Facts<'_>) -> Found;
type OfScenario = fn(&Scenario) -> Found;
type OfFabric = fn(&Fabric) -> Found;
type OfNetwork = fn(&Scenario, &Fabric) -> Found;

const fn rule<When: Copy>(key: &'static str, when: When, because: &'static str) -> Rule<When> {
    Rule { key, when, because }
}

impl<When> Rule<When> {
    fn problem(&self, found: &[String]) -> Problem {
        let fill = |text: &str| {
            let places = found.iter().enumerate();
            places.fold(text.to_owned(), |text, (place, word)| text.replace(&format!("{{{place}}}"), word))
        };
        Problem::new(fill(self.key), fill(self.because))
    }
}

/// The first of these rules that is broken.
fn first_broken<When>(rules: &[Rule<When>], find: impl Fn(&When) -> Found) -> Option<(usize, Problem)> {
    let mut rules = rules.iter().enumerate();
    rules.find_map(|(index, rule)| Some((index, rule.problem(&find(&rule.when)?))))
}

/// All of these rules that are broken.
fn all_broken<When>(rules: &[Rule<When>], find: impl Fn(&When) -> Found) -> Vec<Problem> {
    rules.iter().filter_map(|rule| Some(rule.problem(&find(&rule.when)?))).collect()
}

fn refuse_first<When>(rules: &[Rule<When>], find: impl Fn(&When) -> Found) -> Result<(), Problem> {
    first_broken(rules, find).map_or(Ok(()), |(_, problem)| Err(problem))
}

macro_rules! found {
    ($($word:expr),*) => { Some(vec![$($word.to_string()),*]) };
}

// After the macro, which it uses.
mod links;
mod sense;

pub(crate) use sense::{Outcome, doubts, doubts_of_outcome, doubts_of_results};

pub use links::{check_links, check_links_flows, check_links_network, check_links_ways, links_advice};

/// The inputs of rules of simulations.
pub(crate) struct Facts<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The transports that carry its traffic.
    pub transports: &'a [Transport],
    /// Where in the scenario each is first named.
    pub keys: &'a [String],
    /// The requirements of each on switches.
    pub requirements: &'a [SwitchRequirements],
}

/// Refuses what neither a simulation nor a live run can have together.
pub(crate) fn check(facts: &Facts<'_>) -> Result<(), Problem> {
    refuse_first(RULES, |when| when(facts))
}

const RULES: &[Rule<OfRun>] = &[
    rule(
        "{0}",
        two_reserve,
        "needs the traffic classes from 0 on for itself, and so does {1} with the settings of {2}; only one transport \
         of a run can have them",
    ),
    rule(
        "sharing",
        reserved_beside_limiters,
        "its limiters would queue packets of {0} behind other traffic and change their pacing, so that the guarantees \
         of {0} would not hold; share by \"aq\" or \"physical_queue\"",
    ),
    rule(
        "flow_control",
        reserved_held_back,
        "may pause class {1}, and {0} has the classes 0 to {2} for itself, whose guarantees do not hold under pauses; \
         let flow control pause only classes from {3} on",
    ),
    rule(
        "flow_control",
        reserved_beside_schedule,
        "divides memory and serves queues by settings of its own, and {0} has the classes 0 to {1} for itself, whose \
         guarantees do not hold then; use pfc",
    ),
    rule(
        "switch.levels[{2}]",
        reserved_in_turn,
        "{0} has the classes 0 to {1} for itself, with strict priority; give each of them a level of its own",
    ),
    rule(
        "switch.overflow",
        reserved_beside_trimmed,
        "trims packets and sends their headers in class 0, which {0} has for itself; drop packets instead",
    ),
    rule(
        "switch.early_drop",
        reserved_dropped_early,
        "would drop packets of {0} too, which guarantees that no packet is dropped; delete it",
    ),
    rule(
        "{1}",
        tables_one_by_one,
        "{0} assumes that all nodes change their routing tables at the same time; otherwise its broadcasts could loop \
         and multiply; delete it, or choose another transport",
    ),
    rule(
        "entity[{1}].request",
        asked_without_tags,
        "asks for AQs, and packets of {0} carry routes or flow labels where others carry AQ tags, so that no AQ sees \
         them; let this entity have other traffic, or choose another transport",
    ),
    rule(
        "switch.balancing",
        labels_unread,
        "{0} chooses paths by flow labels, and only ECMP hashes those; write \"ecmp\"",
    ),
    rule(
        "{0}",
        two_bring_queues,
        "{1} and {2} both replace the queues of switches, and a switch has one kind of queue; run them separately",
    ),
    rule(
        "switch.early_drop",
        early_drop_without_marking,
        "needs switch.marking, which sets the queue lengths at which packets are dropped",
    ),
    rule(
        "failure[{0}].rate",
        slow_heads,
        "at this rate a packet of {1}B takes more than 4ms, which is too long for switch.cut_through; write at least \
         {2}",
    ),
    rule(
        "link.llr",
        retry_beside_reserved,
        "repeats packets and sends messages between them, and {0} guarantees how long packets wait; delete it, or \
         choose another transport",
    ),
    rule(
        "flow_control",
        memory_set_aside_twice,
        "sets memory aside for each port, and the alpha of switch.buffer.shared would drop what has room there; delete \
         alpha",
    ),
    rule(
        "flow_control",
        queues_beside_control,
        "{0} replaces the queues of switches, and flow control cannot work on those; delete it, or choose another \
         transport",
    ),
    rule(
        "host.cpu",
        reserved_beside_software,
        "lets packets wait for cores, and {0} guarantees how long packets wait; delete it, or choose another transport",
    ),
    rule(
        "host.cpu",
        software_beside_control,
        "has packets between transports and the NIC, which flow control could not hold back there; delete it, or \
         flow_control",
    ),
    rule(
        "{1}",
        queues_beside_reserved,
        "{0} replaces the queues of switches, and its queues keep no buffer space for {2}; choose another transport",
    ),
];

/// Settings without effect in a simulation or a live run, by the properties that its schemes declare.
pub(crate) fn advice(facts: &Facts<'_>) -> Vec<Problem> {
    all_broken(ADVICE, |when| when(facts))
}

const ADVICE: &[Rule<OfRun>] = &[
    rule(
        "switch.marking",
        marking_for_nobody,
        "has no effect: no transport of this scenario reacts to marks (dctcp does); delete it",
    ),
    rule(
        "switch.mark_at",
        mark_at_for_nobody,
        "has no effect: no transport of this scenario reacts to marks (dctcp does); delete it",
    ),
    rule(
        "entity[{0}].work_conserving",
        unshared_entity,
        "has no effect without sharing.{1}.work_conserving, because every AQ is a fixed cap then; delete it",
    ),
    rule(
        "fast_forward",
        never_recurs,
        "\"exact\" has no effect: it skips only what recurs, and with {0} nothing does, as in a real network; write \
         timing = \"ideal\" without that key, or \"approximate\"",
    ),
    rule(
        "host.jitter",
        jitter_beside_retry,
        "has no effect with link.llr, since the NIC itself handles the packets of link-level retry; delete it",
    ),
    rule(
        "flow_control",
        flows_beside_classes,
        "queues packets by flow and not by class, so that switch.levels and the alpha of switch.buffer.shared have no \
         effect; delete them",
    ),
    rule(
        "switch",
        queues_beside_classes,
        "{0} replaces the queues of switches, so that levels and the alpha of buffer.shared have no effect; delete \
         them",
    ),
    rule(
        "switch.levels",
        levels_beside_schedule,
        "has no effect: {0} serves queues in an order of its own; delete it, and write flow_control.{0}.schedule",
    ),
    rule(
        "switch.overflow",
        overflow_beside_pools,
        "has no effect: a packet that finds no room in the pools of {0} is lost; delete it",
    ),
    rule(
        "switch.buffer",
        alpha_beside_pools,
        "has an alpha without effect: {0} divides memory by settings of its own; delete it, and write \
         flow_control.{0}.queue",
    ),
    rule(
        "switch.early_drop",
        queues_beside_early_drop,
        "has no effect, because {0} replaces the queues of switches; delete it",
    ),
];

/// Refuses what an estimate at flow level doesn't know, before anything of it is worked out.
pub fn check_flow_level(scenario: &Scenario) -> Result<(), Problem> {
    refuse_first(FLOW_LEVEL, |when| when(scenario))
}

/// The same, of its network.
pub fn check_flow_level_network(scenario: &Scenario, fabric: &Fabric) -> Result<(), Problem> {
    refuse_first(FLOW_LEVEL_NETWORK, |when| when(scenario, fabric))
}

/// Settings without effect at flow level.
pub fn flow_level_advice(scenario: &Scenario) -> Vec<Problem> {
    all_broken(FLOW_LEVEL_ADVICE, |when| when(scenario))
}

const FLOW_LEVEL: &[Rule<OfScenario>] = &[
    rule("failure", fails, "links and switches do not fail at flow level; run it at packet level, or delete it"),
    rule(
        "host.cpu",
        software_takes_time,
        "flow level has no packets that cores could spend time on; run it at packet level, or delete it",
    ),
    rule(
        "sharing",
        shares,
        "at flow level all flows share max-min fairly, whichever entity they belong to; run it at packet level, or \
         delete it",
    ),
];

const FLOW_LEVEL_ADVICE: &[Rule<OfScenario>] = &[
    rule(
        "link.llr",
        links_repeat,
        "at flow level links have no errors, so that there is nothing to repeat; run it at packet level for that",
    ),
    rule(
        "measure.arrivals",
        arrivals_noted,
        "flow level has no packets, so that there are no arrivals to record; run it at packet level for that",
    ),
    rule("measure.packets", packets_recorded, "flow level has no packets to record; run it at packet level for that"),
    rule(
        "measure.events",
        events_recorded,
        "flow level has no packets to which anything happens; run it at packet level for that",
    ),
    rule(
        "measure.ports",
        ports_watched,
        "flow level has no queues, and the table utilisation has its links; run it at packet level for that",
    ),
    rule(
        "measure.flows",
        flows_followed,
        "at flow level no transport acts, so that there is no window and no token to record; run it at packet \
         level for that",
    ),
];

const FLOW_LEVEL_NETWORK: &[Rule<OfNetwork>] = &[rule(
    "host.intake_rate",
    intake_of_several_links,
    "{0} has {1} links, and at flow level a host that takes in slowly has one; run it at packet level, or delete it",
)];

/// The transport that has the first classes for itself.
struct Reserving {
    index: usize,
    name: &'static str,
    classes: u8,
}

impl Facts<'_> {
    fn name(&self, index: usize) -> &'static str {
        self.transports[index].name()
    }

    /// By transport; the requirements of limiters' own packets, which come last, belong to no transport.
    fn of_transports(&self) -> impl Iterator<Item = (usize, &SwitchRequirements)> {
        self.requirements.iter().enumerate().take(self.transports.len())
    }

    fn reserves(&self) -> impl Iterator<Item = usize> {
        self.of_transports().filter(|of| of.1.reserved_classes > 0).map(|of| of.0)
    }

    fn reserving(&self) -> Option<Reserving> {
        let index = self.reserves().next()?;
        Some(Reserving { index, name: self.name(index), classes: self.requirements[index].reserved_classes })
    }

    fn brings_queues(&self) -> impl Iterator<Item = usize> {
        (0..self.transports.len()).filter(|&index| self.transports[index].as_scheme().capabilities().brings_queueing)
    }

    /// The transport that brings queues for all classes: what reserves some brings them for those alone, and leaves the
    /// others to the port's.
    fn brings_all_queues(&self) -> Option<usize> {
        self.brings_queues().next().filter(|&index| self.requirements[index].reserved_classes == 0)
    }

    /// Whether switches queue packets by class: not by flow, and not in queues that a transport brings.
    pub fn queues_by_class(&self) -> bool {
        let by_flow = self.scenario.flow_control.as_scheme().is_some_and(|control| control.keeps_flows());
        !by_flow && self.brings_all_queues().is_none()
    }

    /// The groups of classes that are served in turn. AQs that may use what others leave share it whatever class their
    /// transports are in: with strict priority between the classes of TCP and RDMA, whatever the first is lent goes
    /// before what the second is guaranteed, which then looks idle. Class 0 has acknowledgements and notifications.
    /// Transports that decide before they send may order messages by classes, and keep strict priority.
    pub fn levels(&self) -> Vec<Vec<u8>> {
        let switch = &self.scenario.switch;
        let lends = self.scenario.sharing.as_scheme().and_then(|scheme| scheme.tagging());
        let lends = lends.is_some_and(|tagging| tagging.work_conserving);
        let one_class = |transport: &Transport| transport.as_scheme().capabilities().family != Family::Proactive;
        match () {
            () if !self.queues_by_class() => Vec::new(),
            () if switch.levels.is_empty() && lends && self.transports.iter().all(one_class) => {
                vec![(1..CLASSES as u8).collect()]
            }
            () => switch.levels.clone(),
        }
    }

    /// How a switch's memory is divided. Where queues are none of classes, alpha has no effect.
    pub fn buffer(&self) -> Buffer {
        match self.scenario.switch.buffer {
            Buffer::Shared { bytes, .. } if !self.queues_by_class() => Buffer::Shared { bytes, alpha: None },
            buffer => buffer,
        }
    }

    /// Whether switches drop early what they would mark, as the scenario says.
    pub fn drops_early(&self) -> bool {
        self.scenario.switch.early_drop && self.brings_all_queues().is_none()
    }

    fn understands_marks(&self) -> bool {
        self.requirements.iter().any(|required| required.signal.marking().is_some())
    }

    /// Whether switches are set to tell classes apart beyond their order.
    fn tells_classes_apart(&self) -> bool {
        let switch = &self.scenario.switch;
        !switch.levels.is_empty() || matches!(switch.buffer, Buffer::Shared { alpha: Some(_), .. })
    }
}

fn two_reserve(facts: &Facts<'_>) -> Found {
    let mut reserves = facts.reserves();
    let (first, other) = (reserves.next()?, reserves.next()?);
    found![facts.keys[other], facts.name(first), facts.keys[first]]
}

fn reserved_beside_limiters(facts: &Facts<'_>) -> Found {
    let reserving = facts.reserving()?;
    facts.scenario.sharing.as_scheme().filter(|scheme| scheme.limits_hosts())?;
    found![reserving.name]
}

fn reserved_held_back(facts: &Facts<'_>) -> Found {
    let Reserving { name, classes, .. } = facts.reserving()?;
    let held = facts.scenario.flow_control.as_scheme()?.held_classes();
    let class = (0..classes).find(|class| held >> class & 1 == 1)?;
    found![name, class, classes - 1, classes]
}

fn reserved_beside_schedule(facts: &Facts<'_>) -> Found {
    let Reserving { name, classes, .. } = facts.reserving()?;
    facts.scenario.flow_control.as_scheme().filter(|control| control.schedules())?;
    found![name, classes - 1]
}

fn reserved_in_turn(facts: &Facts<'_>) -> Found {
    let Reserving { name, classes, .. } = facts.reserving()?;
    let mixed = |level: &Vec<u8>| level.len() > 1 && level.iter().any(|class| *class < classes);
    let level = facts.scenario.switch.levels.iter().position(mixed)?;
    found![name, classes - 1, level]
}

fn reserved_beside_trimmed(facts: &Facts<'_>) -> Found {
    let reserving = facts.reserving()?;
    facts.scenario.switch.overflow.filter(|overflow| *overflow == Overflow::Trim)?;
    found![reserving.name]
}

fn reserved_dropped_early(facts: &Facts<'_>) -> Found {
    let reserving = facts.reserving()?;
    if facts.scenario.switch.early_drop { found![reserving.name] } else { None }
}

fn tables_one_by_one(facts: &Facts<'_>) -> Found {
    let (index, _) = facts.of_transports().find(|of| of.1.same_tables)?;
    let Scenario { reroute_per_hop, reroute_compute_max, .. } = *facts.scenario;
    let set = [("reroute_per_hop", reroute_per_hop), ("reroute_compute_max", reroute_compute_max)];
    let (key, _) = set.into_iter().find(|of| of.1 != Duration::ZERO)?;
    found![facts.name(index), key]
}

fn asked_without_tags(facts: &Facts<'_>) -> Found {
    let scenario = facts.scenario;
    scenario.sharing.as_scheme()?.tagging()?;
    let asked_of = |name: &str| {
        let carries = |class: &str| scenario.classes().any(|of| of.name == class && of.transport.name() == name);
        let asks_for_it = |entity: &EntitySpec| {
            let named = entity.transports.iter().any(|of| of == name) || entity.traffic.iter().any(|of| carries(of));
            named && !entity.request.is_empty()
        };
        scenario.entity.iter().position(asks_for_it)
    };
    let mut untagged = facts.of_transports().filter(|of| of.1.own_routes || of.1.flow_labels);
    let (name, entity) = untagged.find_map(|(index, _)| Some((facts.name(index), asked_of(facts.name(index))?)))?;
    found![name, entity]
}

fn labels_unread(facts: &Facts<'_>) -> Found {
    let (index, _) = facts.of_transports().find(|of| of.1.flow_labels)?;
    facts.scenario.switch.balancing.filter(|balancing| !balancing.by_hash())?;
    found![facts.name(index)]
}

fn two_bring_queues(facts: &Facts<'_>) -> Found {
    let mut bring = facts.brings_queues();
    let (one, other) = (bring.next()?, bring.next()?);
    found![facts.keys[other], facts.name(one), facts.name(other)]
}

fn early_drop_without_marking(facts: &Facts<'_>) -> Found {
    let switch = &facts.scenario.switch;
    if switch.early_drop && switch.marking.is_none() { found![] } else { None }
}

fn marking_for_nobody(facts: &Facts<'_>) -> Found {
    let switch = &facts.scenario.switch;
    // Packets that are lost early are lost where marks would be set.
    let idle = switch.marking.is_some() && !switch.early_drop && !facts.understands_marks();
    if idle { found![] } else { None }
}

fn mark_at_for_nobody(facts: &Facts<'_>) -> Found {
    let idle = facts.scenario.switch.mark_at != MarkAt::default() && !facts.understands_marks();
    if idle { found![] } else { None }
}

/// Where switches cut through, what a packet notes of the time from its head to its tail has 32 bits of picoseconds.
fn slow_heads(facts: &Facts<'_>) -> Found {
    let scenario = facts.scenario;
    let mtu = scenario.host.mtu.get();
    let slow = |rate: Rate| rate.transmit(mtu).ps() > u64::from(u32::MAX);
    let is_slow = |spec: &FailureSpec| scenario.switch.cut_through && spec.rate.is_some_and(slow);
    let index = scenario.failure.iter().position(is_slow)?;
    let least = Rate::from_bps((mtu * 8_000_000_000_000).div_ceil(u64::from(u32::MAX)));
    found![index, mtu, least]
}

fn unshared_entity(facts: &Facts<'_>) -> Found {
    let sharing = &facts.scenario.sharing;
    sharing.as_scheme()?.tagging().filter(|tagging| !tagging.work_conserving)?;
    let index = facts.scenario.entity.iter().position(|spec| spec.work_conserving.is_some())?;
    found![index, sharing.name()]
}

fn flows_beside_classes(facts: &Facts<'_>) -> Found {
    let control = facts.scenario.flow_control.as_scheme()?;
    if control.keeps_flows() && facts.tells_classes_apart() { found![] } else { None }
}

fn retry_beside_reserved(facts: &Facts<'_>) -> Found {
    facts.scenario.link.llr.as_ref()?;
    found![facts.reserving()?.name]
}

fn jitter_beside_retry(facts: &Facts<'_>) -> Found {
    facts.scenario.link.llr.as_ref()?;
    facts.scenario.host.jitter.filter(|&jitter| jitter > Duration::ZERO)?;
    found![]
}

fn never_recurs(facts: &Facts<'_>) -> Found {
    let scenario = facts.scenario;
    if scenario.skips() == scenario.fast_forward { None } else { found![scenario.never_recurs()?] }
}

fn memory_set_aside_twice(facts: &Facts<'_>) -> Found {
    let control = facts.scenario.flow_control.as_scheme()?;
    let alpha = matches!(facts.scenario.switch.buffer, Buffer::Shared { alpha: Some(_), .. });
    if control.reserves_buffer() && alpha { found![] } else { None }
}

fn queues_beside_control(facts: &Facts<'_>) -> Found {
    let index = facts.brings_queues().next()?;
    facts.scenario.flow_control.as_scheme()?;
    found![facts.name(index)]
}

fn queues_beside_reserved(facts: &Facts<'_>) -> Found {
    let (index, reserving) = (facts.brings_queues().next()?, facts.reserving()?);
    if index == reserving.index { None } else { found![facts.name(index), facts.keys[index], reserving.name] }
}

fn queues_beside_classes(facts: &Facts<'_>) -> Found {
    let index = facts.brings_all_queues()?;
    if facts.tells_classes_apart() { found![facts.name(index)] } else { None }
}

fn queues_beside_early_drop(facts: &Facts<'_>) -> Found {
    let index = facts.brings_all_queues()?;
    if facts.scenario.switch.early_drop { found![facts.name(index)] } else { None }
}

/// The name of a flow control that divides memory and serves queues by settings of its own.
fn scheduler(facts: &Facts<'_>) -> Option<&'static str> {
    let control = &facts.scenario.flow_control;
    control.as_scheme().filter(|scheme| scheme.schedules()).map(|_| control.name())
}

fn levels_beside_schedule(facts: &Facts<'_>) -> Found {
    let name = scheduler(facts)?;
    if facts.scenario.switch.levels.is_empty() { None } else { found![name] }
}

fn overflow_beside_pools(facts: &Facts<'_>) -> Found {
    let name = scheduler(facts)?;
    if facts.scenario.switch.overflow.is_some() { found![name] } else { None }
}

fn alpha_beside_pools(facts: &Facts<'_>) -> Found {
    let name = scheduler(facts)?;
    if matches!(facts.scenario.switch.buffer, Buffer::Shared { alpha: Some(_), .. }) { found![name] } else { None }
}

fn fails(scenario: &Scenario) -> Found {
    if scenario.failure.is_empty() { None } else { found![] }
}

fn links_repeat(scenario: &Scenario) -> Found {
    scenario.link.llr.as_ref()?;
    found![]
}

fn shares(scenario: &Scenario) -> Found {
    scenario.sharing.as_scheme()?;
    found![]
}

fn arrivals_noted(scenario: &Scenario) -> Found {
    if scenario.measure.arrivals.is_empty() { None } else { found![] }
}

fn packets_recorded(scenario: &Scenario) -> Found {
    scenario.measure.packets.as_ref()?;
    found![]
}

fn events_recorded(scenario: &Scenario) -> Found {
    if scenario.measure.events.is_empty() { None } else { found![] }
}

fn ports_watched(scenario: &Scenario) -> Found {
    if scenario.measure.ports.is_empty() { None } else { found![] }
}

fn flows_followed(scenario: &Scenario) -> Found {
    scenario.measure.flows.as_ref()?;
    found![]
}

fn reserved_beside_software(facts: &Facts<'_>) -> Found {
    let reserving = facts.reserving()?;
    software_takes_time(facts.scenario)?;
    found![reserving.name]
}

fn software_beside_control(facts: &Facts<'_>) -> Found {
    facts.scenario.flow_control.as_scheme()?;
    software_takes_time(facts.scenario)
}

fn software_takes_time(scenario: &Scenario) -> Found {
    scenario.host.cpu?;
    found![]
}

fn intake_of_several_links(scenario: &Scenario, fabric: &Fabric) -> Found {
    scenario.host.intake_rate?;
    several_links(fabric)
}

fn several_links(fabric: &Fabric) -> Found {
    let host = fabric.several_links()?;
    found![fabric.names[host.index()], fabric.uplinks(host).len()]
}

#[cfg(test)]
mod tests;
