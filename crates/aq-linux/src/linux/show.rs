//! The allocations of tenants and their use, from the pinned counters: as a table, as JSON, or as Prometheus text.

use std::collections::{BTreeMap, BTreeSet};

use contract::sharing::{Position, Share};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use units::{Bytes, Rate};

use super::daemon::status::{self, Healed, Kept};
use super::device;
use super::hook::{self, Standing};
use super::kernel::{Found, Maps, State};
use super::netns::within;
use super::place::{DevicePlace, Held, Record};
use crate::grants::{Grants, Row};
use crate::tenants::Tenants;

/// One tenant at one position of one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The device.
    pub device: String,
    /// Its namespace, as the operator named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netns: Option<String>,
    /// Where.
    pub position: &'static str,
    /// The tenant.
    pub tenant: String,
    /// Its request.
    pub share: String,
    /// Its rate now; 0 for no AQ.
    pub allocated_bps: u64,
    /// The bytes that passed in the last interval.
    pub passed_bps: u64,
    /// The bytes that arrived in the last interval.
    pub arrived_bps: u64,
    /// Packets that passed since it was attached; a packet of several segments is one.
    pub packets: u64,
    /// Bytes on the wire that passed.
    pub bytes: u64,
    /// Packets that were dropped.
    pub drops: u64,
    /// Bytes that were dropped.
    pub dropped_bytes: u64,
    /// Packets that were marked.
    pub marks: u64,
    /// How long its next packet would wait in a queue of its own.
    pub queue_us: f64,
    /// The limit of its AQ.
    pub limit_bytes: u64,
    /// Packets that have ports, but out of sight: they belong to a tenant by `portless`, else to the default.
    pub hidden: u64,
    /// Whether its packets all come by its AQ; none where this process may not look.
    pub enforcing: Option<bool>,
    /// Why they don't, or why that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Bytes of the device since the daemon began that its program did not see, at this position; none without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escaped_bytes: Option<u64>,
    /// Whether a daemon runs that heals it.
    pub kept: bool,
    /// How often that has healed the device.
    pub heals: u64,
    /// The last time that it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healed: Option<Healed>,
    /// Whether the trouble is this tenant's alone, and not that of all at its place.
    #[serde(skip)]
    pub alone: bool,
}

/// Nanoseconds of the clock that the program reads.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// The attachment of one device, opened for reading.
#[derive(Debug)]
pub struct View {
    place: DevicePlace,
    record: Record,
    tenants: Tenants,
    opened: Vec<(Position, Maps, Vec<Row>)>,
    /// By tenant, the cgroups that it has.
    cgroups: BTreeMap<String, Vec<String>>,
    before: Vec<(u64, State)>,
}

impl View {
    /// Opens what is attached at a place; none if nothing is.
    pub fn open(place: &DevicePlace) -> Result<Option<View>, String> {
        let Some(record) = place.record()? else { return Ok(None) };
        let tenants = record.all()?;
        let mut opened = Vec::new();
        for attached in &record.attached {
            let grants =
                Grants::new(&tenants, attached.position, record.senders()).map_err(|problem| problem.to_string())?;
            let maps = Maps::open_to_read(&place.pins(attached.position)).map_err(|why| {
                let unfinished = "a command that changed it did not finish; attach again, or detach";
                if record.unfinished { format!("{}: {unfinished}", record.device) } else { why }
            })?;
            opened.push((attached.position, maps, grants.rows().to_vec()));
        }
        let by_cgroup = tenants.entity.iter().filter(|tenant| !tenant.matches.cgroup.is_empty());
        let cgroups = by_cgroup.map(|tenant| (tenant.name.clone(), tenant.matches.cgroup.clone())).collect();
        Ok(Some(View { place: place.clone(), record, tenants, opened, cgroups, before: Vec::new() }))
    }

    /// Its device and position.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Where each program stands, as seen from the device's namespace.
    fn standings(&self) -> Vec<Standing> {
        let all = |standing: Standing| vec![standing; self.record.attached.len()];
        let netns = self.record.netns.as_deref();
        within(netns, || standings(&self.place, &self.record)).unwrap_or_else(|why| match netns {
            Some(name) if !super::netns::file(name).exists() => all(Standing::Not("its namespace is gone".to_owned())),
            _ => all(Standing::Unknown(why)),
        })
    }

