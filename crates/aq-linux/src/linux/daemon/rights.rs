//! The daemon's rights, once it has begun.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

/// Gives up every capability but those to load programs, to attach them, and, if it must enter namespaces, to do that;
/// for this process and all that it starts.
pub fn drop_all_but(enters_namespaces: bool) -> Result<(), String> {
    let wrong = |error: Errno| format!("capabilities could not be dropped: {error}");
    let has = capabilities(None).map_err(wrong)?;
    let mut needed = CapabilitySet::BPF | CapabilitySet::NET_ADMIN;
    if enters_namespaces {
        needed |= CapabilitySet::SYS_ADMIN;
    }
    let left = needed & has.permitted;
    // A command that root starts has all of the bounding set again.
    for one in CapabilitySet::all().iter().filter(|&one| !left.contains(one)) {
        // A kernel may not know it.
        if !capability_is_in_bounding_set(one).unwrap_or(false) {
            continue;
        }
        match remove_capability_from_bounding_set(one) {
            // Without CAP_SETPCAP nothing can be removed; and a process that is not root gains nothing by a command.
            Ok(()) | Err(Errno::PERM) => {}
            Err(error) => return Err(wrong(error)),
        }
    }
    set_no_new_privs(true).map_err(wrong)?;
    let sets = CapabilitySets { effective: left, permitted: left, inheritable: left & has.inheritable };
    set_capabilities(None, sets).map_err(wrong)
}
