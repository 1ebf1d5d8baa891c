//! Network namespaces. A command enters the namespace of its device and keeps its own mounts, so pins stay in the BPF
//! file system of the machine. (`ip netns exec` mounts a `/sys` of its own: pins made there disappear with the
//! command.)

use std::fs::File;
use std::path::PathBuf;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The file of a namespace: of `ip netns` by name, of a process by its id, or any by path.
pub fn file(namespace: &str) -> PathBuf {
    if namespace.contains('/') {
        PathBuf::from(namespace)
    } else if !namespace.is_empty() && namespace.bytes().all(|byte| byte.is_ascii_digit()) {
        PathBuf::from(format!("/proc/{namespace}/ns/net"))
    } else {
        PathBuf::from(format!("/run/netns/{namespace}"))
    }
}

/// Moves this thread, and what it starts, into a network namespace.
pub fn enter(namespace: &str) -> Result<(), String> {
    use std::os::fd::AsFd;
    let path = file(namespace);
    let opened = File::open(&path).map_err(|error| {
        format!("--netns {namespace}: {}: {error}; write a name of `ip netns`, a process id or a path", path.display())
    })?;
    move_into_link_name_space(opened.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|error| format!("--netns {namespace}: {error}; it needs root (CAP_SYS_ADMIN)"))
}

/// Does something in a network namespace, by a thread of its own, so that this one stays where it is. Without a name it
/// is this thread's own namespace.
pub fn within<T: Send>(namespace: Option<&str>, act: impl FnOnce() -> T + Send) -> Result<T, String> {
    let Some(namespace) = namespace else { return Ok(act()) };
    std::thread::scope(|scope| {
        let there = scope.spawn(|| enter(namespace).map(|()| act()));
        there.join().unwrap_or_else(|_| Err(format!("--netns {namespace}: work there ended in a panic")))
    })
}
