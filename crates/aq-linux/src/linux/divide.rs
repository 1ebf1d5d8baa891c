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
use super::place::{Attached, DevicePlace, Record};
use super::show::{arrived, now_ns};
use crate::grants::Grants;
use crate::tenants::{Tenants, read};

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
    let _lock = place.lock("divide")?;
    let nothing = || "nothing is attached there; `clearway-aq attach` comes first".to_owned();
    let mut record = place.record()?.ok_or_else(nothing)?;
    let tenants = read(&record.tenants, "the attached tenants")?;
    let Some(WorkConserving::Reallocate { period, .. }) = tenants.config().work_conserving else {
        return Err("the attached tenants ask for no work conservation; write sharing.aq.work_conserving = { \
                    reallocate = { period = \"100ms\", headroom = 0.1 } } and attach them again"
            .to_owned());
    };
    let mut halves = open(place, &record, &tenants)?;
    drop_rights()?;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Wait::from_nanos(period.ps() / 1_000));
        let Some(now) = place.record()? else { return Ok(()) };
        if now != record {
            halves = reopen(place, &now, halves)?;
            record = now;
        }
        for half in &mut halves {
            half.divide()?;
        }
    }
    for half in &mut halves {
        let tenants = read(&record.tenants, "the attached tenants")?;
        half.grants = grants(&record, &tenants, &half.attached)?;
        half.write()?;
    }
    Ok(())
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
fn reopen(place: &DevicePlace, record: &Record, halves: Vec<Half>) -> Result<Vec<Half>, String> {
    let tenants = read(&record.tenants, "the attached tenants")?;
    let mut left: Vec<Half> = halves;
    let half = |attached: &Attached| {
        let same =
            |half: &Half| half.attached.position == attached.position && half.attached.made_ns == attached.made_ns;
        let maps = match left.iter().position(same) {
            Some(at) => left.swap_remove(at).maps,
            None => Maps::open(&place.pins(attached.position))
                .map_err(|why| format!("the program was replaced; start `clearway-aq divide` again: {why}"))?,
        };
        Half::new(record, &tenants, attached.clone(), maps)
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
