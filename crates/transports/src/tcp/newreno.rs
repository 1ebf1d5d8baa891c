//! NewReno: additive increase, multiplicative decrease (RFC 5681), with appropriate byte counting (RFC 3465).
//!
//! RFC 6582 adds to Reno the recovery from several losses in a window. Here every control gets that from RFC 6675's
//! recovery by SACK, which RFC 6582 itself prefers if SACK is available.

use node::{Marking, Site, Walk};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, FlowId, Problem};

use super::control::{Ack, Algorithm, Congestion, Control, Ecn, Phase, Signal, Start};
use contract::{About, CongestionSignal};

/// Configuration of NewReno.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "NewRenoConfig")]
pub struct Config {
    /// Whether its packets are ECN-capable (RFC 3168). Default: false.
    pub ecn: bool,
}

impl Algorithm for Config {
    type Control = NewReno;

    const ABOUT: About = About {
        title: "TCP NewReno",
        source: "RFC 5681, RFC 6582, RFC 6675",
        summary: "Adds one segment to the window each round trip and halves it at a loss.",
        needs: "nothing; ECN if its marks are to be used",
    };

    const WALKS: bool = true;

    fn check(&self) -> Result<(), Problem> {
        Ok(())
    }

    fn ecn(&self) -> Ecn {
        if self.ecn { Ecn::Classic } else { Ecn::Off }
    }

    fn signal(&self, site: &Site) -> CongestionSignal {
        match self.queue_needed(site) {
            Some(threshold) if self.ecn => CongestionSignal::Ecn(Marking::Step { threshold }),
            _ => CongestionSignal::Drop,
        }
    }

    /// A bandwidth-delay product: a window that fills the path and this queue still fills the path when halved.
    fn queue_needed(&self, site: &Site) -> Option<Bytes> {
        Some(Bytes(site.bdp_bytes()))
    }

    fn start(&self, start: Start) -> NewReno {
        NewReno::new(start)
    }
}

/// A flow's window.
#[derive(Clone, Debug)]
pub struct NewReno {
    mss: u64,
    window: u64,
    threshold: u64,
    /// Bytes acknowledged since the window last grew.
    counted: u64,
}

impl NewReno {
    /// A flow in slow start.
    pub fn new(start: Start) -> NewReno {
        NewReno { mss: start.mss_bytes, window: start.window_bytes, threshold: u64::MAX, counted: 0 }
    }

    /// Sets the congestion window to `bytes`, at least two segments; it then grows by one segment in each round trip.
    pub(crate) fn reduce(&mut self, bytes: u64) {
        self.threshold = bytes.max(2 * self.mss);
        self.window = self.threshold;
        self.counted = 0;
    }
}

impl Control for NewReno {
    fn on_ack(&mut self, ack: &Ack) {
        if !ack.limited || ack.marked || ack.phase == Phase::Recovery {
            return;
        }
        if self.window < self.threshold {
            self.window += slow_start(ack, self.mss);
        } else {
            self.counted += ack.acked_bytes;
            if self.counted >= self.window {
                self.counted -= self.window;
                self.window += self.mss;
            }
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        match congestion.signal {
            Signal::Loss | Signal::Mark => self.reduce(congestion.flight_bytes / 2),
            Signal::Timeout { again } => {
                if !again {
                    self.reduce(congestion.flight_bytes / 2);
                }
                self.window = self.mss;
            }
        }
    }

    fn window_bytes(&self) -> u64 {
        self.window
    }

    fn walk(&mut self, _: FlowId, _: u64, walk: &mut Walk) {
        walk.same((self.window, self.threshold, self.counted));
    }
}

/// How much slow start opens the window: by what was acknowledged, up to two segments, so that it doubles in each round
/// trip with delayed acknowledgements too. After a timeout it is one segment, since one acknowledgement may cover much
/// that arrived long ago (RFC 3465 section 2.3).
#[inline]
pub(crate) fn slow_start(ack: &Ack, mss: u64) -> u64 {
    let segments = if ack.phase == Phase::Loss { 1 } else { 2 };
    ack.acked_bytes.min(segments * mss)
}

#[cfg(test)]
mod tests;
