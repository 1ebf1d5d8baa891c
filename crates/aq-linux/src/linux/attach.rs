//! Attaching tenants to a device, changing them, and taking all off again.
//!
//! The file, the rights and the device are checked before anything is done. Then the record is written, the program is
//! loaded, and its maps are filled and pinned. Only then is it attached to the device. If a step fails, all earlier
//! steps are undone.
//!
//! If it is attached already, the program stays in place: tenants are matched by name, those in both files keep their
//! gaps and counters, and only changes are written. If the maps have no room, or a kind of match is new, the program is
//! replaced.

use std::collections::{BTreeMap, BTreeSet};

use aya::Ebpf;
use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::tc::{NlOptions, SchedClassifierLink, TcAttachOptions, TcHandle, qdisc_add_clsact};
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType};
use contract::sharing::Position;
use units::Duration;

use super::device::{Choice, Device, Hook, TC_ACT_SHOT, filters, has_clsact, remove_clsact};
use super::kernel::{self, Found, Maps, PORTS, Settings, chain};
use super::place::{Attached, DevicePlace, Held, Record, Rooms, Roots};
use super::rtt::{self, Measured};
use super::show::now_ns;
use crate::grants::{Grants, Row, Senders};
use crate::tenants::{RTT_MAX, Tenant, Tenants, read};

/// The actions that were done.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// The attachments, their places, and why.
    pub lines: Vec<String>,
    /// Settings that can hardly work.
    pub warnings: Vec<String>,
}

/// The request of an operator.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// The device's name.
    pub device: &'a str,
    /// Its namespace, which this thread has entered.
    pub netns: Option<&'a str>,
    /// The text of the tenants' file, and its name.
    pub text: &'a str,
    /// The name of the file.
    pub source: &'a str,
    /// A hook that the operator insists on.
    pub hook: Option<Hook>,
}

/// The senders' least retransmission timeout by this machine's settings.
pub fn timeout() -> Duration {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rto_min_us").unwrap_or_default();
    text.trim().parse().map_or(Duration::from_ms(200), Duration::from_us)
}

/// Attaches tenants to a device, or changes the tenants that are attached.
pub fn attach(roots: &Roots, asked: &Asked<'_>) -> Result<Done, String> {
    let tenants = read(asked.text, asked.source)?;
    let device = Device::find(asked.device)?;
    let (senders, said, mut warnings) = senders(&device, &tenants);
    let mut granted = Vec::new();
    for position in tenants.positions() {
        let grants =
            Grants::new(&tenants, position, senders).map_err(|problem| format!("{}: {problem}", asked.source))?;
        granted.push(grants);
    }
    kernel::check_rights()?;
    let mut choices = Vec::new();
    for grants in &granted {
        choices.push(device.choose(grants.position(), asked.hook, kernel::has_tcx())?);
    }
    for tenant in &tenants.entity {
        Found::new(&tenant.matches, true)
            .map_err(|why| format!("{}: entity \"{}\": {why}", asked.source, tenant.name))?;
    }
    roots.check_pins()?;
    let place = DevicePlace::new(roots, asked.device, asked.netns);
    let _lock = place.lock("lock")?;
    warnings.extend(granted.iter().flat_map(|grants| grants.warnings.clone()));
    let by_cgroup = tenants.entity.iter().find(|tenant| !tenant.matches.cgroup.is_empty());
    if let Some(tenant) = by_cgroup
        && choices.iter().any(|choice| choice.drop_code == TC_ACT_SHOT)
    {
        warnings.push(format!(
            "entity \"{}\": a cgroup is known only at egress of the device by which its processes send; what comes in, \
             or has come through another device, matches none",
            tenant.name
        ));
    }
    if !device.up {
        warnings.push(format!("{} is down", device.name));
    }
    let mut record = Record {
        device: device.name.clone(),
        netns: asked.netns.map(str::to_owned),
        index: device.index,
        tenants: asked.text.to_owned(),
        timeout_ns: senders.timeout.ps() / 1_000,
        rtt_ns: senders.rtt.ps() / 1_000,
        attached: Vec::new(),
    };
    if let Some(before) = place.record()? {
        if let Some(mut lines) = change(&place, &before, &mut record, &tenants, &granted, &choices)? {
            lines.extend(said);
            return Ok(Done { lines, warnings });
        }
        remove(&place, &before)?;
    }
    let mut lines = Vec::new();
    let done = granted.iter().zip(&choices).try_for_each(|(grants, choice)| {
        let new = add(&place, &device, &mut record, &tenants, grants, *choice)?;
        lines.push(new);
        Ok(())
    });
    if let Err(why) = done {
        // Steps that can't be undone are left to `detach`; the first error is the one to tell.
        let _ = remove(&place, &record);
        return Err(why);
    }
    lines.extend(said);
    Ok(Done { lines, warnings })
}

