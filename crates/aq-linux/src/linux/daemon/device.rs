//! One device that is kept: its record, what is done about it, and what is measured.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use contract::sharing::Position;

use super::super::attach::{Asked, attach, refresh};
use super::super::detach::remove;
use super::super::divide::{Divider, period};
use super::super::hook::Standing;
use super::super::kernel::cgroup_folder;
use super::super::netlink::{self, Link};
use super::super::netns::within;
use super::super::place::{By, DevicePlace, Record, Roots};
use super::super::show::{Line, View, standings};
use super::config::Wanted;
use super::decide::Act;
use super::notify::{Level, log};
use super::probe::Probe;
use super::status::{Healed, Kept, now};

/// A device and its record, as of the last look.
pub struct Keeping {
    place: DevicePlace,
    stamp: Option<(u64, i64, i64, u64)>,
    record: Option<Record>,
    /// The record that was lost when healing failed on the way.
    lost: Option<Record>,
    view: Option<View>,
    lines: Vec<Line>,
    probes: BTreeMap<&'static str, Probe>,
    divider: Option<Divider>,
    divides_at: Option<Instant>,
    kept: Kept,
    warned: Vec<String>,
    /// Looks in a row at which something was done.
    acts: u32,
}

/// The devices of a namespace, and where each of these devices' programs stand.
pub fn see(netns: Option<&str>, keepings: &[&Keeping]) -> Result<(Vec<Link>, Vec<Vec<Standing>>), String> {
    let records: Vec<(&DevicePlace, Option<&Record>)> = keepings.iter().map(|one| (&one.place, one.record())).collect();
    within(netns, || {
        let look = |&(place, record): &(&DevicePlace, Option<&Record>)| {
            record.map_or_else(Vec::new, |record| standings(place, record))
        };
        Ok((netlink::links()?, records.iter().map(look).collect()))
    })?
}

impl Keeping {
    /// A device at a place.
    pub fn new(place: DevicePlace) -> Keeping {
        Keeping {
            place,
            stamp: None,
            record: None,
            lost: None,
            view: None,
            lines: Vec::new(),
            probes: BTreeMap::new(),
            divider: None,
            divides_at: None,
            kept: Kept::default(),
            warned: Vec::new(),
            acts: 0,
        }
    }

    /// Reads the record again if it is another.
    pub fn read(&mut self) {
        let stamp = self.place.stamp();
        if stamp == self.stamp && (self.view.is_some() || stamp.is_none()) {
            return;
        }
        self.stamp = stamp;
        self.view = None;
        self.probes.clear();
        match self.place.record() {
            Ok(record) => self.record = record,
            Err(why) => self.say(Some(why)),
        }
        // A device whose maps can't be opened is healed, and then they can.
        self.view = View::open(&self.place).ok().flatten();
    }

    /// Where its record is.
    pub fn place(&self) -> &DevicePlace {
        &self.place
    }

    /// Its record.
    pub fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    /// Whether it is to be attached again though nothing says so any more.
    pub fn has_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Its namespace, by its record.
    pub fn netns(&self) -> Option<String> {
        self.record.as_ref().or(self.lost.as_ref()).and_then(|record| record.netns.clone())
    }

    /// The daemon's knowledge of it.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Its tenants, as of the last look.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Whether a cgroup of a tenant was made again.
    pub fn has_new_cgroups(&self) -> bool {
        self.view.as_ref().is_some_and(View::has_new_cgroups)
    }

    /// Whether something was just done. Where that is so time and again, the next look has time.
    pub fn is_to_be_seen_again(&self) -> bool {
        self.acts == 1
    }

    /// The folders of its tenants' cgroups.
    pub fn cgroups(&self) -> Vec<PathBuf> {
        let tenants = self.view.as_ref().map(View::tenants);
        let all = tenants.into_iter().flat_map(|tenants| &tenants.entity);
        all.flat_map(|tenant| &tenant.matches.cgroup).filter_map(|path| cgroup_folder(path)).collect()
    }

