//! The allocations of tenants and their use, from the pinned counters: as a table, as JSON, or as Prometheus text on a
//! port.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration as Wait;

use contract::sharing::{Position, Share};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use units::{Bytes, Rate};

use super::device;
use super::hook::{self, Standing};
use super::kernel::{Found, Maps, State};
use super::netns::enter;
use super::place::{DevicePlace, Held, Record};
use crate::grants::{Grants, Row};
use crate::tenants::{Tenants, read};

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
    before: Vec<(u64, State)>,
}

impl View {
    /// Opens what is attached at a place; none if nothing is.
    pub fn open(place: &DevicePlace) -> Result<Option<View>, String> {
        let Some(record) = place.record()? else { return Ok(None) };
        let tenants = read(&record.tenants, "the attached tenants")?;
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
        Ok(Some(View { place: place.clone(), record, tenants, opened, before: Vec::new() }))
    }

    /// Its device and position.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Where each program stands, as seen from the device's namespace.
    fn standings(&self) -> Vec<Standing> {
        let look = || {
            let name = device::name_of(self.record.index);
            let at = |attached| hook::standing(&self.place, attached, name.as_deref(), self.record.index);
            self.record.attached.iter().map(at).collect()
        };
        let Some(netns) = self.record.netns.as_deref() else { return look() };
        let unknown = |why: String| vec![Standing::Unknown(why); self.record.attached.len()];
        // A thread of its own enters the namespace, so that this one stays where it is.
        std::thread::scope(|scope| {
            let there = scope.spawn(|| enter(netns).map(|()| look()));
            match there.join() {
                Ok(Ok(found)) => found,
                Ok(Err(_)) if !super::netns::file(netns).exists() => {
                    vec![Standing::Not("its namespace is gone".to_owned()); self.record.attached.len()]
                }
                Ok(Err(why)) => unknown(why),
                Err(_) => unknown("the namespace could not be entered".to_owned()),
            }
        })
    }

    /// A cgroup of a tenant that is not the one that the program knows.
    fn lost(&self, held: &Held, maps: &Maps) -> Option<String> {
        let tenant = self.tenants.entity.iter().find(|tenant| tenant.name == held.name)?;
        for path in &tenant.matches.cgroup {
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

    /// A line for each tenant, with rates since the last call.
    pub fn lines(&mut self) -> Result<Vec<Line>, String> {
        let now = now_ns();
        let (mut lines, mut states) = (Vec::new(), Vec::new());
        let mut standings = self.standings();
        if self.place.is_stuck() {
            let why = "a command that changed it did not finish; `clearway-aq refresh` makes it anew";
            standings.fill(Standing::Not(why.to_owned()));
        }
        let each = self.record.attached.iter().zip(&self.opened).zip(&standings);
        for ((attached, (position, maps, rows)), standing) in each {
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
                    alone,
                });
                states.push((now, state));
            }
        }
        self.before = states;
        Ok(lines)
    }
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
            let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
            let netns = line.netns.as_deref().map_or(String::new(), |netns| format!(",netns=\"{}\"", quoted(netns)));
            text += &format!(
                "clearway_aq_{name}{{device=\"{}\"{netns},position=\"{}\",tenant=\"{}\"}} {}\n",
                quoted(&line.device),
                line.position,
                quoted(&line.tenant),
                value(line)
            );
        }
    };
    family("packets_total", "counter", "Packets that passed.", &|line| line.packets.to_string());
    family("bytes_total", "counter", "Bytes on the wire that passed.", &|line| line.bytes.to_string());
    family("drops_total", "counter", "Packets that were dropped.", &|line| line.drops.to_string());
    family("dropped_bytes_total", "counter", "Bytes that were dropped.", &|line| line.dropped_bytes.to_string());
    family("marks_total", "counter", "Packets that were marked.", &|line| line.marks.to_string());
    family("allocated_bps", "gauge", "Allocated rate; 0 for no AQ.", &|line| line.allocated_bps.to_string());
    family("limit_bytes", "gauge", "Limit of an AQ.", &|line| line.limit_bytes.to_string());
    family("hidden_total", "counter", "Packets with ports that could not be known.", &|line| line.hidden.to_string());
    family("enforcing", "gauge", "Whether all packets come by the AQ; NaN where that is unknown.", &|line| {
        line.enforcing.map_or("NaN".to_owned(), |enforcing| u8::from(enforcing).to_string())
    });
    family("queue_seconds", "gauge", "Time that a packet would wait in a queue of the tenant's own.", &|line| {
        format!("{:.9}", line.queue_us / 1e6)
    });
    text
}

/// Serves Prometheus text on a port of this machine until it is killed. `text` is asked for each request.
pub fn serve(port: u16, mut text: impl FnMut() -> Result<String, String>) -> Result<(), String> {
    let listener = TcpListener::bind(("127.0.0.1", port)).map_err(|error| format!("--prometheus {port}: {error}"))?;
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { continue };
        // Whatever is asked, the answer is the same. A client without a request delays others only briefly.
        let _ = stream.set_read_timeout(Some(Wait::from_secs(1)));
        let _ = stream.read(&mut [0; 4_096]);
        let (status, body) = match text() {
            Ok(body) => ("200 OK", body),
            Err(why) => ("500 Internal Server Error", why),
        };
        let kind = "text/plain; version=0.0.4";
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n");
        let _ = stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes());
    }
    Ok(())
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