/// Senders' round trip and timeout: what the file says, else what this machine knows. With a line about the round
/// trip where the file gives none, and a warning where it gives one that connections contradict.
fn senders(device: &Device, tenants: &Tenants) -> (Senders, Option<String>, Vec<String>) {
    let mut warnings = Vec::new();
    let measured = rtt::measure(&device.name).unwrap_or_else(|why| {
        warnings.push(why);
        None
    });
    let name = &device.name;
    let (rtt, said) = match (tenants.link.rtt, measured) {
        (Some(given), measured) => {
            if let Some(Measured { connections, longest }) = measured
                && longest > given * 2
            {
                warnings.push(format!(
                    "link.rtt is {given}, but {longest} is the longest round trip of {connections} TCP connections of \
                     {name} while nothing queued: limits and thresholds may be too small; leave link.rtt out and it \
                     is taken from them"
                ));
            }
            (given, None)
        }
        (None, Some(Measured { connections, longest })) => {
            let rtt = longest.clamp(Duration::from_us(1), RTT_MAX);
            (rtt, Some(format!("{name}: round trip {rtt}, the longest of {connections} TCP connections")))
        }
        (None, None) => {
            let rtt = Senders::USUAL.rtt;
            (rtt, Some(format!("{name}: round trip {rtt}, since no TCP connection of {name} tells another")))
        }
    };
    (Senders { rtt, timeout: tenants.link.timeout.unwrap_or_else(timeout) }, said, warnings)
}

/// Puts a program at one position.
fn add(
    place: &DevicePlace,
    device: &Device,
    record: &mut Record,
    tenants: &Tenants,
    grants: &Grants,
    choice: Choice,
) -> Result<String, String> {
    let position = grants.position();
    let held = hold(grants.rows(), &[])?;
    let attached = Attached {
        position,
        made_ns: now_ns(),
        hook: choice.hook,
        drop_code: choice.drop_code,
        filter: None,
        made_clsact: false,
        kinds: tenants.entity.iter().map(|tenant| Found::kinds(&tenant.matches)).fold(0, |all, one| all | one),
        rooms: rooms(tenants, &held),
        held,
    };
    let at = record.attached.len();
    record.attached.push(attached);
    place.write(record)?;
    let attached = &mut record.attached[at];
    let settings = Settings {
        drop_code: choice.drop_code,
        at_ingress: position == Position::Ingress,
        link_bytes: device.link_bytes,
        kinds: attached.kinds,
        test_clock: false,
        test_entities: 0,
    };
    let mut ebpf = kernel::load(settings, attached.rooms)?;
    let folder = place.make(position)?;
    kernel::pin(&ebpf, &folder)?;
    let mut maps = Maps::of(&mut ebpf)?;
    for (row, held) in grants.rows().iter().zip(&attached.held) {
        for state in held.first..held.first + held.flows {
            maps.reset(state, now_ns())?;
        }
        maps.configure(held, row.word())?;
        if let Some(tenant) = named(tenants, &row.name) {
            maps.tell(&Found::new(&tenant.matches, true)?, held.entity)?;
        }
    }
    let others = match choice.hook {
        Hook::Tcx => by_tcx(&mut ebpf, device, position, &folder.join("link"))?,
        Hook::Clsact => {
            attached.made_clsact = !has_clsact(&device.name)?;
            let made = attached.made_clsact;
            place.write(record)?;
            if made {
                qdisc_add_clsact(&device.name)
                    .map_err(|error| format!("{}: clsact: {}", device.name, chain(&error)))?;
            }
            let others = filters(&device.name)?;
            record.attached[at].filter = Some(by_clsact(&mut ebpf, device, position)?);
            place.write(record)?;
            others
        }
    };
    let beside = match others {
        0 => String::new(),
        n => format!(", before {n} others, which stay"),
    };
    Ok(format!(
        "{} ({}): {} by {}{beside}: {}; {} tenants",
        device.name,
        device.about(),
        position.name(),
        choice.hook.name(),
        choice.why,
        grants.rows().len() - 1,
    ))
}

