//! The settings as one switch has them: numbers by port, group, queue and class.

use std::collections::BTreeSet;

use node::Marking;
use node::mmu::{
    Colour, Curve, Level, Memory, Meter, Pool, PortProfile, Profile, Rates, Schedule, Threshold, Unit, Wred,
};
use node::packet::CLASSES;
use units::{Bytes, NodeId, PortId, Problem, Rate, SwitchId};

use super::{By, ColourSpec, Config, Ecn, LookupRow, MeterSpec, Side};
use crate::pfc::{self, Expiry, Quanta};
use contract::link_control::LinkView;

/// Bytes of a turn for each unit of weight. Any number gives the same shares; a smaller one gives shorter turns.
const TURN_BYTES: u32 = 2_048;
/// Bytes that a shaped queue may send at once, if the scenario does not say.
const BURST: Bytes = Bytes(16_000);
/// Light in fibre, in metres a second, as in SONiC's formula for headroom.
const LIGHT_M_PER_S: f64 = 198_000_000.0;
/// The share of the free memory of a group, where the scenario names no groups: that of PFC's default.
const ALPHA: f64 = 2.0;

/// By class of packets: where it is counted, and what it pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Classes {
    /// Its queue.
    pub queue: [u8; CLASSES],
    /// Its priority group.
    pub group: [u8; CLASSES],
    /// The queue that stops when a neighbour pauses the class.
    pub paused_queue: [u8; CLASSES],
    /// The classes whose groups pause, as bits.
    pub lossless: u8,
    /// The colour that its packets come with.
    pub colour: [Colour; CLASSES],
    /// The meter that measures it.
    pub meter: [Option<u8>; CLASSES],
}

impl Classes {
    pub fn new(config: &Config) -> Classes {
        let maps = &config.maps;
        let at = |map: &[u8], index: u8| map.get(usize::from(index)).copied().unwrap_or(index);
        let tc: [u8; CLASSES] = std::array::from_fn(|class| match maps.dscp.get(class) {
            Some(dscp) => maps.dscp_to_tc[usize::from(*dscp)],
            None => class as u8,
        });
        let lossless = |class: usize| u8::from(config.lossless.contains(&tc[class])) << class;
        Classes {
            queue: tc.map(|tc| at(&maps.tc_to_queue, tc)),
            group: tc.map(|tc| at(&maps.tc_to_group, tc)),
            paused_queue: tc.map(|tc| at(&maps.pfc_to_queue, tc)),
            lossless: (0..CLASSES).fold(0, |bits, class| bits | lossless(class)),
            colour: std::array::from_fn(|class| {
                let number = maps.dscp.get(class).and_then(|dscp| maps.dscp_to_colour.get(usize::from(*dscp)));
                Colour::ALL[usize::from(number.copied().unwrap_or(0))]
            }),
            meter: tc.map(|tc| config.meter.iter().position(|meter| meter.classes.contains(&tc)).map(|at| at as u8)),
        }
    }

    /// The classes of a group, as bits.
    pub fn of_group(&self, group: u8) -> u8 {
        (0..CLASSES).fold(0, |bits, class| bits | u8::from(self.group[class] == group) << class)
    }

    pub fn group_is_lossless(&self, group: u8) -> bool {
        self.of_group(group) & self.lossless != 0
    }
}

/// The classes that may be paused, as bits.
pub(super) fn lossless_classes(config: &Config) -> u8 {
    Classes::new(config).lossless
}

/// One switch.
pub(super) struct Resolved {
    pub classes: Classes,
    pub ingress: Memory,
    pub egress: Memory,
    /// By queue.
    pub wred: [Option<Wred>; CLASSES],
    pub meters: Vec<Meter>,
    /// Bytes of a full packet.
    pub mtu_bytes: u64,
    /// Where pauses end by themselves.
    pub expiry: Option<Box<Expiry>>,
    levels: Vec<Level>,
    rates: [Rates; CLASSES],
    port_rate: Option<(Rate, u64)>,
}