    /// Whether a cgroup is there that was made again, so that its packets are not its tenant's.
    pub fn has_new_cgroups(&self) -> bool {
        let by_place = self.record.attached.iter().zip(&self.opened);
        by_place.into_iter().any(|(attached, (_, maps, _))| {
            attached.held.iter().any(|held| {
                let paths = self.cgroups.get(&held.name);
                paths.into_iter().flatten().any(|path| Found::cgroup(path).is_ok_and(|id| !maps.knows(id, held.entity)))
            })
        })
    }

    /// A cgroup of a tenant that is not the one that the program knows.
    fn lost(&self, held: &Held, maps: &Maps) -> Option<String> {
        for path in self.cgroups.get(&held.name)? {
            match Found::cgroup(path) {
                Ok(id) if maps.knows(id, held.entity) => {}
                Ok(_) => return Some(format!("cgroup {path} was made again; `clearway-aq refresh` looks it up")),
                Err(_) => return Some(format!("cgroup {path} is not there")),
            }
        }
        None
    }

    /// Whether a tenant's packets come by its AQ, why not, and whether that concerns it alone.
    fn enforces(&self, standing: &Standing, held: &Held, maps: &Maps) -> (Option<bool>, Option<String>, bool) {
        match (standing, self.lost(held, maps)) {
            (Standing::Not(why), _) => (Some(false), Some(why.clone()), false),
            (_, Some(why)) => (Some(false), Some(why), true),
            (Standing::Unknown(why), None) => (None, Some(why.clone()), false),
            (Standing::First, None) => (Some(true), None, false),
        }
    }

    /// The attached tenants.
    pub fn tenants(&self) -> &Tenants {
        &self.tenants
    }

    /// A line for each tenant, with rates since the last call.
    pub fn lines(&mut self) -> Result<Vec<Line>, String> {
        let standings = self.standings();
        let kept = status::read(self.place.roots()).and_then(|status| status.of(self.place.name()));
        self.lines_at(standings, kept.as_ref())
    }

    /// The same, with where each program stands and what the daemon knows of the device.
    pub fn lines_at(&mut self, mut standings: Vec<Standing>, kept: Option<&Kept>) -> Result<Vec<Line>, String> {
        let now = now_ns();
        let (mut lines, mut states) = (Vec::new(), Vec::new());
        if self.place.is_stuck() {
            let why = "a command that changed it did not finish; `clearway-aq refresh` makes it anew";
            standings.fill(Standing::Not(why.to_owned()));
        }
        let each = self.record.attached.iter().zip(&self.opened).zip(&standings);
        for ((attached, (position, maps, rows)), standing) in each {
            let escaped = kept.and_then(|kept| kept.escaped.get(position.name()));
            let standing = match (standing, escaped.and_then(status::Escaped::said)) {
                (Standing::First, Some(why)) => &Standing::Not(why),
                _ => standing,
            };
            for (held, row) in attached.held.iter().zip(rows) {
                let (state, delay) = maps.sum(held, now)?;
                let rate = maps.rate(held)?;
                let before = self.before.get(lines.len()).copied();
                let rate_of = |bytes: fn(&State) -> u64| {
                    let Some((then, past)) = before else { return 0 };
                    let span = u128::from(now - then).max(1);
                    (u128::from(bytes(&state).saturating_sub(bytes(&past))) * 8_000_000_000 / span) as u64
                };
                let (enforcing, trouble, alone) = self.enforces(standing, held, maps);
                lines.push(Line {
                    device: self.record.device.clone(),
                    netns: self.record.netns.clone(),
                    position: position.name(),
                    tenant: held.name.clone(),
                    share: share(row.share),
                    allocated_bps: rate,
                    passed_bps: rate_of(|state| state.bytes),
                    arrived_bps: rate_of(|state| state.bytes + state.dropped_bytes),
                    packets: state.packets,
                    bytes: state.bytes,
                    drops: state.drops,
                    dropped_bytes: state.dropped_bytes,
                    marks: state.marks,
                    queue_us: delay.us_f64(),
                    limit_bytes: row.limit.get(),
                    hidden: state.hidden,
                    enforcing,
                    trouble,
                    escaped_bytes: kept.map(|_| escaped.map_or(0, |escaped| escaped.bytes)),
                    kept: kept.is_some(),
                    heals: kept.map_or(0, |kept| kept.heals),
                    healed: kept.and_then(|kept| kept.healed.clone()),
                    alone,
                });
                states.push((now, state));
            }
        }
        self.before = states;
        Ok(lines)
    }
}

