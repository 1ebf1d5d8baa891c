//! Exchanging two folders, for which Python has no call.

use std::path::PathBuf;

use pyo3::prelude::*;

/// Exchanges two files or folders in one step. The number of the system's error, or 0.
#[pyfunction]
pub(crate) fn exchange(one: PathBuf, other: PathBuf) -> i32 {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    let done = {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE)
    };
    #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
    let done = {
        let _ = (one, other);
        Err(rustix::io::Errno::NOSYS)
    };
    done.map_or_else(rustix::io::Errno::raw_os_error, |()| 0)
}
