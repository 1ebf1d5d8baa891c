//! Work conservation: a process that re-divides a device's link by what tenants use (section 6 of the paper), period by
//! period, with the simulator's own arithmetic.
//!
//! It reads counters and writes rates; packets never wait for it. If it is killed, rates stay as they are, and no
//! tenant has less than its guarantee. If it is asked to end, it sets them to the guarantees. If `attach` changes the
//! tenants, it uses the new ones from the next period on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as Wait;

use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use sharing::aq::WorkConserving;
use units::Duration;

use super::kernel::Maps;
use super::place::{Attached, DevicePlace, Lock, Record};
use super::show::{arrived, now_ns};
use crate::grants::Grants;
use crate::tenants::Tenants;

/// One position of a device.
struct Half {
    attached: Attached,
    tenants: Tenants,
    grants: Grants,
    maps: Maps,
    before: Vec<u64>,
    at_ns: u64,
}

/// Divides until `stop`. It needs no right but those to the pinned maps, and drops all others.
pub fn divide(place: &DevicePlace, stop: &Arc<AtomicBool>) -> Result<(), String> {
    let mut divider = Divider::new(place)?.ok_or(
        "the attached tenants ask for no work conservation; write sharing.aq.work_conserving = { reallocate = { \
         period = \"100ms\", headroom = 0.1 } } and attach them again",
    )?;
    drop_rights()?;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(divider.period());
        if !divider.divide()? {
            return Ok(());
        }
    }
    divider.end()
}

/// The division of one device's link.
pub struct Divider {
    place: DevicePlace,
    record: Record,
    halves: Vec<Half>,
    period: Wait,
    _lock: Lock,
}

impl std::fmt::Debug for Divider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Divider")
    }
}

/// The period of tenants that ask for work conservation.
pub fn period(tenants: &Tenants) -> Option<Wait> {
    match tenants.config().work_conserving {
        Some(WorkConserving::Reallocate { period, .. }) => Some(Wait::from_nanos(period.ps() / 1_000)),
        _ => None,
    }
}

impl Divider {
    /// Begins to divide; none if the attached tenants ask for no work conservation.
    pub fn new(place: &DevicePlace) -> Result<Option<Divider>, String> {
        let lock = place.lock_to_divide()?;
        let other = || format!("another clearway-aq lends the idle shares of {} already", place.name());
        Divider::with(place, lock.ok_or_else(other)?)
    }

    /// The same; none, too, if another process divides it.
    pub fn try_new(place: &DevicePlace) -> Result<Option<Divider>, String> {
        place.lock_to_divide()?.map_or(Ok(None), |lock| Divider::with(place, lock))
    }

    fn with(place: &DevicePlace, lock: Lock) -> Result<Option<Divider>, String> {
        let nothing = || "nothing is attached there; `clearway-aq attach` comes first".to_owned();
        let record = place.record()?.ok_or_else(nothing)?;
        let tenants = record.all()?;
        let Some(period) = period(&tenants) else { return Ok(None) };
        let halves = open(place, &record, &tenants)?;
        Ok(Some(Divider { place: place.clone(), record, halves, period, _lock: lock }))
    }

    /// The time from one division to the next.
    pub fn period(&self) -> Wait {
        self.period
    }

    /// Divides once. False if the tenants were detached.
    pub fn divide(&mut self) -> Result<bool, String> {
        let Some(now) = self.place.record()? else { return Ok(self.place.is_busy()) };
        if now.unfinished {
            // A command is replacing the program, or was killed; rates stay until it is known which program stands.
            return Ok(true);
        }
        if now != self.record {
            let tenants = now.all()?;
            self.halves = reopen(&self.place, &now, &tenants, std::mem::take(&mut self.halves))?;
            self.period = period(&tenants).unwrap_or(self.period);
            self.record = now;
        }
        for half in &mut self.halves {
            half.divide()?;
        }
        Ok(true)
    }

    /// Gives every tenant what it is guaranteed.
    pub fn end(mut self) -> Result<(), String> {
        let tenants = self.record.all()?;
        for half in &mut self.halves {
            half.grants = grants(&self.record, &tenants, &half.attached)?;
            half.write()?;
        }
        Ok(())
    }
}

fn grants(record: &Record, tenants: &Tenants, attached: &Attached) -> Result<Grants, String> {
    Grants::new(tenants, attached.position, record.senders()).map_err(|problem| problem.to_string())
}

fn open(place: &DevicePlace, record: &Record, tenants: &Tenants) -> Result<Vec<Half>, String> {
    let half = |attached: &Attached| {
        let maps = Maps::open(&place.pins(attached.position))?;
        Half::new(record, tenants, attached.clone(), maps)
    };
    record.attached.iter().map(half).collect()
}

/// Changed tenants, with the same maps where the program is the same. A program that was replaced, as after its device
/// returned, has others: root may open them without any capability.
fn reopen(place: &DevicePlace, record: &Record, tenants: &Tenants, halves: Vec<Half>) -> Result<Vec<Half>, String> {
    let mut left: Vec<Half> = halves;
    let half = |attached: &Attached| {
        let same =
            |half: &Half| half.attached.position == attached.position && half.attached.made_ns == attached.made_ns;
        let maps = match left.iter().position(same) {
            Some(at) => left.swap_remove(at).maps,
            None => Maps::open(&place.pins(attached.position))
                .map_err(|why| format!("the program was replaced; start `clearway-aq divide` again: {why}"))?,
        };
        Half::new(record, tenants, attached.clone(), maps)
    };
    record.attached.iter().map(half).collect()
}

impl Half {
    fn new(record: &Record, tenants: &Tenants, attached: Attached, maps: Maps) -> Result<Half, String> {
        let before = arrived(&maps, &attached)?.iter().map(|bytes| bytes.get()).collect();
        let grants = grants(record, tenants, &attached)?;
        Ok(Half { attached, tenants: tenants.clone(), grants, maps, before, at_ns: now_ns() })
    }

    fn divide(&mut self) -> Result<(), String> {
        let after: Vec<u64> = arrived(&self.maps, &self.attached)?.iter().map(|bytes| bytes.get()).collect();
        let now = now_ns();
        let used: Vec<u64> = after.iter().zip(&self.before).map(|(a, b)| a.saturating_sub(*b)).collect();
        self.grants.divide(&self.tenants, Duration::from_ns(now - self.at_ns), &used);
        (self.before, self.at_ns) = (after, now);
        self.write()
    }

    fn write(&mut self) -> Result<(), String> {
        for (row, held) in self.grants.rows().iter().zip(&self.attached.held) {
            self.maps.configure(held, row.word())?;
        }
        Ok(())
    }
}

/// Gives up every capability: open maps need none.
fn drop_rights() -> Result<(), String> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(|error| format!("capabilities could not be dropped: {error}"))
}