    /// Does what was decided.
    pub fn act(&mut self, roots: &Roots, act: Act, wanted: Option<&Wanted>, links: &[Link]) {
        let acts = std::mem::take(&mut self.acts);
        if self.place.is_busy() {
            // A command is at work on it; the next look tells what it did.
            return;
        }
        let lost = self.lost.take().filter(|_| self.record.is_none() && wanted.is_none());
        let heals = matches!(act, Act::Nothing | Act::Attach(_) | Act::Refresh(_));
        let (why, done) = match act {
            Act::Nothing if lost.is_some() => ("healing failed".to_owned(), self.attach(roots, None, lost, links)),
            Act::Nothing => return self.say(None),
            Act::Wait(why) => {
                self.lost = lost;
                return self.say(Some(why));
            }
            Act::Configure(why) | Act::Attach(why) => {
                let record = self.record.clone();
                (why, self.attach(roots, wanted, record, links))
            }
            Act::Refresh(why) => (why, self.refresh(roots)),
            Act::Remove(why) => (why, self.remove()),
        };
        match done {
            Ok(lines) => {
                self.say(None);
                let what = format!("{why}: {}", lines.join("; "));
                log(Level::Notice, &format!("{}: {what}", self.place.name()));
                if heals {
                    self.kept.heals += 1;
                    self.kept.healed = Some(Healed { at: now(), what });
                }
            }
            Err(error) => self.say(Some(format!("{why}, but it could not be healed: {error}"))),
        }
        self.acts = acts + 1;
        // The act shows at once.
        self.read();
    }

    /// Attaches what the configuration wants, else what a record says.
    fn attach(
        &mut self,
        roots: &Roots,
        wanted: Option<&Wanted>,
        record: Option<Record>,
        links: &[Link],
    ) -> Result<Vec<String>, String> {
        let asked = match (wanted, &record) {
            (Some(wanted), _) => Asked {
                device: &wanted.name,
                netns: wanted.netns.as_deref(),
                text: &wanted.text,
                source: &wanted.source,
                hook: wanted.hook,
                by: By::Daemon,
                ..Asked::default()
            },
            (None, Some(record)) => Asked {
                device: &record.device,
                netns: record.netns.as_deref(),
                text: &record.tenants,
                source: "the attached tenants",
                by: record.by,
                owner: record.owner.as_deref(),
                ..Asked::default()
            },
            (None, None) => return Ok(Vec::new()),
        };
        let there = links.iter().any(|link| link.name == asked.device);
        let index = record.as_ref().map(|record| record.index);
        let renamed = links.iter().find(|link| !there && Some(link.index) == index).map(|link| link.name.as_str());
        let asked = Asked { renamed, lenient: true, ..asked };
        let done = within(asked.netns, || attach(roots, &asked)).and_then(|done| done);
        if done.is_err() && wanted.is_none() && self.place.record().is_ok_and(|record| record.is_none()) {
            self.lost = record;
        }
        let done = done?;
        // Each is said once.
        for warning in done.warnings.iter().filter(|warning| !self.warned.contains(warning)) {
            log(Level::Warning, &format!("{}: {warning}", self.place.name()));
        }
        self.warned = done.warnings;
        Ok(done.lines)
    }

    fn refresh(&mut self, roots: &Roots) -> Result<Vec<String>, String> {
        let Some(record) = self.record.clone() else { return Ok(Vec::new()) };
        let netns = record.netns.as_deref();
        let done = within(netns, || refresh(roots, &record.device, netns)).and_then(|done| done);
        if done.is_err() && self.place.record().is_ok_and(|record| record.is_none()) {
            self.lost = Some(record);
        }
        done
    }

