//! Attaching tenants to a device, changing them, and taking all off again.
//!
//! The file, the rights and the device are checked before anything is done. Then the record is written, the program is
//! loaded, and its maps are filled and pinned. Only then is it attached to the device. If a step fails, all earlier
//! steps are undone. If the command is killed, the record says that it did not finish, and the next one undoes its
//! steps.
//!
//! If it is attached already, the program stays in place: tenants are matched by name, those in both files keep their
//! gaps and counters, and only changes are written. If a kind of match is new, a program that looks at it comes first
//! over the same maps, and the old one goes. If the maps have no room, another program with maps of its own takes over
//! gaps and counters, and stands first before the old one goes.

use std::collections::{BTreeMap, BTreeSet};

use aya::programs::tc::qdisc_add_clsact;
use contract::sharing::Position;
use units::Duration;

use super::detach::{elsewhere, remove};
use super::device::{self, Choice, Device, Hook, TC_ACT_SHOT, has_clsact};
use super::hook::{self, Standing};
use super::kernel::{self, FRAGMENTS, Found, Maps, PORTS, Settings, chain};
use super::place::{Attached, By, DevicePlace, Held, Joined, Record, Rooms, Roots};
use super::rtt::{self, Measured};
use super::show::now_ns;
use crate::grants::{Grants, Row, Senders};
use crate::tenants::{RTT_MAX, Tenant, Tenants, read_with};

/// The actions that were done.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// The attachments, their places, and why.
    pub lines: Vec<String>,
    /// Settings that can hardly work.
    pub warnings: Vec<String>,
}

/// The request of an operator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// The device's name.
    pub device: &'a str,
    /// The name that it has now, if it was renamed since.
    pub renamed: Option<&'a str>,
    /// Its namespace, which this thread has entered.
    pub netns: Option<&'a str>,
    /// The text of the tenants' file, and its name.
    pub text: &'a str,
    /// The name of the file.
    pub source: &'a str,
    /// A hook that the operator insists on.
    pub hook: Option<Hook>,
    /// The program that asks.
    pub by: By,
    /// Of a container's own device: which container it is.
    pub owner: Option<&'a str>,
    /// A tenant that joins. If another program than a runtime attached the device, its text stays.
    pub joins: Option<&'a Joined>,
    /// Owners whose tenants leave.
    pub leave: &'a [String],
    /// Whether cgroups may be absent until they are made, as when a machine starts.
    pub lenient: bool,
}

impl Asked<'_> {
    /// The tenants that will have joined.
    fn joined(&self, before: Option<&Record>) -> Vec<Joined> {
        let mut all = before.map_or_else(Vec::new, |record| record.joined.clone());
        let leaves =
            |one: &Joined| self.leave.contains(&one.owner) || self.joins.is_some_and(|joins| joins.owner == one.owner);
        all.retain(|one| !leaves(one));
        all.extend(self.joins.cloned());
        all
    }

    /// The same with the text that stays, where only a tenant joins or leaves.
    fn over<'b>(&self, before: Option<&'b Record>) -> Asked<'b>
    where
        Self: 'b,
    {
        let changes_one = self.joins.is_some() || !self.leave.is_empty();
        match before {
            Some(record) if changes_one && record.by != self.by => Asked {
                text: &record.tenants,
                source: "the attached tenants",
                by: record.by,
                owner: record.owner.as_deref(),
                ..*self
            },
            _ => *self,
        }
    }
}

/// The senders' least retransmission timeout by this machine's settings.
pub fn timeout() -> Duration {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rto_min_us").unwrap_or_default();
    text.trim().parse().map_or(Duration::from_ms(200), Duration::from_us)
}

/// Attaches tenants to a device, or changes the tenants that are attached.
pub fn attach(roots: &Roots, asked: &Asked<'_>) -> Result<Done, String> {
    kernel::check_rights()?;
    let device = Device::find(asked.renamed.unwrap_or(asked.device))?;
    let place = DevicePlace::new(roots, asked.device, asked.netns);
    let lock = place.lock()?;
    let done = attach_locked(roots, asked, &device, &place);
    place.close(lock);
    done
}