impl Resolved {
    /// The settings of a switch, or which of them can't be.
    pub fn new(config: &Config, view: &LinkView<'_>, switch: SwitchId) -> Result<Resolved, Problem> {
        let classes = Classes::new(config);
        let node = view.fabric.switch_node(switch);
        let ports = view.fabric.ports[node.index()].len();
        let groups = (0..ports).map(|port| groups(config, &classes, view, switch, PortId::from(port)));
        let groups: Vec<_> = groups.collect::<Result<_, _>>()?;
        let own: u64 = groups.iter().flatten().flatten().map(|of| of.headroom).sum();
        let memory = view.memory_bytes(node);
        let side = |side, default| {
            let pools: Vec<Pool> = pools_of(config, side)
                .map(|pool| Pool { bytes: pool.bytes.get(), headroom: pool.headroom.map(Bytes::get) })
                .collect();
            if pools.is_empty() { vec![default] } else { pools }
        };
        // Half of the memory may be headroom, which groups share if that is less than each could need.
        let headroom = own.min(memory / 2);
        let into = side(Side::Ingress, Pool { bytes: memory - headroom, headroom: Some(headroom) });
        let out = side(Side::Egress, Pool { bytes: memory, headroom: None });
        let headroom = |(index, pool): (usize, &Pool)| {
            let of_groups = groups.iter().flatten().flatten().filter(|of| of.pool == index).map(|of| of.headroom);
            pool.headroom.unwrap_or_else(|| of_groups.sum())
        };
        let needed: u64 = into.iter().enumerate().map(|at| at.1.bytes + headroom(at)).sum();
        let name = &view.fabric.names[node.index()];
        if needed > memory {
            let message = format!(
                "pools and headroom of {name} need {} and it has a buffer of {}; write a larger switch.buffer, or \
                 smaller pools",
                Bytes(needed),
                Bytes(memory)
            );
            return Err(Problem::new("pool", message));
        }
        let queues = vec![queues(config, &classes); ports];
        let memory = |side, pools, profiles| {
            let of_port = port_profiles(config, side);
            Memory::new(config.cell.map_or(1, Bytes::get), pools, profiles, &vec![of_port; ports]).map_err(|short| {
                let pool = pools_of(config, side).nth(short.pool).map_or("the default", |pool| &pool.name);
                let message = format!(
                    "{name} reserves {} in pool {pool}, which is smaller; write a larger pool, or smaller reserved",
                    Bytes(short.reserved)
                );
                Problem::new("pool", message)
            })
        };
        Ok(Resolved {
            classes,
            ingress: memory(Side::Ingress, into, groups)?,
            egress: memory(Side::Egress, out, queues)?,
            wred: std::array::from_fn(|queue| queue_spec(config, queue as u8).and_then(|spec| spec.ecn).map(wred)),
            meters: config.meter.iter().map(meter).collect(),
            mtu_bytes: view.mtu_bytes,
            expiry: Expiry::new(
                Quanta::new(config.quanta, config.refresh),
                (0..ports).map(|port| view.rate(node, PortId::from(port))),
            ),
            levels: levels(config),
            rates: std::array::from_fn(|queue| rates(config, queue as u8)),
            port_rate: config.max_rate.map(|rate| (rate, config.burst.unwrap_or(BURST).get())),
        })
    }

    /// The order of service of a port.
    pub fn schedule(&self) -> Schedule {
        Schedule::new(self.levels.clone(), self.rates, self.port_rate)
    }
}

fn pools_of(config: &Config, side: Side) -> impl Iterator<Item = &super::PoolSpec> {
    config.pool.iter().filter(move |pool| pool.side == side)
}

fn pool_number(config: &Config, side: Side, name: Option<&str>) -> usize {
    let of_name = |name| pools_of(config, side).position(|pool| pool.name == name).expect("checked with the settings");
    name.map_or(0, of_name)
}

