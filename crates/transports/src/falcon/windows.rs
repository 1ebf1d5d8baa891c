//! How much a connection may have in the network: what Falcon's rate update engine computes (specification 0.9, section
//! 10.3), with several paths as the public simulator of its authors has it (Isekai, `swift.h`, generation 2).
//!
//! Each path has a fabric window (fcwnd) of its own, by the delay of its packets. The connection's is their sum. The
//! NIC window (ncwnd) follows the receive buffer. A connection may have as many packets in the network as the smaller
//! of the two says.

use units::{Duration, Time};

use super::header::Echo;
use super::params::{PATHS, Params};

/// What a connection may send.
#[derive(Clone, Debug, node::State)]
pub(super) struct Windows {
    paths: [Path; PATHS],
    count: usize,
    nic: Option<Nic>,
}

/// A path's fabric window.
#[derive(Clone, Copy, Debug, Default, node::State)]
struct Path {
    /// In packets.
    fcwnd: f64,
    rtt: Duration,
    /// When the window last shrank (`fabric_window_time_marker`).
    decreased: Marker,
    /// Packets of this path that were acknowledged, by whatever path, since an acknowledgement came over this one.
    acked: u32,
    plb: Plb,
}

/// The state of protective load balancing (section 10.4).
#[derive(Clone, Copy, Debug, Default, node::State)]
struct Plb {
    acked: u32,
    congested: u32,
    /// Congested round trips in a row (`plb_reroute_attempted`).
    rounds: u32,
}

/// The NIC window.
#[derive(Clone, Copy, Debug, node::State)]
struct Nic {
    /// In packets.
    ncwnd: f64,
    /// When it last changed (`nic_window_time_marker`), and how.
    changed: Marker,
    grew: bool,
}

/// An answer has come over a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub now: Time,
    /// The whole round trip.
    pub rtt: Duration,
    /// The same without the time that the packet was held for an acknowledgement: the fabric delay.
    pub delay: Duration,
    pub echo: Echo,
    /// Whether it says that the receive buffer had no room.
    pub exhausted: bool,
}

/// When a window last changed.
#[derive(Clone, Copy, Debug, Default, node::State)]
#[state(first(if let Some(at) = self.at { walk.unused(&mut walk.now().since(at), self.held) }))]
struct Marker {
    #[state(past)]
    at: Option<Time>,
    /// How often somebody was told that less than a round trip had passed since.
    #[state(skip("how often it was used"))]
    held: u64,
}

impl Marker {
    fn set(&mut self, now: Time) {
        self.at = Some(now);
    }

    fn elapsed(&mut self, now: Time, rtt: Duration) -> bool {
        let elapsed = self.at.is_none_or(|at| now.since(at) >= rtt);
        self.held += u64::from(!elapsed);
        elapsed
    }
}

impl Windows {
    pub fn new(params: &Params) -> Windows {
        let fcwnd = params.initial_fcwnd / params.paths as f64;
        Windows {
            paths: [Path { fcwnd, rtt: params.site.data_rtt, ..Path::default() }; PATHS],
            count: params.paths,
            nic: params.nic.as_ref().map(|nic| Nic { ncwnd: nic.initial, changed: Marker::default(), grew: true }),
        }
    }

    fn used(&self) -> &[Path] {
        &self.paths[..self.count]
    }

    /// The connection's fabric window, in packets.
    pub fn fcwnd(&self, params: &Params) -> f64 {
        let sum: f64 = self.used().iter().map(|path| path.fcwnd).sum();
        sum.clamp(params.gains.window_min, params.gains.window_max)
    }

    /// The fabric window of a path.
    pub fn of_path(&self, path: usize) -> f64 {
        self.paths[path].fcwnd
    }

    /// Packets that may be between the first without an acknowledgement and the next to be sent.
    pub fn packets(&self, params: &Params) -> u32 {
        (self.fcwnd(params) as u32).max(1)
    }

    /// Packets that the NIC window allows.
    pub fn nic_packets(&self) -> u32 {
        self.nic.map_or(u32::MAX, |nic| nic.ncwnd as u32)
    }

    /// The longest of its paths' smoothed round trips.
    pub fn rtt(&self) -> Duration {
        self.used().iter().map(|path| path.rtt).max().unwrap_or_default()
    }

    /// Time between packets, where the window is below one packet.
    pub fn gap(&self, params: &Params) -> Option<Duration> {
        let fcwnd = self.fcwnd(params);
        (fcwnd < 1.0).then(|| self.rtt().mul_f64(1.0 / fcwnd))
    }

