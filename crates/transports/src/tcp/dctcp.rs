//! DCTCP: the window shrinks by as much as the network marks (RFC 8257; Alizadeh et al., SIGCOMM 2010).
//!
//! Growth, loss and timeout are NewReno's. In addition it keeps `alpha`, the moving average of the share of marked
//! bytes, updated once in each window of data, and answers marks by reducing the window to `1 - alpha / 2`, once in
//! each window.

use node::{EndpointParams, FlowState, Marking, Walk};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Problem};

use super::control::{Ack, Algorithm, Congestion, Control, Ecn, Signal, Start};
use super::newreno::NewReno;
use super::slow_start::SlowStart;
use contract::{About, CongestionSignal};

/// Configuration of DCTCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "DctcpConfig")]
pub struct Config {
    /// Weight of the newest window in `alpha`, above 0 and at most 1. Default: 1/16.
    pub g: f64,
    /// Initial `alpha`, 0 to 1. Default: 1.
    pub alpha: f64,
    /// What ends slow start beside a loss or mark. Default: nothing.
    pub slow_start: SlowStart,
}

impl Default for Config {
    /// RFC 8257 sections 4.1 (1/16) and 3.3 (1: the first mark halves the window).
    fn default() -> Config {
        Config { g: 1.0 / 16.0, alpha: 1.0, slow_start: SlowStart::Standard }
    }
}

impl Algorithm for Config {
    type Control = Dctcp;

    const ABOUT: About = About {
        title: "DCTCP",
        source: "RFC 8257; Alizadeh et al., SIGCOMM 2010",
        summary: "Shrinks its window in proportion to the share of its bytes that switches have marked.",
        needs: "switches: ECN marking above a fixed queue length",
    };

    fn check(&self) -> Result<(), Problem> {
        if !(self.g > 0.0 && self.g <= 1.0) {
            return Err(Problem::new("g", format!("{} is not above 0 and at most 1", self.g)));
        }
        if !(0.0..=1.0).contains(&self.alpha) {
            return Err(Problem::new("alpha", format!("{} is not between 0 and 1", self.alpha)));
        }
        self.slow_start.check()
    }

    fn ecn(&self) -> Ecn {
        Ecn::Proportional
    }

    fn signal(&self, site: &EndpointParams) -> CongestionSignal {
        CongestionSignal::Ecn(Marking::Step { threshold: threshold(site) })
    }

    fn start(&self, start: Start) -> Dctcp {
        Dctcp {
            g: self.g,
            alpha: self.alpha,
            reno: NewReno::new(start, &self.slow_start),
            window_end: 0,
            acked: 0,
            marked: 0,
            marked_windows: 0,
            steady: Steady::default(),
        }
    }
}

/// Where switches mark: a seventh of the bandwidth-delay product, in whole packets. By the paper's equation 13 that is
/// the least at which the queue never runs empty, however many flows share it.
pub(crate) fn threshold(site: &EndpointParams) -> Bytes {
    let packet = u64::from(site.mtu_bytes);
    Bytes(site.bdp_bytes().div_ceil(7 * packet) * packet)
}

/// A flow's window and its state of marks.
#[derive(Clone, Debug, node::State)]
#[state(last(self.tell(walk)))]
pub struct Dctcp {
    g: f64,
    #[state(skip("`tell` visits it"))]
    alpha: f64,
    reno: NewReno,
    /// End of the window of data that is being observed.
    #[state(skip("`tell` visits it"))]
    window_end: u64,
    #[state(skip("`tell` visits it"))]
    acked: u64,
    marked: u64,
    /// Windows of data with marks so far.
    marked_windows: u64,
    #[state(skip("`tell` visits it"))]
    steady: Steady,
}

/// What acknowledgements have in common, for who skips many that are alike.
#[derive(Clone, Debug, Default, node::Saved)]
struct Steady {
    /// Bytes that the last one acknowledged, and bytes in flight after it.
    acked: u64,
    in_flight: u64,
    /// How many there were, and how many that differed from the one before.
    acks: u64,
    changes: u64,
}

impl Steady {
    fn note(&mut self, acked: u64, in_flight: u64) {
        self.acks += 1;
        self.changes += u64::from((self.acked, self.in_flight) != (acked, in_flight));
        (self.acked, self.in_flight) = (acked, in_flight);
    }
}

impl Dctcp {
    /// As many acknowledgements have come, all like the last one and without marks, since the flow had come to `una`.
    fn move_on(&mut self, mut una: u64, mut acks: u64) {
        let Steady { acked, in_flight, .. } = self.steady;
        while acks > 0 && acked > 0 {
            let to_end = self.window_end.saturating_sub(una) / acked + 1;
            let come = to_end.min(acks);
            una += come * acked;
            self.acked += come * acked;
            acks -= come;
            if come == to_end {
                self.observe(0.0);
                (self.window_end, self.acked) = (una + in_flight, 0);
            }
        }
    }

    /// Such a share of a window of data was marked.
    fn observe(&mut self, share: f64) {
        self.alpha = self.alpha * (1.0 - self.g) + self.g * share;
    }

    /// Goes over what moves with each acknowledgement. As long as no window of data has marks, it follows from how many
    /// there were.
    fn tell(&mut self, walk: &mut Walk) {
        let acks = walk.counted_of(walk.flow, &mut self.steady.acks);
        // Averages don't say that no window of data had marks.
        if self.marked > 0 || walk.by_averages() {
            walk.same((self.acked, self.alpha));
            return walk.sequence(walk.flow, 1, &mut self.window_end);
        }
        let Steady { acked, in_flight, changes, .. } = self.steady;
        walk.same((acked, in_flight, changes));
        [self.alpha.to_bits(), self.acked, self.window_end].into_iter().for_each(|of| walk.inherited(walk.flow, of));
        self.move_on(walk.come, acks);
    }
}

impl Control for Dctcp {
    /// RFC 8257 section 3.3, steps 1 to 8; SACKed bytes are ignored, as step 1 says.
    fn on_ack(&mut self, ack: &Ack) {
        self.steady.note(ack.acked_bytes, ack.next - ack.una);
        self.acked += ack.acked_bytes;
        self.marked += if ack.marked { ack.acked_bytes } else { 0 };
        if ack.una > self.window_end {
            let share = self.marked as f64 / self.acked as f64;
            self.observe(share);
            self.marked_windows += u64::from(self.marked > 0);
            (self.window_end, self.acked, self.marked) = (ack.next, 0, 0);
        }
        self.reno.on_ack(ack);
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        match congestion.signal {
            Signal::Mark => {
                self.reno.watched(congestion);
                let window = self.reno.window_bytes() as f64;
                self.reno.reduce((window * (1.0 - self.alpha / 2.0)) as u64);
            }
            Signal::Loss | Signal::Timeout { .. } => self.reno.on_congestion(congestion),
        }
    }

    fn window_bytes(&self) -> u64 {
        self.reno.window_bytes()
    }

    fn state(&self, say: &mut FlowState) {
        say.say("alpha_ppm", (self.alpha * 1e6) as u64);
    }
}

#[cfg(test)]
mod tests;