fn attach_locked(roots: &Roots, asked: &Asked<'_>, device: &Device, place: &DevicePlace) -> Result<Done, String> {
    let mut before = place.record()?;
    let record = before.clone();
    let asked = &asked.over(record.as_ref());
    let joined = asked.joined(before.as_ref());
    let tenants = read_with(asked.text, asked.source, joined.iter().map(|one| one.tenant.clone()))?;
    let (senders, said, mut warnings) = senders(device, &tenants);
    let (granted, choices) = plan(asked, device, &tenants, senders)?;
    roots.check_pins()?;
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
        device: asked.device.to_owned(),
        netns: asked.netns.map(str::to_owned),
        index: device.index,
        tenants: asked.text.to_owned(),
        by: asked.by,
        owner: asked.owner.map(str::to_owned),
        joined,
        timeout_ns: senders.timeout.ps() / 1_000,
        rtt_ns: senders.rtt.ps() / 1_000,
        unfinished: true,
        attached: Vec::new(),
    };
    let mut lines = clean(roots, place, device, asked.netns, before.as_ref())?;
    if let Some(old) = before.take() {
        if let Some(changed) = change(place, device, &old, &mut record, &tenants, &granted, &choices)? {
            lines.extend(changed);
            lines.extend(said);
            return Ok(Done { lines, warnings });
        }
        let by_tcx = choices.iter().all(|choice| choice.hook == Hook::Tcx);
        before = leave(place, device, old, by_tcx, &mut lines)?;
    }
    let done = granted.iter().zip(&choices).try_for_each(|(grants, choice)| {
        let new = add(place, device, &mut record, &tenants, grants, *choice, before.as_ref())?;
        lines.push(new);
        Ok(())
    });
    let finished = Record { unfinished: false, ..record.clone() };
    if let Err(why) = done.and_then(|()| place.drop_aside()).and_then(|()| place.write(&finished)) {
        // Steps that can't be undone are left to `detach`; the first error is the one to tell.
        let _ = remove(place, &record, &Ok(()));
        return Err(why);
    }
    lines.extend(said);
    Ok(Done { lines, warnings })
}

/// The grants at each position, and where each program must stand.
fn plan(
    asked: &Asked<'_>,
    device: &Device,
    tenants: &Tenants,
    senders: Senders,
) -> Result<(Vec<Grants>, Vec<Choice>), String> {
    let (mut granted, mut choices) = (Vec::new(), Vec::new());
    for position in tenants.positions() {
        let grants =
            Grants::new(tenants, position, senders).map_err(|problem| format!("{}: {problem}", asked.source))?;
        choices.push(device.choose(position, asked.hook, kernel::has_tcx())?);
        granted.push(grants);
    }
    for tenant in &tenants.entity {
        Found::new(&tenant.matches, !asked.lenient)
            .map_err(|why| format!("{}: entity \"{}\": {why}", asked.source, tenant.name))?;
    }
    Ok((granted, choices))
}

/// Makes room for another program. One that runs stays aside until the other does, and is returned; another is taken
/// off.
fn leave(
    place: &DevicePlace,
    device: &Device,
    before: Record,
    by_tcx: bool,
    lines: &mut Vec<String>,
) -> Result<Option<Record>, String> {
    let runs = by_tcx
        && before.index == device.index
        && !before.unfinished
        && before.attached.iter().all(|attached| {
            let stands = hook::standing(place, attached, Some(&device.name), device.index);
            attached.hook == Hook::Tcx && stands == Standing::First
        });
    if runs {
        place.write(&Record { unfinished: true, ..before.clone() })?;
        place.set_aside(before.attached.iter().map(|attached| attached.position))?;
        return Ok(Some(before));
    }
    let removed = remove(place, &before, &Ok(()))?;
    if before.index != device.index {
        lines.push(format!("attached before: {removed}"));
    }
    Ok(None)
}