fn threshold(alpha: Option<f64>, bytes: Option<Bytes>) -> Threshold {
    match (alpha, bytes) {
        (Some(alpha), _) => Threshold::Dynamic(alpha),
        (None, bytes) => Threshold::Static(bytes.map_or(u64::MAX, Bytes::get)),
    }
}

/// The headroom that suffices at a port: the packet that found no room below the limit, and those that arrive during
/// the reaction, of whatever size.
pub(super) fn needed(config: &Config, view: &LinkView<'_>, node: NodeId, port: PortId) -> u64 {
    pfc::in_cells(view.mtu_bytes + view.reaction_bytes(node, port), config.cell.map(Bytes::get))
}

/// By group: what it is given at a port. Groups of no class have nothing.
pub(super) fn groups(
    config: &Config,
    classes: &Classes,
    view: &LinkView<'_>,
    switch: SwitchId,
    port: PortId,
) -> Result<[Option<Profile>; CLASSES], Problem> {
    let mut profiles = [None; CLASSES];
    let node = view.fabric.switch_node(switch);
    for group in classes.group.into_iter().collect::<BTreeSet<u8>>() {
        let lossless = classes.group_is_lossless(group);
        let suffices = if lossless { needed(config, view, node, port) } else { 0 };
        let open = Profile {
            pool: 0,
            reserved: 0,
            threshold: Threshold::Dynamic(ALPHA),
            headroom: suffices,
            xon: 0,
            xon_offset: if lossless { 3_000 } else { 0 },
        };
        let at = config.group.iter().position(|spec| spec.groups.contains(&group));
        profiles[usize::from(group)] = Some(match at.map(|at| (at, &config.group[at])) {
            None => open,
            Some((at, spec)) => {
                let row = if lossless { lookup(&spec.lookup, view, switch, port) } else { Ok(None) };
                let row = row.map_err(|problem| problem.under(format!("group[{at}]")))?;
                let pool = pool_number(config, Side::Ingress, spec.pool.as_deref());
                match row {
                    Some(row) => Profile {
                        pool,
                        reserved: row.reserved.get(),
                        threshold: threshold(row.alpha, row.threshold),
                        headroom: row.headroom.get(),
                        xon: row.xon.get(),
                        xon_offset: row.xon_offset.get(),
                    },
                    None => Profile {
                        pool,
                        reserved: spec.reserved.get(),
                        threshold: threshold(spec.alpha, spec.threshold),
                        headroom: if lossless { spec.headroom.map_or(suffices, Bytes::get) } else { 0 },
                        xon: spec.xon.get(),
                        xon_offset: spec.xon_offset.get(),
                    },
                }
            }
        });
    }
    Ok(profiles)
}

/// The length of the cable at a port, in metres: what switches take to forward a packet is no part of it.
pub(super) fn cable_m(view: &LinkView<'_>, node: NodeId, port: PortId) -> f64 {
    let link = view.fabric.link(view.fabric.ports[node.index()][port.index()]);
    link.propagation.ps() as f64 / 1e12 * LIGHT_M_PER_S
}

/// The row for a port's link: of its rate, the shortest that is as long as the cable, or the longest.
pub(super) fn lookup<'a>(
    rows: &'a [LookupRow],
    view: &LinkView<'_>,
    switch: SwitchId,
    port: PortId,
) -> Result<Option<&'a LookupRow>, Problem> {
    if rows.is_empty() {
        return Ok(None);
    }
    let node = view.fabric.switch_node(switch);
    let rate = view.rate(node, port);
    let metres = cable_m(view, node, port);
    let of_rate = || rows.iter().filter(|row| row.rate == rate);
    let by_length = |a: &&LookupRow, b: &&LookupRow| a.cable_m.total_cmp(&b.cable_m);
    // Half a metre of tolerance: delays are written in whole nanoseconds.
    let long_enough = of_rate().filter(|row| row.cable_m + 0.5 >= metres).min_by(by_length);
    match long_enough.or_else(|| of_rate().max_by(by_length)) {
        Some(row) => Ok(Some(row)),
        None => {
            let name = &view.fabric.names[node.index()];
            let rates: BTreeSet<Rate> = rows.iter().map(|row| row.rate).collect();
            let rates = rates.iter().map(Rate::to_string).collect::<Vec<_>>().join(", ");
            let message = format!("has no row for the links of {name} at {rate}, only for {rates}; write one");
            Err(Problem::new("lookup", message))
        }
    }
}

