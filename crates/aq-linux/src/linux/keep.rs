//! When a device disappears, so do its programs. `attach --keep` keeps running, and attaches the tenants again when a
//! device with that name is back, such as that of a container or VM that was started again. Once a second it also heals
//! what is attached, as `refresh` does.
//!
//! It looks for the device five times a second, since a device's number changes when it is made anew. It keeps only the
//! two capabilities that attaching needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as Wait;

use rustix::net::{AddressFamily, SocketType, netdevice, socket};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::attach::{Asked, ails, attach, refresh};
use super::place::{DevicePlace, Roots};

const LOOKS: Wait = Wait::from_millis(200);
/// Looks at what is attached for each at the device.
const HEALS: u32 = 5;

/// Waits until `stop`, or until the tenants are detached, and attaches them again whenever the device is back. `say`
/// gets what was done, and why something could not be done.
pub fn keep(roots: &Roots, asked: &Asked<'_>, stop: &Arc<AtomicBool>, say: impl Fn(&str)) -> Result<(), String> {
    let place = DevicePlace::new(roots, asked.device, asked.netns);
    let wrong = |error: rustix::io::Errno| format!("{}: {error}", asked.device);
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None).map_err(wrong)?;
    let index = || netdevice::name_to_index(&any, asked.device).ok();
    drop_rights()?;
    let (mut gone, mut said, mut looks) = (false, String::new(), 0);
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(LOOKS);
        let Some(record) = place.record()? else { return Ok(()) };
        let now = index();
        if now == Some(record.index) {
            gone = false;
            looks += 1;
            // Another command may be at work on it; the next look tells.
            if looks % HEALS == 0
                && ails(&place, &record)
                && let Ok(lines) = refresh(roots, asked.device, asked.netns)
            {
                lines.iter().for_each(|line| say(line));
            }
            continue;
        }
        if now.is_none() {
            if !gone {
                say(&format!("{}: the device is gone", asked.device));
            }
            gone = true;
            continue;
        }
        // The tenants may have been changed since by another command.
        match attach(roots, &Asked { text: &record.tenants, source: "the attached tenants", ..*asked }) {
            Ok(done) => {
                gone = false;
                said.clear();
                done.lines.iter().for_each(|line| say(line));
            }
            // It may have gone again meanwhile; the next look tells. The same error is said once.
            Err(why) if why != said => {
                say(&why);
                said = why;
            }
            Err(_) => {}
        }
    }
    Ok(())
}

fn drop_rights() -> Result<(), String> {
    let wrong = |error| format!("capabilities could not be dropped: {error}");
    let has = capabilities(None).map_err(wrong)?;
    let needed = (CapabilitySet::BPF | CapabilitySet::NET_ADMIN) & has.permitted;
    let left = CapabilitySets { effective: needed, permitted: needed, inheritable: needed & has.inheritable };
    set_capabilities(None, left).map_err(wrong)
}