/// Removes what earlier commands left, and what they attached under another name of the device; says what it was.
fn clean(
    roots: &Roots,
    place: &DevicePlace,
    device: &Device,
    netns: Option<&str>,
    record: Option<&Record>,
) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    if record.is_none() {
        if place.has_pins() {
            place.clear()?;
            lines.push(format!("{}: removed pins that had no record", device.name));
        }
        if let Some((other, record)) = elsewhere(roots, device, netns)? {
            let lock = other.lock()?;
            let removed = remove(&other, &record, &Ok(()));
            other.close(lock);
            lines.push(format!("attached before: {}", removed?));
        }
    }
    Ok(lines)
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
    before: Option<&Record>,
) -> Result<String, String> {
    let position = grants.position();
    let held = hold(grants.rows(), &[])?;
    let attached = Attached {
        position,
        made_ns: now_ns(),
        hook: choice.hook,
        drop_code: choice.drop_code,
        program: None,
        made_clsact: false,
        kinds: tenants.entity.iter().map(|tenant| Found::kinds(&tenant.matches)).fold(0, |all, one| all | one),
        rooms: rooms(tenants, &held),
        held,
    };
    let at = record.attached.len();
    record.attached.push(attached);
    place.write(record)?;
    let attached = &mut record.attached[at];
    let mut ebpf = kernel::load(settings(device, attached), attached.rooms)?;
    attached.program = Some(hook::number(kernel::program(&mut ebpf)?)?);
    let folder = place.make(position)?;
    kernel::pin(&ebpf, &folder)?;
    let mut maps = Maps::of(&mut ebpf)?;
    let named = by_name(tenants);
    for (row, held) in grants.rows().iter().zip(&attached.held) {
        for state in held.first..held.first + held.flows {
            maps.reset(state, now_ns())?;
        }
        maps.configure(held, row.word())?;
        if let Some(tenant) = named.get(row.name.as_str()) {
            maps.tell(&Found::new(&tenant.matches, false)?, held.entity)?;
        }
    }
    take_over(place, attached, before, &mut maps)?;
    attached.made_clsact = choice.hook == Hook::Clsact && !has_clsact(&device.name)?;
    let made = attached.made_clsact;
    place.write(record)?;
    let others = match choice.hook {
        Hook::Tcx => hook::by_tcx(&mut ebpf, device, place, position)?,
        Hook::Clsact => {
            if made {
                qdisc_add_clsact(&device.name)
                    .map_err(|error| format!("{}: clsact: {}", device.name, chain(&error)))?;
            }
            hook::by_clsact(&mut ebpf, device, position)?
        }
    };
    let link = match hook::pinned(place, position)? {
        Some(pinned) => format!(", link {}", pinned.link),
        None => String::new(),
    };
    let beside = match others {
        0 => String::new(),
        n => format!(", before {n} others, which stay"),
    };
    Ok(format!(
        "{} ({}): {} by {}{link}{beside}: {}; {} tenants",
        device.name,
        device.about(),
        position.name(),
        choice.hook.name(),
        choice.why,
        grants.rows().len() - 1,
    ))
}

/// Takes gaps and counters of tenants over that the program before had, too.
fn take_over(place: &DevicePlace, attached: &Attached, before: Option<&Record>, maps: &mut Maps) -> Result<(), String> {
    let same = |old: &&Attached| old.position == attached.position;
    let Some(old) = before.and_then(|before| before.attached.iter().find(same)) else { return Ok(()) };
    let from = Maps::open(&place.aside(old.position))?;
    let was: BTreeMap<&str, &Held> = old.held.iter().map(|held| (held.name.as_str(), held)).collect();
    for held in &attached.held {
        if let Some(was) = was.get(held.name.as_str()).filter(|was| was.flows == held.flows) {
            for flow in 0..held.flows {
                maps.take_over(&from, was.first + flow, held.first + flow)?;
            }
        }
    }
    Ok(())
}

/// Values with which a position's program is loaded.
fn settings(device: &Device, attached: &Attached) -> Settings {
    Settings {
        drop_code: attached.drop_code,
        at_ingress: attached.position == Position::Ingress,
        link_bytes: device.link_bytes,
        kinds: attached.kinds,
        test_clock: false,
        test_entities: 0,
    }
}