/// Attaches before all other tcx programs of the device and pins the link. Returns how many others there are.
fn by_tcx(ebpf: &mut Ebpf, device: &Device, position: Position, pin: &std::path::Path) -> Result<usize, String> {
    let wrong = |error: &(dyn std::error::Error + 'static)| format!("{}: tcx: {}", device.name, chain(error));
    let others =
        SchedClassifier::query_tcx(&device.name, direction(position)).map_or(0, |(_, programs)| programs.len());
    let program = kernel::program(ebpf)?;
    let id = program
        .attach_with_options(&device.name, direction(position), TcAttachOptions::TcxOrder(LinkOrder::first()))
        .map_err(|error| wrong(&error))?;
    let link = program.take_link(id).map_err(|error| wrong(&error))?;
    let link: FdLink = link.try_into().map_err(|error| wrong(&error))?;
    link.pin(pin).map_err(|error| wrong(&error))?;
    Ok(others)
}

/// Attaches a filter before all others of the device's clsact.
fn by_clsact(ebpf: &mut Ebpf, device: &Device, position: Position) -> Result<(u16, u32), String> {
    let wrong = |error: &(dyn std::error::Error + 'static)| format!("{}: clsact: {}", device.name, chain(error));
    let program = kernel::program(ebpf)?;
    // Priority 0: the kernel puts it before those that are there.
    let options = TcAttachOptions::Netlink(NlOptions::default());
    let id = program.attach_with_options(&device.name, direction(position), options).map_err(|error| wrong(&error))?;
    let link = program.take_link(id).map_err(|error| wrong(&error))?;
    let filter = (link.priority().map_err(|e| wrong(&e))?, link.handle().map_err(|e| wrong(&e))?.into());
    // The filter stays when the command ends.
    std::mem::forget(link);
    Ok(filter)
}

fn direction(position: Position) -> TcAttachType {
    match position {
        Position::Ingress => TcAttachType::Ingress,
        Position::Egress => TcAttachType::Egress,
    }
}

fn named<'a>(tenants: &'a Tenants, name: &str) -> Option<&'a Tenant> {
    tenants.entity.iter().find(|tenant| tenant.name == name)
}

/// Room in the maps for what is there and as much again, so that tenants can join.
fn rooms(tenants: &Tenants, held: &[Held]) -> Rooms {
    let ample = |used: usize| u32::try_from((2 * used).max(1_024)).unwrap_or(u32::MAX);
    let sum = |count: fn(&Tenant) -> usize| tenants.entity.iter().map(count).sum::<usize>();
    let states: usize = held.iter().map(|held| held.flows as usize).sum();
    let singles = held.iter().filter(|held| held.flows == 1).count();
    let uses_ports = sum(|tenant| tenant.matches.ports.len() + tenant.matches.source_ports.len()) > 0;
    Rooms {
        configs: ample(held.len()),
        states: ample(singles) + u32::try_from(states - singles).unwrap_or(u32::MAX),
        keys: ample(sum(|tenant| tenant.matches.keys())),
        prefixes: ample(sum(|tenant| tenant.matches.prefixes())),
        ports: if uses_ports { PORTS } else { 1 },
    }
}

/// Numbers for rows: those in `before` keep theirs, others get what is free.
fn hold(rows: &[Row], before: &[Held]) -> Result<Vec<Held>, String> {
    let kept: BTreeMap<&str, &Held> = before.iter().map(|held| (held.name.as_str(), held)).collect();
    let stays = |row: &&Row| kept.get(row.name.as_str()).is_some_and(|held| held.flows == row.flows);
    let mut entities = BTreeSet::new();
    // By first AQ: number of AQs in the range that begins there.
    let mut taken = BTreeMap::new();
    for row in rows.iter().filter(stays) {
        let held = kept[row.name.as_str()];
        entities.insert(held.entity);
        taken.insert(held.first, held.flows);
    }
    let (mut next_entity, mut next_single) = (0, 0);
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        if stays(&row) {
            all.push(kept[row.name.as_str()].clone());
            continue;
        }
        while !entities.insert(next_entity) {
            next_entity += 1;
        }
        // A single AQ takes the first gap; a range goes after all others.
        let first = if row.flows == 1 {
            while let Some((&start, &flows)) = taken.range(..=next_single).next_back()
                && next_single < start + flows
            {
                next_single = start + flows;
            }
            next_single
        } else {
            taken.last_key_value().map_or(0, |(&start, &flows)| start + flows)
        };
        first.checked_add(row.flows).ok_or("there are too many AQs")?;
        taken.insert(first, row.flows);
        all.push(Held { name: row.name.clone(), entity: next_entity, first, flows: row.flows });
    }
    Ok(all)
}