    fn remove(&mut self) -> Result<Vec<String>, String> {
        let lock = self.place.lock()?;
        let done = match self.place.record()? {
            Some(record) => {
                let netns = record.netns.as_deref();
                let inside = within(netns, || remove(&self.place, &record, &Ok(())));
                inside.unwrap_or_else(|why| remove(&self.place, &record, &Err(why)))
            }
            None => Ok("nothing was attached any more".to_owned()),
        };
        self.place.close(lock);
        done.map(|said| vec![said])
    }

    /// Measures rates, and what came by the device unseen.
    pub fn measure(&mut self, standings: &[Standing], links: Option<&[Link]>) {
        let Some(record) = &self.record else {
            self.lines.clear();
            return;
        };
        let link = links.and_then(|links| links.iter().find(|link| link.index == record.index));
        let stuck = || Standing::Not("it was not healed yet".to_owned());
        let mut standings = standings.to_vec();
        standings.resize_with(record.attached.len(), stuck);
        let Some(view) = &mut self.view else {
            self.lines.clear();
            return;
        };
        match view.lines_at(standings, Some(&self.kept)) {
            Ok(lines) => self.lines = lines,
            Err(why) => return self.say(Some(why)),
        }
        let queue = view.tenants().link.queue.get();
        let Some(link) = link else { return };
        for attached in &record.attached {
            let position = attached.position.name();
            let here = self.lines.iter().filter(|line| line.position == position);
            // At ingress the device has counted what is dropped, too.
            let (device, seen) = match attached.position {
                Position::Egress => (link.sent, here.map(|line| line.bytes).sum()),
                Position::Ingress => (link.received, here.map(|line| line.bytes + line.dropped_bytes).sum()),
            };
            let probe = self.probes.entry(position).or_insert_with(|| Probe::new(device, seen));
            let escaped = probe.look(device, seen, queue);
            if escaped > 0 {
                let all = self.kept.escaped.entry(position.to_owned()).or_default();
                if all.said().is_none() {
                    log(Level::Error, &format!("{}: {position}: {escaped} bytes were not seen", self.place.name()));
                }
                all.bytes += escaped;
                all.at = now();
            }
        }
    }

    /// Says that its namespace can't be looked into. Nothing is done then.
    pub fn cannot_look(&mut self, why: &str) {
        let places = self.record.as_ref().map_or(0, |record| record.attached.len());
        self.measure(&vec![Standing::Unknown(why.to_owned()); places], None);
        self.say(Some(why.to_owned()));
    }

    /// Keeps why it can't do what it should, and says it once.
    fn say(&mut self, why: Option<String>) {
        if let Some(why) = &why
            && self.kept.trouble.as_ref() != Some(why)
        {
            log(Level::Error, &format!("{}: {why}", self.place.name()));
        }
        self.kept.trouble = why;
    }

    /// When the device's link is divided next.
    pub fn divides_at(&self) -> Option<Instant> {
        self.divides_at
    }

    /// Lends idle shares if the tenants ask for it and it is time to.
    pub fn divide(&mut self) {
        let asks = self.view.as_ref().and_then(|view| period(view.tenants()));
        let Some(period) = asks.filter(|_| self.record.as_ref().is_some_and(|record| !record.unfinished)) else {
            (self.divider, self.divides_at) = (None, None);
            return;
        };
        if self.divides_at.is_some_and(|at| Instant::now() < at) {
            return;
        }
        self.divides_at = Some(Instant::now() + period);
        if self.divider.is_none() {
            // Another process may divide it.
            self.divider = Divider::try_new(&self.place).ok().flatten();
        }
        if let Some(divider) = &mut self.divider
            && !divider.divide().unwrap_or(false)
        {
            // Its program was replaced; the next one begins with that.
            self.divider = None;
        }
    }

    /// Gives idle shares back.
    pub fn end(self) {
        if let Some(divider) = self.divider
            && let Err(why) = divider.end()
        {
            log(Level::Error, &format!("{}: {why}", self.place.name()));
        }
    }
}