/// Where each program of a record stands. The thread is in the device's namespace.
pub fn standings(place: &DevicePlace, record: &Record) -> Vec<Standing> {
    let name = device::name_of(record.index);
    record.attached.iter().map(|attached| hook::standing(place, attached, name.as_deref(), record.index)).collect()
}

fn share(share: Option<Share>) -> String {
    match share {
        None => "none".to_owned(),
        Some(Share::Absolute(rate)) => rate.to_string(),
        Some(Share::Weight(weight)) => format!("weight {weight}"),
    }
}

/// The lines as a table for a terminal.
pub fn table(lines: &[Line]) -> String {
    let head = ["device", "at", "tenant", "share", "allocated", "passes", "arrives", "dropped", "marked", "queue"];
    let mut cells: Vec<[String; 10]> = vec![head.map(str::to_owned)];
    for line in lines {
        let rate = |bps: u64| short(Rate::from_bps(bps));
        let part = |count: u64| {
            let all = (line.packets + line.drops).max(1);
            if count == 0 { "0".to_owned() } else { format!("{:.2}%", 100.0 * count as f64 / all as f64) }
        };
        cells.push([
            line.netns.as_ref().map_or_else(|| line.device.clone(), |netns| format!("{}@{netns}", line.device)),
            line.position.to_owned(),
            line.tenant.clone(),
            line.share.clone(),
            if line.allocated_bps == 0 { "-".to_owned() } else { rate(line.allocated_bps) },
            rate(line.passed_bps),
            rate(line.arrived_bps),
            part(line.drops),
            part(line.marks),
            format!("{:.0}us", line.queue_us),
        ]);
    }
    let mut widths = [0; 10];
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in &cells {
        for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
            let padding = " ".repeat(width - cell.chars().count());
            // Words to the left, numbers to the right.
            text += &if index < 4 { format!("{cell}{padding}  ") } else { format!("{padding}{cell}  ") };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text + &troubles(lines)
}

/// A line for each trouble, once for all tenants of a place.
fn troubles(lines: &[Line]) -> String {
    let mut said = Vec::new();
    for line in lines {
        let name = line.netns.as_ref().map_or_else(|| line.device.clone(), |netns| format!("{}@{netns}", line.device));
        let place = format!("{name} {}", line.position);
        let mut say = |text: String| {
            if !said.contains(&text) {
                said.push(text)
            }
        };
        if line.hidden > 0 {
            say(format!("{place}: {} packets of {} had ports that could not be known", line.hidden, line.tenant));
        }
        if let Some(bytes) = line.escaped_bytes.filter(|&bytes| bytes > 0) {
            say(format!("{place}: {bytes} bytes of the device were not seen by its program"));
        }
        if let Some(healed) = &line.healed {
            say(format!("{name}: healed {} times, last {}: {}", line.heals, healed.ago(), healed.what));
        }
        match (&line.trouble, line.enforcing) {
            (Some(why), None) => say(format!("{place}: whether it counts every packet is unknown: {why}")),
            (Some(why), _) if line.alone => say(format!("{place}: {}: NOT ENFORCED: {why}", line.tenant)),
            (Some(why), _) => say(format!("{place}: NOT ENFORCED: {why}")),
            (None, _) => {}
        }
    }
    said.iter().map(|line| format!("{line}\n")).collect()
}

/// A rate with four digits.
fn short(rate: Rate) -> String {
    let bps = rate.bps() as f64;
    match bps {
        _ if bps >= 1e9 => format!("{:.3}Gbps", bps / 1e9),
        _ if bps >= 1e6 => format!("{:.1}Mbps", bps / 1e6),
        _ => format!("{:.1}Kbps", bps / 1e3),
    }
}

/// The lines in Prometheus' text format.
pub fn prometheus(lines: &[Line]) -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, value: &dyn Fn(&Line) -> String| {
        text += &format!("# HELP clearway_aq_{name} {help}\n# TYPE clearway_aq_{name} {kind}\n");
        for line in lines {
            text += &format!("clearway_aq_{name}{{{},tenant=\"{}\"}} ", labels(line), quoted(&line.tenant));
            text += &value(line);
            text.push('\n');
        }
    };
    family("packets_total", "counter", "Packets that passed.", &|line| line.packets.to_string());
    family("bytes_total", "counter", "Bytes on the wire that passed.", &|line| line.bytes.to_string());
    family("drops_total", "counter", "Packets that were dropped.", &|line| line.drops.to_string());
    family("dropped_bytes_total", "counter", "Bytes that were dropped.", &|line| line.dropped_bytes.to_string());
    family("marks_total", "counter", "Packets that were marked.", &|line| line.marks.to_string());
    family("allocated_bps", "gauge", "Allocated rate; 0 for no AQ.", &|line| line.allocated_bps.to_string());
    family("passed_bps", "gauge", "Rate that passed in the last interval.", &|line| line.passed_bps.to_string());
    family("arrived_bps", "gauge", "Rate that arrived in the last interval.", &|line| line.arrived_bps.to_string());
    family("limit_bytes", "gauge", "Limit of an AQ.", &|line| line.limit_bytes.to_string());
    family("hidden_total", "counter", "Packets with ports that could not be known.", &|line| line.hidden.to_string());
    family("enforcing", "gauge", "Whether all packets come by the AQ; NaN where that is unknown.", &|line| {
        line.enforcing.map_or("NaN".to_owned(), |enforcing| u8::from(enforcing).to_string())
    });
    family("queue_seconds", "gauge", "Time that a packet would wait in a queue of the tenant's own.", &|line| {
        format!("{:.9}", line.queue_us / 1e6)
    });
    text + &of_the_daemon(lines)
}