/// Changes the tenants of programs that stay where they are. None if they can't stay; nothing is changed then.
fn change(
    place: &DevicePlace,
    before: &Record,
    record: &mut Record,
    tenants: &Tenants,
    granted: &[Grants],
    choices: &[Choice],
) -> Result<Option<Vec<String>>, String> {
    let same = before.index == record.index && before.attached.len() == granted.len();
    if !same || !stands(place, before) {
        return Ok(None);
    }
    let old = read(&before.tenants, "the tenants attached before")?;
    let kinds = tenants.entity.iter().map(|tenant| Found::kinds(&tenant.matches)).fold(0, |all, one| all | one);
    for ((attached, grants), choice) in before.attached.iter().zip(granted).zip(choices) {
        let mut new = attached.clone();
        new.held = hold(grants.rows(), &attached.held)?;
        let states = new.held.iter().map(|held| held.first + held.flows).max().unwrap_or(0);
        let entities = new.held.iter().map(|held| held.entity + 1).max().unwrap_or(0);
        let needed = rooms(tenants, &new.held);
        let fits = attached.position == grants.position()
            && attached.hook == choice.hook
            && kinds & !attached.kinds == 0
            && entities <= attached.rooms.configs
            && states <= attached.rooms.states
            && needed.keys <= attached.rooms.keys
            && needed.prefixes <= attached.rooms.prefixes;
        if !fits {
            return Ok(None);
        }
        record.attached.push(new);
    }
    let mut lines = Vec::new();
    for ((new, attached), grants) in record.attached.iter().zip(&before.attached).zip(granted) {
        let mut maps = Maps::open(&place.pins(new.position))?;
        let (joined, left) = rewrite(&mut maps, new, attached, grants, tenants, &old)?;
        lines.push(format!(
            "{}: {} changed: {joined} joined, {left} left, {} tenants",
            record.device,
            new.position.name(),
            new.held.len() - 1
        ));
    }
    place.write(record)?;
    Ok(Some(lines))
}

/// Writes what differs. Returns how many tenants joined and left.
fn rewrite(
    maps: &mut Maps,
    new: &Attached,
    attached: &Attached,
    grants: &Grants,
    tenants: &Tenants,
    old: &Tenants,
) -> Result<(usize, usize), String> {
    let stays: BTreeMap<&str, u32> = new.held.iter().map(|held| (held.name.as_str(), held.entity)).collect();
    let was: BTreeMap<&str, u32> = attached.held.iter().map(|held| (held.name.as_str(), held.entity)).collect();
    let mut left = 0;
    for held in &attached.held {
        let matches = |tenants| named(tenants, &held.name).map(|tenant: &Tenant| &tenant.matches);
        let same = stays.get(held.name.as_str()) == Some(&held.entity);
        left += usize::from(!stays.contains_key(held.name.as_str()));
        if let Some(gone) = matches(old)
            && (!same || matches(tenants) != Some(gone))
        {
            maps.forget(&Found::new(gone, false)?)?;
        }
    }
    let mut joined = 0;
    for (row, held) in grants.rows().iter().zip(&new.held) {
        let same = was.get(held.name.as_str()) == Some(&held.entity);
        if !same {
            joined += 1;
            for state in held.first..held.first + held.flows {
                maps.reset(state, now_ns())?;
            }
        }
        maps.configure(held, row.word())?;
        if let Some(tenant) = named(tenants, &row.name) {
            maps.tell(&Found::new(&tenant.matches, true)?, held.entity)?;
        }
    }
    Ok((joined, left))
}

/// Whether all that a record names still stands at the device.
fn stands(place: &DevicePlace, record: &Record) -> bool {
    record.attached.iter().all(|attached| {
        let folder = place.pins(attached.position);
        let pinned = kernel::MAPS.iter().all(|name| folder.join(name).exists());
        let there = match attached.hook {
            Hook::Tcx => folder.join("link").exists(),
            Hook::Clsact => attached.filter.is_some() && filters(&record.device).is_ok_and(|n| n > 0),
        };
        pinned && there
    })
}

/// Takes all off a device that `attach` put there. Returns false if nothing was.
pub fn detach(roots: &Roots, device: &str, netns: Option<&str>) -> Result<bool, String> {
    let place = DevicePlace::new(roots, device, netns);
    let _lock = place.lock("lock")?;
    let Some(record) = place.record()? else { return Ok(false) };
    kernel::check_rights()?;
    remove(&place, &record)?;
    Ok(true)
}

fn remove(place: &DevicePlace, record: &Record) -> Result<(), String> {
    // A device that came later under the same name has nothing of ours.
    let same = Device::find(&record.device).is_ok_and(|device| device.index == record.index);
    for attached in &record.attached {
        match attached.hook {
            Hook::Tcx => {
                // Without its pin and its last holder, the link detaches.
                let pin = place.pins(attached.position).join("link");
                if let Ok(link) = PinnedLink::from_pin(&pin) {
                    link.unpin().map_err(|error| format!("{}: {error}", pin.display()))?;
                }
            }
            Hook::Clsact if same => {
                if let Some((priority, handle)) = attached.filter {
                    let at = direction(attached.position);
                    let link =
                        SchedClassifierLink::attached(&record.device, at, priority, TcHandle::from(handle), None);
                    // Dropped, it detaches.
                    drop(link.map_err(|error| format!("{}: {error}", record.device))?);
                }
            }
            Hook::Clsact => {}
        }
    }
    let made = record.attached.iter().any(|attached| attached.made_clsact);
    if same && made && has_clsact(&record.device)? && filters(&record.device)? == 0 {
        remove_clsact(&record.device)?;
    }
    place.clear()
}

#[cfg(test)]
mod tests;
