//! The daemon's words: lines for a journal, and states for systemd (`sd_notify`(3)).

use std::io::{IsTerminal, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// How much a line matters, as syslog numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Shares are not enforced, or a configuration is refused.
    Error = 3,
    /// A setting that can hardly work.
    Warning = 4,
    /// Something was healed or changed.
    Notice = 5,
    /// All else.
    Info = 6,
}

/// Writes a line to stderr. Where that is no terminal, a journal reads the level before it.
pub fn log(level: Level, text: &str) {
    let mut stderr = std::io::stderr().lock();
    let plain = stderr.is_terminal();
    for line in text.lines() {
        // A journal that is gone is no reason to end.
        let _ = if plain { writeln!(stderr, "{line}") } else { writeln!(stderr, "<{}>{line}", level as u8) };
    }
}

/// Tells systemd a state, such as `READY=1`; nothing where no systemd asks.
pub fn tell(state: &str) {
    if let Ok(name) = std::env::var("NOTIFY_SOCKET") {
        let _ = send(&name, state);
    }
}

fn send(name: &str, state: &str) -> std::io::Result<()> {
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to_addr(state.as_bytes(), &address).map(drop)
}

/// How often systemd's watchdog must hear of this process, halved; none where there is none.
pub fn watchdog() -> Option<Duration> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    if number("WATCHDOG_PID").is_some_and(|pid| pid != u64::from(std::process::id())) {
        return None;
    }
    number("WATCHDOG_USEC").filter(|&us| us > 0).map(|us| Duration::from_micros(us / 2))
}