/// The tenants by name: there may be a million.
fn by_name(tenants: &Tenants) -> BTreeMap<&str, &Tenant> {
    tenants.entity.iter().map(|tenant| (tenant.name.as_str(), tenant)).collect()
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
        fragments: if uses_ports { FRAGMENTS } else { 16 },
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
    device: &Device,
    before: &Record,
    record: &mut Record,
    tenants: &Tenants,
    granted: &[Grants],
    choices: &[Choice],
) -> Result<Option<Vec<String>>, String> {
    let same = before.index == record.index && before.attached.len() == granted.len();
    if !same || before.unfinished || !stands(place, device, before)? {
        return Ok(None);
    }
    let old = before.all()?;
    let kinds = tenants.entity.iter().map(|tenant| Found::kinds(&tenant.matches)).fold(0, |all, one| all | one);
    let mut stays = Vec::new();
    for ((attached, grants), choice) in before.attached.iter().zip(granted).zip(choices) {
        let mut new = attached.clone();
        new.held = hold(grants.rows(), &attached.held)?;
        let states = new.held.iter().map(|held| held.first + held.flows).max().unwrap_or(0);
        let entities = new.held.iter().map(|held| held.entity + 1).max().unwrap_or(0);
        let needed = rooms(tenants, &new.held);
        new.kinds |= kinds;
        // A program that looks at more kinds takes the place of the old one over the same maps, by tcx without a gap.
        let fits = attached.position == grants.position()
            && attached.hook == choice.hook
            && (new.kinds == attached.kinds || attached.hook == Hook::Tcx)
            && needed.ports <= attached.rooms.ports
            && needed.fragments <= attached.rooms.fragments
            && entities <= attached.rooms.configs
            && states <= attached.rooms.states
            && needed.keys <= attached.rooms.keys
            && needed.prefixes <= attached.rooms.prefixes;
        if !fits {
            return Ok(None);
        }
        stays.push(new);
    }
    record.attached = stays;
    place.write(&Record { unfinished: true, ..before.clone() })?;
    let mut lines = Vec::new();
    for ((new, attached), grants) in record.attached.iter_mut().zip(&before.attached).zip(granted) {
        let folder = place.pins(new.position);
        let mut maps = Maps::open(&folder)?;
        let (joined, left) = rewrite(&mut maps, new, attached, grants, tenants, &old)?;
        let (name, position) = (&device.name, new.position.name());
        let mut line =
            format!("{name}: {position} changed: {joined} joined, {left} left, {} tenants", new.held.len() - 1);
        if new.kinds != attached.kinds {
            let mut ebpf = kernel::load_with(settings(device, new), new.rooms, Some(&folder))?;
            new.program = Some(hook::number(kernel::program(&mut ebpf)?)?);
            hook::to_the_front(&mut ebpf, device, place, new.position)?;
            line += &format!("; another program, {position} by tcx, looks at more kinds of match");
        }
        lines.push(line);
    }
    record.unfinished = false;
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
    let (named, named_before) = (by_name(tenants), by_name(old));
    let mut left = 0;
    for held in &attached.held {
        let matches = |named: &BTreeMap<&str, &'_ Tenant>| named.get(held.name.as_str()).map(|one| one.matches.clone());
        let same = stays.get(held.name.as_str()) == Some(&held.entity);
        left += usize::from(!stays.contains_key(held.name.as_str()));
        if let Some(gone) = matches(&named_before)
            && (!same || matches(&named).as_ref() != Some(&gone))
        {
            maps.forget(&Found::new(&gone, false)?)?;
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
        if let Some(tenant) = named.get(row.name.as_str()) {
            maps.tell(&Found::new(&tenant.matches, false)?, held.entity)?;
        }
    }
    // Numbers that cgroups had before they were made again.
    maps.follow(&cgroups(tenants, new)?)?;
    Ok((joined, left))
}

/// Whether all that a record names still stands at the device. A program that others came before is put first again.
fn stands(place: &DevicePlace, device: &Device, record: &Record) -> Result<bool, String> {
    for attached in &record.attached {
        let folder = place.pins(attached.position);
        if !kernel::MAPS.iter().all(|name| folder.join(name).exists()) {
            return Ok(false);
        }
    }
    front(place, record, device).map(|troubles| troubles.is_empty())
}

/// Puts programs that others came before first again. Returns troubles that only a new program ends.
fn front(place: &DevicePlace, record: &Record, device: &Device) -> Result<Vec<String>, String> {
    let mut troubles = Vec::new();
    for attached in &record.attached {
        hook::tidy(place, attached.position);
        let look = || hook::standing(place, attached, Some(&device.name), record.index);
        if let (Standing::Not(_), Hook::Tcx) = (look(), attached.hook)
            && hook::pinned(place, attached.position)?.is_some_and(|link| link.index == device.index)
        {
            let folder = place.pins(attached.position);
            let mut ebpf = kernel::load_with(settings(device, attached), attached.rooms, Some(&folder))?;
            hook::to_the_front(&mut ebpf, device, place, attached.position)?;
        }
        if let Standing::Not(why) = look() {
            troubles.push(why);
        }
    }
    Ok(troubles)
}

/// Whether [`refresh`] has anything to heal.
pub fn ails(place: &DevicePlace, record: &Record) -> bool {
    let name = device::name_of(record.index);
    let Ok(tenants) = record.all() else { return false };
    record.attached.iter().any(|attached| {
        let stands = hook::standing(place, attached, name.as_deref(), record.index);
        let again = || {
            let wanted = cgroups(&tenants, attached).unwrap_or_default();
            let maps = Maps::open(&place.pins(attached.position));
            maps.is_ok_and(|maps| wanted.iter().any(|(&id, &entity)| !maps.knows(id, entity)))
        };
        matches!(stands, Standing::Not(_)) || again()
    })
}

/// Heals what is attached to a device: a program that others came before is put first, one that was removed is attached
/// again, cgroups that were made again are looked up. Says what was done.
pub fn refresh(roots: &Roots, name: &str, netns: Option<&str>) -> Result<Vec<String>, String> {
    let place = DevicePlace::new(roots, name, netns);
    let nothing = || format!("{name}: nothing is attached there");
    let again = |record: &Record, renamed: Option<&str>, why: &str| {
        let (device, netns) = (&record.device, record.netns.as_deref());
        let hook = record.attached.first().map(|attached| attached.hook).filter(|&hook| hook == Hook::Clsact);
        let (text, source) = (&record.tenants, "the attached tenants");
        let (by, owner) = (record.by, record.owner.as_deref());
        let lenient = true;
        let asked = Asked { device, renamed, netns, text, source, hook, by, owner, lenient, ..Asked::default() };
        let mut lines = vec![format!("{device}: {why}: attached again")];
        lines.extend(attach(roots, &asked)?.lines);
        Ok(lines)
    };
    let lock = place.lock()?;
    let Some(record) = place.record()? else {
        place.close(lock);
        return Err(nothing());
    };
    kernel::check_rights()?;
    let now = device::name_of(record.index);
    if record.unfinished || now.is_none() {
        drop(lock);
        let why = if record.unfinished { "a command that changed it did not finish" } else { "its device was gone" };
        return again(&record, now.as_deref(), why);
    }
    let device = Device::find(now.as_deref().unwrap_or(name))?;
    let mut lines = Vec::new();
    for attached in &record.attached {
        if let Standing::Not(why) = hook::standing(&place, attached, Some(&device.name), record.index) {
            lines.push(format!("{}: {}: {why}: put first", record.device, attached.position.name()));
        }
    }
    let troubles = front(&place, &record, &device)?;
    if let Some(why) = troubles.first() {
        drop(lock);
        return again(&record, Some(&device.name), why);
    }
    let tenants = record.all()?;
    for attached in &record.attached {
        let changed = Maps::open(&place.pins(attached.position))?.follow(&cgroups(&tenants, attached)?)?;
        if changed > 0 {
            lines.push(format!("{}: {}: {changed} cgroups were made again", record.device, attached.position.name()));
        }
    }
    if lines.is_empty() {
        lines.push(format!("{}: nothing to heal", record.device));
    }
    Ok(lines)
}

/// The numbers of cgroups that are there now, and whose they are.
pub fn cgroups(tenants: &Tenants, attached: &Attached) -> Result<BTreeMap<u64, u32>, String> {
    let (mut all, named) = (BTreeMap::new(), by_name(tenants));
    for held in &attached.held {
        let Some(tenant) = named.get(held.name.as_str()) else { continue };
        all.extend(Found::new(&tenant.matches, false)?.cgroups().map(|id| (id, held.entity)));
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
