//! A device's hook: the program's link or filter there, others that run before it, and whether it runs at all.
//!
//! A tcx link is bound to its device and not to a name, so it is found wherever the device was moved or however it was
//! renamed. Without its pin and its last holder it detaches: a command that is killed before it could pin a link leaves
//! none. A filter of clsact stays without a process, so it is found by the number of its program, which is written down
//! before the filter is made.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use aya::Ebpf;
use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::tc::{NlOptions, SchedClassifierLink, TcAttachOptions, TcHandle};
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType, loaded_programs};
use contract::sharing::Position;

use super::device::{self, Device, Filter, Hook};
use super::kernel::{self, PROGRAM, chain, tcx_programs};
use super::place::{Attached, DevicePlace};

/// The name of a link's pin, and that of one which is to replace it.
const LINK: &str = "link";
const NEXT: &str = "next";

/// Whether a program stands where it counts every packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It runs, and nothing runs before it.
    First,
    /// It does not run, or others run before it and can pass packets by it: why.
    Not(String),
    /// This process may not look: why.
    Unknown(String),
}

/// A pinned link, as the kernel describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// Its number.
    pub link: u32,
    /// The number of its program.
    pub program: u32,
    /// The number of its device in the device's namespace; 0 if the device is gone.
    pub index: u32,
}

fn direction(position: Position) -> TcAttachType {
    match position {
        Position::Ingress => TcAttachType::Ingress,
        Position::Egress => TcAttachType::Egress,
    }
}

/// The pin of a position's link.
fn pin(place: &DevicePlace, position: Position) -> PathBuf {
    place.pins(position).join(LINK)
}

/// The pinned link of a position; none if there is no such pin.
pub fn pinned(place: &DevicePlace, position: Position) -> Result<Option<Pinned>, String> {
    held(&pin(place, position))
}

/// The link that is pinned as `path`.
fn held(path: &Path) -> Result<Option<Pinned>, String> {
    if !path.exists() {
        return Ok(None);
    }
    let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
    let opened = File::from(kernel::get(path, 0).map_err(wrong)?);
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", opened.as_raw_fd())).map_err(wrong)?;
    let number = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(":\t"));
        line.and_then(|value| value.trim().parse().ok())
    };
    match (number("link_id"), number("prog_id"), number("ifindex")) {
        (Some(link), Some(program), Some(index)) => Ok(Some(Pinned { link, program, index })),
        _ => Err(format!("{}: the kernel does not say what it holds", path.display())),
    }
}

/// Attaches before all other tcx programs of the device and pins the link. Returns how many others there are.
pub fn by_tcx(ebpf: &mut Ebpf, device: &Device, place: &DevicePlace, position: Position) -> Result<usize, String> {
    let others = tcx_programs(device.index, position).map_err(|error| format!("{}: tcx: {error}", device.name))?;
    let leaves = held(&place.aside(position).join(LINK))?.map(|link| link.program);
    let others: Vec<u32> = others.into_iter().filter(|&id| Some(id) != leaves).collect();
    if let Some(id) = ours_among(&others) {
        return Err(format!(
            "{}: {} has a program of another clearway-aq already, number {id}; detach it by the --netns, --pins and \
             --run with which it was attached",
            device.name,
            position.name()
        ));
    }
    first(ebpf, device, position, &pin(place, position))?;
    Ok(others.len())
}