fn queue_spec(config: &Config, queue: u8) -> Option<&super::QueueSpec> {
    config.queue.iter().find(|spec| spec.queues.contains(&queue))
}

/// By queue: what it is given at each port. Queues of no class have nothing.
fn queues(config: &Config, classes: &Classes) -> [Option<Profile>; CLASSES] {
    std::array::from_fn(|queue| {
        classes.queue.contains(&(queue as u8)).then(|| {
            let spec = queue_spec(config, queue as u8);
            Profile {
                pool: pool_number(config, Side::Egress, spec.and_then(|spec| spec.pool.as_deref())),
                reserved: spec.map_or(0, |spec| spec.reserved.get()),
                threshold: threshold(spec.and_then(|spec| spec.alpha), spec.and_then(|spec| spec.threshold)),
                headroom: 0,
                xon: 0,
                xon_offset: 0,
            }
        })
    })
}

fn port_profiles(config: &Config, side: Side) -> Vec<PortProfile> {
    let of_side = config.port.iter().filter_map(|spec| {
        let pool = pools_of(config, side).position(|pool| pool.name == spec.pool)?;
        Some(PortProfile { pool, reserved: spec.reserved.get(), threshold: threshold(spec.alpha, spec.threshold) })
    });
    of_side.collect()
}

fn levels(config: &Config) -> Vec<Level> {
    if config.schedule.is_empty() {
        return (0..CLASSES as u8).map(|queue| Level { queues: vec![(queue, 1)], unit: Unit::Packets }).collect();
    }
    let level = |spec: &super::LevelSpec| Level {
        queues: spec.queues.iter().zip(spec.weights.iter().copied().chain(std::iter::repeat(1))).map(pair).collect(),
        unit: match spec.by {
            By::Bytes => Unit::Bytes(TURN_BYTES),
            By::Packets => Unit::Packets,
        },
    };
    config.schedule.iter().map(level).collect()
}

fn pair((queue, weight): (&u8, u32)) -> (u8, u32) {
    (*queue, weight)
}

fn wred(ecn: Ecn) -> Wred {
    let curve = |ColourSpec { min, max, probability_max, mark, drop }| Curve {
        hits: Marking::Ramp { min, max, probability_max, per: None },
        mark,
        drop,
    };
    let green = ecn.green();
    Wred {
        curves: [green, ecn.yellow.unwrap_or(green), ecn.red.unwrap_or(green)].map(curve),
        average: ecn.average,
        at_departure: ecn.at_departure,
    }
}

fn meter(spec: &MeterSpec) -> Meter {
    let excess = if spec.pir.is_some() { spec.pbs } else { spec.ebs };
    Meter { committed: (spec.cir, spec.cbs.get()), peak: spec.pir, excess: excess.map_or(0, Bytes::get) }
}

fn rates(config: &Config, queue: u8) -> Rates {
    let Some(spec) = queue_spec(config, queue) else { return Rates::default() };
    Rates {
        min: spec.min_rate.unwrap_or(Rate::ZERO),
        max: spec.max_rate.map(|rate| (rate, spec.burst.unwrap_or(BURST).get())),
    }
}