/// Families with a value for each position and not for each tenant, which only a daemon knows.
fn of_the_daemon(lines: &[Line]) -> String {
    let mut text = String::new();
    let mut family = |name: &str, help: &str, value: &dyn Fn(&Line) -> Option<u64>| {
        let mut seen = BTreeSet::new();
        for line in lines {
            if let Some(value) = value(line)
                && seen.insert(labels(line))
            {
                if seen.len() == 1 {
                    text += &format!("# HELP clearway_aq_{name} {help}\n# TYPE clearway_aq_{name} counter\n");
                }
                text += &format!("clearway_aq_{name}{{{}}} {value}\n", labels(line));
            }
        }
    };
    family("escaped_bytes_total", "Bytes of the device that its program did not see.", &|line| line.escaped_bytes);
    family("heals_total", "Times that the daemon healed the device.", &|line| line.kept.then_some(line.heals));
    text
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// The labels of a line's place.
fn labels(line: &Line) -> String {
    let netns = line.netns.as_deref().map_or(String::new(), |netns| format!(",netns=\"{}\"", quoted(netns)));
    format!("device=\"{}\"{netns},position=\"{}\"", quoted(&line.device), line.position)
}

impl Maps {
    /// The rate of all AQs of an entity together, in bits per second; 0 for no AQ.
    pub fn rate(&self, held: &super::place::Held) -> Result<u64, String> {
        let per_byte = self.per_byte(held.entity)?;
        if per_byte == 0 {
            return Ok(0);
        }
        // 2^26 units of a byte's time are a nanosecond.
        let scaled = (8_000_000_000_u128 << 26) * u128::from(held.flows);
        Ok(((scaled + u128::from(per_byte) / 2) / u128::from(per_byte)) as u64)
    }
}

/// The sum of what arrived for each row since it was attached.
pub fn arrived(maps: &Maps, record: &super::place::Attached) -> Result<Vec<Bytes>, String> {
    let now = now_ns();
    record
        .held
        .iter()
        .map(|held| maps.sum(held, now).map(|(state, _)| Bytes(state.bytes + state.dropped_bytes)))
        .collect()
}

#[cfg(test)]
mod tests;