/// Attaches a program before all others, and pins its link.
fn first(ebpf: &mut Ebpf, device: &Device, position: Position, path: &Path) -> Result<(), String> {
    let wrong = |error: &(dyn std::error::Error + 'static)| format!("{}: tcx: {}", device.name, chain(error));
    let program = kernel::program(ebpf)?;
    let order = TcAttachOptions::TcxOrder(LinkOrder::first());
    let id = program.attach_with_options(&device.name, direction(position), order).map_err(|error| wrong(&error))?;
    let link = program.take_link(id).map_err(|error| wrong(&error))?;
    let link: FdLink = link.try_into().map_err(|error| wrong(&error))?;
    link.pin(path).map(drop).map_err(|error| wrong(&error))
}

/// Programs of any clearway-aq among these; none where this process may not look.
fn ours_among(programs: &[u32]) -> Option<u32> {
    if programs.is_empty() {
        return None;
    }
    let ours = |id: u32, name: &[u8]| programs.contains(&id) && name == PROGRAM.as_bytes();
    loaded_programs().flatten().find(|program| ours(program.id(), program.name())).map(|program| program.id())
}

/// Puts a program with the same maps before all others, then takes the old one away: no packet passes uncounted, and
/// those of the instant between are counted twice. A command that is killed between leaves a second pin ([`tidy`]).
pub fn to_the_front(ebpf: &mut Ebpf, device: &Device, place: &DevicePlace, position: Position) -> Result<(), String> {
    let (old, new) = (pin(place, position), place.pins(position).join(NEXT));
    first(ebpf, device, position, &new)?;
    fs::rename(&new, &old).map_err(|error| format!("{}: {error}", old.display()))
}

/// Removes the pin that a killed command left.
pub fn tidy(place: &DevicePlace, position: Position) {
    let _ = fs::remove_file(place.pins(position).join(NEXT));
}

/// Attaches a filter before all others of the device's clsact. Where anything would run before it, it is refused.
pub fn by_clsact(ebpf: &mut Ebpf, device: &Device, position: Position) -> Result<usize, String> {
    let wrong = |error: &(dyn std::error::Error + 'static)| format!("{}: clsact: {}", device.name, chain(error));
    let before = tcx_programs(device.index, position).unwrap_or_default();
    if !before.is_empty() {
        return Err(format!(
            "{}: {} has tcx programs ({}), which run before clsact and can pass packets by it; leave --hook out",
            device.name,
            position.name(),
            numbers(&before)
        ));
    }
    let others = device::filters(&device.name, position)?;
    if others.iter().any(|filter| filter.name == PROGRAM) {
        return Err(format!(
            "{}: {} has a filter of another clearway-aq already; detach it as it was attached, or, if its record was \
             lost, by `clearway-aq detach {}`",
            device.name,
            position.name(),
            device.name
        ));
    }
    if let Some(one) = others.iter().find(|filter| filter.priority <= 1) {
        return Err(format!(
            "{}: a filter of clsact at {} has priority {}, so none can run before it; give it a larger one",
            device.name,
            position.name(),
            one.priority
        ));
    }
    let program = kernel::program(ebpf)?;
    // Priority 0: the kernel puts it before those that are there.
    let options = TcAttachOptions::Netlink(NlOptions::default());
    let id = program.attach_with_options(&device.name, direction(position), options).map_err(|error| wrong(&error))?;
    // The filter stays when the command ends.
    std::mem::forget(program.take_link(id).map_err(|error| wrong(&error))?);
    Ok(others.len())
}

/// Removes a filter.
fn remove_filter(device: &str, position: Position, filter: &Filter) -> Result<(), String> {
    let handle = TcHandle::from(filter.handle);
    let link = SchedClassifierLink::attached(device, direction(position), filter.priority, handle, None);
    // Dropped, it detaches.
    link.map(drop).map_err(|error| format!("{device}: {error}"))
}

/// Removes filters of clearway-aq from a device that has no record. Returns how many there were.
pub fn remove_strays(device: &str) -> Result<usize, String> {
    let mut removed = 0;
    for position in [Position::Egress, Position::Ingress] {
        for filter in device::filters(device, position)?.iter().filter(|filter| filter.name == PROGRAM) {
            remove_filter(device, position, filter)?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Takes a program off its hook. `device` is the present name of its device, if it is there.
pub fn take_off(place: &DevicePlace, attached: &Attached, device: Option<&str>) -> Result<(), String> {
    match attached.hook {
        Hook::Tcx => {
            tidy(place, attached.position);
            let path = pin(place, attached.position);
            if let Ok(link) = PinnedLink::from_pin(&path) {
                link.unpin().map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
        Hook::Clsact => {
            let Some(device) = device else { return Ok(()) };
            for filter in device::filters(device, attached.position)? {
                if filter.program.is_some() && filter.program == attached.program {
                    remove_filter(device, attached.position, &filter)?;
                }
            }
        }
    }
    Ok(())
}

/// Where a program stands. The thread is in the device's namespace; `device` is the device's present name.
pub fn standing(place: &DevicePlace, attached: &Attached, device: Option<&str>, index: u32) -> Standing {
    match attached.hook {
        Hook::Tcx => match pinned(place, attached.position) {
            Err(why) => Standing::Unknown(why),
            Ok(None) => Standing::Not("its link is gone".to_owned()),
            Ok(Some(Pinned { index: 0, .. })) => {
                Standing::Not("the device is gone, or its link was detached by another program".to_owned())
            }
            Ok(Some(link)) => match tcx_programs(link.index, attached.position) {
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => in_chain(&[], link.program),
                Err(error) => Standing::Unknown(error.to_string()),
                Ok(all) => in_chain(&all, link.program),
            },
        },
        Hook::Clsact => {
            let Some(device) = device else { return Standing::Not("the device is gone".to_owned()) };
            if let Ok(all) = tcx_programs(index, attached.position)
                && !all.is_empty()
            {
                return Standing::Not(format!("tcx programs ({}) run before its filter", numbers(&all)));
            }
            match device::filters(device, attached.position) {
                Err(why) => Standing::Unknown(why),
                Ok(all) => match all.iter().position(|filter| filter.program == attached.program) {
                    Some(0) => Standing::First,
                    Some(n) => Standing::Not(format!("{n} filters run before its own")),
                    None => Standing::Not("its filter was removed".to_owned()),
                },
            }
        }
    }
}

/// Whether a program is the first of a chain.
fn in_chain(all: &[u32], ours: u32) -> Standing {
    match all.iter().position(|&id| id == ours) {
        Some(0) => Standing::First,
        Some(n) => Standing::Not(format!("programs before it ({}) can pass packets by it", numbers(&all[..n]))),
        None => Standing::Not("its device is in another namespace now".to_owned()),
    }
}

fn numbers(programs: &[u32]) -> String {
    let all: Vec<String> = programs.iter().map(u32::to_string).collect();
    format!("number {}", all.join(", "))
}

/// The number of a program that was loaded.
pub fn number(program: &SchedClassifier) -> Result<u32, String> {
    program.info().map(|info| info.id()).map_err(|error| chain(&error))
}