/// Headroom that is less than what still arrives after a pause, so that lossless packets may be lost.
pub(super) fn doubt(config: &Config, view: &LinkView<'_>, switch: SwitchId) -> Option<Problem> {
    let classes = Classes::new(config);
    let node = view.fabric.switch_node(switch);
    let ports = (0..view.fabric.ports[node.index()].len()).map(PortId::from);
    for port in ports {
        let given = groups(config, &classes, view, switch, port).ok()?;
        let needed = needed(config, view, node, port);
        let short = |group: &usize| {
            classes.group_is_lossless(*group as u8) && given[*group].is_some_and(|of| of.headroom < needed)
        };
        if let Some(group) = (0..CLASSES).find(short) {
            let from = view.fabric.link(view.fabric.ports[node.index()][port.index()]).to;
            let message = format!(
                "gives {} of headroom to group {group} of {} for {}, where {} arrive with and after the packet that \
                 asks for a pause, so packets are lost; write more, or the cable's real length",
                Bytes(given[group].map_or(0, |of| of.headroom)),
                view.fabric.names[node.index()],
                view.fabric.names[from.index()],
                Bytes(needed),
            );
            return Some(Problem::new("group", message));
        }
    }
    Quanta::doubt(config.quanta, config.refresh)
}

/// Checks what the types can't express.
pub(super) fn check(config: &Config) -> Result<(), Problem> {
    if let Some(cell) = config.cell.filter(|cell| !(1..=16_384).contains(&cell.get())) {
        return Err(Problem::new("cell", format!("{cell} is not between 1B and 16384B; a cell has some 100 to 300")));
    }
    Quanta::check(config.quanta, config.refresh)?;
    check_maps(config)?;
    check_numbers("lossless", &config.lossless)?;
    let mut names = BTreeSet::new();
    for (index, pool) in config.pool.iter().enumerate() {
        let key = |rest: &str| format!("pool[{index}].{rest}");
        if !names.insert(&pool.name) {
            return Err(Problem::new(key("name"), format!("\"{}\" is the name of two pools", pool.name)));
        }
        if pool.side == Side::Egress && pool.headroom.is_some() {
            return Err(Problem::new(key("headroom"), "only ingress pools have headroom; delete it"));
        }
    }
    let mut seen = 0;
    for (index, spec) in config.group.iter().enumerate() {
        let key = |rest: &str| format!("group[{index}].{rest}");
        check_each_once(&key("groups"), &spec.groups, &mut seen)?;
        check_pool(config, Side::Ingress, &key("pool"), spec.pool.as_deref())?;
        check_threshold(&key(""), spec.alpha, spec.threshold)?;
        for (row, of) in spec.lookup.iter().enumerate() {
            let key = format!("group[{index}].lookup[{row}].");
            check_threshold(&key, of.alpha, of.threshold)?;
            if !(of.cable_m >= 0.0 && of.cable_m <= 1e6) {
                let message = format!("{} is not between 0 and 1000000 metres", of.cable_m);
                return Err(Problem::new(format!("{key}cable_m"), message));
            }
        }
    }
    let mut seen = 0;
    for (index, spec) in config.queue.iter().enumerate() {
        let key = |rest: &str| format!("queue[{index}].{rest}");
        check_each_once(&key("queues"), &spec.queues, &mut seen)?;
        check_pool(config, Side::Egress, &key("pool"), spec.pool.as_deref())?;
        check_threshold(&key(""), spec.alpha, spec.threshold)?;
        if let Some(ecn) = spec.ecn {
            check_ecn(&ecn).map_err(|problem| problem.under(key("ecn")))?;
        }
        for (name, rate) in [("min_rate", spec.min_rate), ("max_rate", spec.max_rate)] {
            if rate == Some(Rate::ZERO) {
                return Err(Problem::new(key(name), "0 is no rate; delete it for none"));
            }
        }
        if spec.burst.is_some() && spec.max_rate.is_none() {
            return Err(Problem::new(key("burst"), "goes with max_rate; write that too, or delete it"));
        }
    }
    for (index, spec) in config.port.iter().enumerate() {
        let key = |rest: &str| format!("port[{index}].{rest}");
        let known = config.pool.iter().any(|pool| pool.name == spec.pool);
        if !known || config.port[..index].iter().any(|other| other.pool == spec.pool) {
            let message = format!("\"{}\" is no pool, or is named twice", spec.pool);
            return Err(Problem::new(key("pool"), message));
        }
        check_threshold(&key(""), spec.alpha, spec.threshold)?;
    }
    match config.max_rate {
        Some(Rate::ZERO) => return Err(Problem::new("max_rate", "0 is no rate; delete it for none")),
        None if config.burst.is_some() => {
            return Err(Problem::new("burst", "goes with max_rate; write that too, or delete it"));
        }
        _ => {}
    }
    check_meters(config)?;
    check_schedule(config)
}

