//! Taking all off a device, and saying what is true of it: a device may have been renamed, moved or removed meanwhile,
//! and its namespace may have no name any more.

use aya::programs::loaded_programs;
use contract::sharing::Position;

use super::device::{self, Device, Hook, has_clsact, remove_clsact};
use super::hook;
use super::kernel::{self, tcx_programs};
use super::place::{DevicePlace, Record, Roots};

/// Takes all off a device that `attach` put there, and says how the device is now. `entered` says whether the thread
/// could enter the device's namespace.
pub fn detach(roots: &Roots, device: &str, netns: Option<&str>, entered: Result<(), String>) -> Result<String, String> {
    let place = DevicePlace::new(roots, device, netns);
    let lock = place.lock()?;
    let done = detach_locked(roots, device, netns, entered, &place);
    place.close(lock);
    done
}

fn detach_locked(
    roots: &Roots,
    device: &str,
    netns: Option<&str>,
    entered: Result<(), String>,
    place: &DevicePlace,
) -> Result<String, String> {
    let here = entered.is_ok().then(|| Device::find(device).ok()).flatten();
    let Some(record) = place.record()? else {
        if let Some(here) = &here
            && let Some((other, record)) = elsewhere(roots, here, netns)?
        {
            let lock = other.lock()?;
            kernel::check_rights()?;
            let done = remove(&other, &record, &Ok(()));
            other.close(lock);
            return done;
        }
        entered?;
        return leftovers(place, here.as_ref());
    };
    kernel::check_rights()?;
    remove(place, &record, &entered)
}

/// Removes what stands without a record, after that was lost: pins and filters.
fn leftovers(place: &DevicePlace, device: Option<&Device>) -> Result<String, String> {
    let name = device.map_or(place.name(), |device| &device.name);
    let filters = device.map_or(Ok(0), |device| hook::remove_strays(&device.name))?;
    let pins = place.has_pins();
    place.clear()?;
    match (pins, filters) {
        (false, 0) => Err(format!("{name}: nothing of ours is attached there")),
        _ => Ok(format!("{name}: as it was; what was there had no record")),
    }
}

/// The place of a device that was attached under another name.
pub fn elsewhere(roots: &Roots, device: &Device, netns: Option<&str>) -> Result<Option<(DevicePlace, Record)>, String> {
    for place in DevicePlace::all(roots) {
        let Some(record) = place.record()? else { continue };
        let same = record.netns.as_deref() == netns && record.index == device.index && record.device != device.name;
        if same && stands_at(&place, &record, &device.name) {
            return Ok(Some((place, record)));
        }
    }
    Ok(None)
}

/// Whether any program of a record stands at a device of this namespace.
fn stands_at(place: &DevicePlace, record: &Record, device: &str) -> bool {
    record.attached.iter().any(|attached| match attached.hook {
        Hook::Tcx => hook::pinned(place, attached.position).ok().flatten().is_some_and(|link| {
            link.index == record.index
                && tcx_programs(link.index, attached.position).is_ok_and(|all| all.contains(&link.program))
        }),
        Hook::Clsact => device::filters(device, attached.position)
            .is_ok_and(|all| all.iter().any(|filter| filter.program.is_some() && filter.program == attached.program)),
    })
}

/// Takes off what a record names, and says how the device is then. `entered` says whether the thread is in its
/// namespace.
pub fn remove(place: &DevicePlace, record: &Record, entered: &Result<(), String>) -> Result<String, String> {
    let was = &record.device;
    let now = entered.is_ok().then(|| device::name_of(record.index)).flatten();
    let here = now.as_deref().filter(|now| stands_at(place, record, now));
    let alive = record.attached.iter().any(|attached| {
        let link = hook::pinned(place, attached.position).ok().flatten();
        link.is_some_and(|link| link.index != 0)
    });
    // A command that was killed may have left the qdisc without the filter.
    let qdisc = here.or(now.as_deref().filter(|_| record.unfinished));
    place.write(&Record { unfinished: true, ..record.clone() })?;
    for attached in &record.attached {
        hook::take_off(place, attached, here)?;
    }
    if let Some(device) = qdisc
        && record.attached.iter().any(|attached| attached.made_clsact)
        && has_clsact(device)?
    {
        let left = device::filters(device, Position::Egress)?.len() + device::filters(device, Position::Ingress)?.len();
        if left == 0 {
            remove_clsact(device)?;
        }
    }
    let gone = "and with it what was attached; its maps and record are removed";
    let said = match (here, entered) {
        (Some(now), _) if now == was => format!("{was}: as it was"),
        (Some(now), _) => format!("{was} is {now} now: as it was"),
        (None, Err(_)) if alive => format!("{was}: as it was; its namespace has no name any more, but lives"),
        (None, Err(why)) if filter_lives(record) => {
            return Err(format!(
                "{was}: a filter of clsact stands in a namespace that has no name any more; name it by a process in it \
                 (--netns PID): {why}"
            ));
        }
        (None, Err(_)) => format!("{was}: its namespace is gone, {gone}"),
        (None, Ok(())) if alive => format!("{was}: as it was, but in another namespace now"),
        (None, Ok(())) if now.as_deref() == Some(was) => {
            format!("{was}: what was attached had been taken off already; its maps and record are removed")
        }
        (None, Ok(())) => format!("{was}: the device is gone, {gone}"),
    };
    place.clear()?;
    Ok(said)
}

/// Whether the program of a filter is still in the kernel. Its maps' pins don't hold it, so the filter does.
fn filter_lives(record: &Record) -> bool {
    let ours: Vec<u32> = record
        .attached
        .iter()
        .filter(|attached| attached.hook == Hook::Clsact)
        .filter_map(|attached| attached.program)
        .collect();
    !ours.is_empty() && loaded_programs().flatten().any(|program| ours.contains(&program.id()))
}
