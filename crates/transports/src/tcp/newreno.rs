//! NewReno: additive increase, multiplicative decrease (RFC 5681), with appropriate byte counting (RFC 3465).
//!
//! RFC 6582 adds to Reno the recovery from several losses in a window. Here every control gets that from RFC 6675's
//! recovery by SACK, which RFC 6582 itself prefers if SACK is available.

use node::{EndpointParams, Marking};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Problem};

use super::control::{Ack, Algorithm, Congestion, Control, Ecn, Phase, Signal, Start};
use super::slow_start::{SlowStart, Step, Watch};
use contract::{About, CongestionSignal};

/// Configuration of NewReno.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "NewRenoConfig")]
pub struct Config {
    /// Whether its packets are ECN-capable (RFC 3168). Default: false.
    pub ecn: bool,
    /// What ends slow start beside a loss or mark. Default: nothing.
    pub slow_start: SlowStart,
}

impl Algorithm for Config {
    type Control = NewReno;

    const ABOUT: About = About {
        title: "TCP NewReno",
        source: "RFC 5681, RFC 6582, RFC 6675",
        summary: "Adds one segment to the window each round trip and halves it at a loss.",
        needs: "nothing; ECN if its marks are to be used",
    };

    fn check(&self) -> Result<(), Problem> {
        self.slow_start.check()
    }

    fn ecn(&self) -> Ecn {
        if self.ecn { Ecn::Classic } else { Ecn::Off }
    }

    fn signal(&self, site: &EndpointParams) -> CongestionSignal {
        match self.queue_needed(site) {
            Some(threshold) if self.ecn => CongestionSignal::Ecn(Marking::Step { threshold }),
            _ => CongestionSignal::Drop,
        }
    }

    /// A bandwidth-delay product: a window that fills the path and this queue still fills the path when halved.
    fn queue_needed(&self, site: &EndpointParams) -> Option<Bytes> {
        Some(Bytes(site.bdp_bytes()))
    }

    fn start(&self, start: Start) -> NewReno {
        NewReno::new(start, &self.slow_start)
    }
}

/// A flow's window.
#[derive(Clone, Debug, node::State)]
pub struct NewReno {
    mss: u64,
    window: u64,
    threshold: u64,
    /// Bytes acknowledged since the window last grew.
    counted: u64,
    #[state(when(self.window < self.threshold, _))]
    watch: Watch,
}

impl NewReno {
    /// A flow in slow start.
    pub fn new(start: Start, slow_start: &SlowStart) -> NewReno {
        let (mss, window, watch) = (start.mss_bytes, start.window_bytes, slow_start.watch());
        NewReno { mss, window, threshold: u64::MAX, counted: 0, watch }
    }

    /// Congestion has ended slow start, if it went on.
    pub(crate) fn watched(&mut self, congestion: &Congestion) {
        self.watch.on_congestion(congestion.now, matches!(congestion.signal, Signal::Timeout { .. }));
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
            match self.watch.on_ack(ack, self.window, self.mss) {
                Step::Grow(bytes) => self.window += bytes,
                Step::Leave => self.threshold = self.window,
            }
        } else {
            self.counted += ack.acked_bytes;
            if self.counted >= self.window {
                self.counted -= self.window;
                self.window += self.mss;
            }
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.watched(congestion);
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
}

#[cfg(test)]
mod tests;