fn check_ecn(ecn: &Ecn) -> Result<(), Problem> {
    let colours = [("", Some(ecn.green())), ("yellow", ecn.yellow), ("red", ecn.red)];
    for (key, colour) in colours {
        if let Some(ColourSpec { min, max, probability_max, .. }) = colour
            && !(min < max && (0.0..=1.0).contains(&probability_max))
        {
            return Err(Problem::new(key, "needs min < max and a probability_max from 0 to 1"));
        }
    }
    match ecn.average {
        Some(exponent) if !(1..=15).contains(&exponent) => {
            let message = format!("{exponent} is not between 1 and 15; leave it out for the length itself");
            Err(Problem::new("average", message))
        }
        _ => Ok(()),
    }
}

fn check_meters(config: &Config) -> Result<(), Problem> {
    let mut seen = 0;
    for (index, meter) in config.meter.iter().enumerate() {
        let key = |rest: &str| format!("meter[{index}].{rest}");
        check_each_once(&key("classes"), &meter.classes, &mut seen)?;
        for (name, rate) in [("cir", Some(meter.cir)), ("pir", meter.pir)] {
            if rate == Some(Rate::ZERO) {
                return Err(Problem::new(key(name), "0 is no rate; write one, such as \"10Gbps\""));
            }
        }
        if meter.pir.is_some() != meter.pbs.is_some() {
            return Err(Problem::new(key("pir"), "pir and pbs go together; write both, or neither"));
        }
        if meter.pir.is_some() && meter.ebs.is_some() {
            return Err(Problem::new(key("ebs"), "a meter with a peak rate has pbs instead; delete one of them"));
        }
        if let Some(pir) = meter.pir.filter(|pir| *pir < meter.cir) {
            return Err(Problem::new(key("pir"), format!("{pir} is below cir, {}", meter.cir)));
        }
    }
    Ok(())
}

/// Colours that no queue heeds. A profile for a colour that no packet has is no mistake: files of switches have all.
pub(super) fn advice(config: &Config) -> Vec<Problem> {
    let coloured = !config.meter.is_empty() || config.maps.dscp_to_colour.iter().any(|colour| *colour > 0);
    let own = |ecn: Ecn| ecn.yellow.is_some() || ecn.red.is_some();
    if !coloured || config.queue.iter().any(|spec| spec.ecn.is_some_and(own)) {
        return Vec::new();
    }
    let key = if config.meter.is_empty() { "maps.dscp_to_colour" } else { "meter" };
    vec![Problem::new(key, "has no effect, since no queue has a profile for yellow or red packets")]
}