    /// How long to wait for an acknowledgement (`retransmit_timeout`): from when pacing lets the packet go.
    pub fn timeout(&self, params: &Params) -> Duration {
        let rtt = self.rtt();
        let paced = self.gap(params).map_or(Duration::ZERO, |gap| gap.saturating_sub(rtt));
        (rtt.mul_f64(params.timeout_scalar) + paced).max(params.timeout_min)
    }

    /// A packet of this path is acknowledged.
    pub fn acknowledged(&mut self, path: usize) {
        self.paths[path].acked += 1;
    }

    /// Whether packets of a path have been acknowledged since an answer last came over it.
    pub fn has_news(&self, path: usize) -> bool {
        self.paths[path].acked > 0
    }

    /// Adapts to an answer: ProcessAckNackCommon. Returns whether the path is to be changed.
    pub fn answered(&mut self, answer: &Answer, params: &Params) -> bool {
        let Answer { now, rtt, delay, echo, exhausted } = *answer;
        let path = path_of(&mut self.paths, echo);
        path.rtt = path.rtt.mul_f64(params.rtt_smoothing) + rtt.mul_f64(1.0 - params.rtt_smoothing);
        let acked = std::mem::take(&mut path.acked);
        let before = path.fcwnd;
        let (delay, target) = (delay.ps() as f64, params.target.ps(before, echo.hops));
        if delay < target {
            path.fcwnd = params.gains.grown(before, f64::from(acked));
        } else if path.decreased.elapsed(now, rtt) {
            path.fcwnd = params.gains.shrunk(before, params.gains.excess(delay, target));
        }
        if path.fcwnd < before || path.fcwnd == params.gains.window_min {
            path.decreased.set(now);
        }
        let allowed = before.min(self.nic.map_or(f64::INFINITY, |nic| nic.ncwnd));
        if let (Some(nic), Some(of)) = (&mut self.nic, &params.nic) {
            nic.answered(now, rtt, if exhausted { None } else { Some(echo.buffer_level) }, of);
        }
        let congested = delay > target * params.plb.delay_multiplier;
        params.plb.on && !exhausted && path_of(&mut self.paths, echo).plb.answered(acked, congested, allowed, params)
    }

    /// A packet of this path was not acknowledged in time, for the `times`-th time: ProcessRetransmit.
    pub fn timed_out(&mut self, path: usize, times: u32, now: Time, params: &Params) {
        let path = &mut self.paths[path];
        if !path.decreased.elapsed(now, path.rtt) {
            return;
        }
        if times == 1 {
            path.fcwnd = params.gains.shrunk(path.fcwnd, params.gains.decrease_max);
        } else if times >= params.timeouts_max {
            path.fcwnd = params.gains.window_min;
        } else {
            return;
        }
        path.decreased.set(now);
    }
}

fn path_of(paths: &mut [Path; PATHS], echo: Echo) -> &mut Path {
    &mut paths[usize::from(echo.path)]
}

impl Nic {
    /// ComputeAckNICCongestionWindow; with no level ProcessNackResourceExhaustion.
    fn answered(&mut self, now: Time, rtt: Duration, level: Option<u8>, of: &super::params::Nic) {
        let before = self.ncwnd;
        let elapsed = self.changed.elapsed(now, rtt);
        match level {
            Some(level) if level < of.target_level && (!self.grew || elapsed) => {
                (self.ncwnd, self.grew) = (before + of.increase, true);
            }
            Some(level) if elapsed => {
                let excess = f64::from(level - of.target_level) / f64::from(level);
                self.ncwnd *= 1.0 - (of.decrease * excess).min(of.decrease_max);
                self.grew = false;
            }
            None if self.grew || elapsed => {
                self.ncwnd *= 1.0 - of.decrease_max;
                self.grew = false;
            }
            _ => {}
        }
        self.ncwnd = self.ncwnd.clamp(of.min, of.max);
        // The specification (10.3.6) also moves the marker, to now, while the window is at its greatest. Then answers
        // that come more often than once a round trip would keep it from ever shrinking again.
        if self.ncwnd != before {
            self.changed.set(now);
        }
    }
}

impl Plb {
    /// ComputePlb: whether to change the path. `window` is the smaller of both windows before this answer.
    fn answered(&mut self, acked: u32, congested: bool, window: f64, params: &Params) -> bool {
        self.acked += acked;
        self.congested += if congested { acked } else { 0 };
        if f64::from(self.acked) < window {
            return false;
        }
        // Nothing acknowledged is no round trip, however small the window.
        let share = f64::from(self.congested) / f64::from(self.acked.max(1));
        self.rounds = if share < params.plb.congested_share { 0 } else { self.rounds + 1 };
        (self.acked, self.congested) = (0, 0);
        let reroute = self.rounds >= params.plb.rounds;
        if reroute {
            self.rounds = 0;
        }
        reroute
    }
}

#[cfg(test)]
mod tests;