fn check_maps(config: &Config) -> Result<(), Problem> {
    let maps = &config.maps;
    let tables = [
        ("dscp", &maps.dscp, CLASSES, 63),
        ("dscp_to_tc", &maps.dscp_to_tc, 64, 7),
        ("dscp_to_colour", &maps.dscp_to_colour, 64, 2),
        ("tc_to_queue", &maps.tc_to_queue, CLASSES, 7),
        ("tc_to_group", &maps.tc_to_group, CLASSES, 7),
        ("pfc_to_queue", &maps.pfc_to_queue, CLASSES, 7),
    ];
    for (name, table, length, most) in tables {
        if !(table.is_empty() || table.len() == length) || table.iter().any(|value| *value > most) {
            let message = format!("is not {length} numbers from 0 to {most}");
            return Err(Problem::new(format!("maps.{name}"), message));
        }
    }
    if maps.dscp.is_empty() != maps.dscp_to_tc.is_empty() {
        return Err(Problem::new("maps", "dscp and dscp_to_tc go together; write both, or neither"));
    }
    if maps.dscp.is_empty() && !maps.dscp_to_colour.is_empty() {
        return Err(Problem::new("maps.dscp_to_colour", "goes with dscp and dscp_to_tc; write those, too"));
    }
    Ok(())
}

fn check_numbers(key: &str, numbers: &[u8]) -> Result<(), Problem> {
    let mut seen = 0;
    for number in numbers {
        if *number > 7 || seen >> number & 1 == 1 {
            return Err(Problem::new(key, format!("{number} is not one of 0 to 7, or is named twice")));
        }
        seen |= 1u8 << number;
    }
    Ok(())
}

/// As `check_numbers`, where no other table may have named them.
fn check_each_once(key: &str, numbers: &[u8], seen: &mut u8) -> Result<(), Problem> {
    check_numbers(key, numbers)?;
    let own = numbers.iter().fold(0u8, |bits, number| bits | 1 << number);
    if own == 0 {
        return Err(Problem::new(key, "is empty; write at least one number from 0 to 7"));
    }
    if *seen & own != 0 {
        let twice = (*seen & own).trailing_zeros();
        return Err(Problem::new(key, format!("{twice} is in two tables; a number has one")));
    }
    *seen |= own;
    Ok(())
}

fn check_pool(config: &Config, side: Side, key: &str, name: Option<&str>) -> Result<(), Problem> {
    let Some(name) = name.filter(|name| pools_of(config, side).all(|pool| pool.name != *name)) else { return Ok(()) };
    let side = if side == Side::Ingress { "ingress" } else { "egress" };
    Err(Problem::new(key, format!("\"{name}\" is the name of no {side} pool")))
}

fn check_threshold(key: &str, alpha: Option<f64>, threshold: Option<Bytes>) -> Result<(), Problem> {
    if let Some(alpha) = alpha.filter(|alpha| !(*alpha > 0.0 && alpha.is_finite())) {
        return Err(Problem::new(format!("{key}alpha"), format!("{alpha} is not a positive number")));
    }
    if alpha.is_some() && threshold.is_some() {
        return Err(Problem::new(format!("{key}threshold"), "alpha says the same in another way; delete one of them"));
    }
    Ok(())
}

fn check_schedule(config: &Config) -> Result<(), Problem> {
    let mut seen = 0;
    for (index, level) in config.schedule.iter().enumerate() {
        check_each_once(&format!("schedule[{index}].queues"), &level.queues, &mut seen)?;
        let weights = &level.weights;
        let fits = weights.is_empty() || weights.len() == level.queues.len();
        if !fits || weights.iter().any(|weight| !(1..=255).contains(weight)) {
            let message = format!("is not {} weights from 1 to 255, one for each queue", level.queues.len());
            return Err(Problem::new(format!("schedule[{index}].weights"), message));
        }
    }
    let classes = Classes::new(config);
    match (0..CLASSES).find(|class| seen >> classes.queue[*class] & 1 == 0) {
        Some(class) if !config.schedule.is_empty() => {
            let message = format!("queue {} of class {class} is in no level; write it", classes.queue[class]);
            Err(Problem::new("schedule", message))
        }
        _ => Ok(()),
    }
}
