//! A window that holds the delay of a path at a target (Swift: Kumar et al., SIGCOMM 2020): what TCP with Swift and
//! Falcon's fabric window have in common.

use node::EndpointParams;
use units::Duration;

/// The target delay (section 3.5), in picoseconds.
#[derive(Clone, Copy, Debug, node::Saved)]
pub(crate) struct Target {
    base: f64,
    hop: f64,
    alpha: f64,
    beta: f64,
    range: f64,
}

/// What makes a target. What is not set follows from the unloaded network. Windows are in packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Before scaling. Default: the unloaded round trip without its switches, plus a quarter of the whole.
    pub base: Option<Duration>,
    /// For each switch on the path. Default: what a switch adds to the unloaded round trip.
    pub hop: Option<Duration>,
    /// The most that flow scaling adds. Default: three unloaded round trips.
    pub range: Option<Duration>,
    /// The window at which it adds that.
    pub min_window: f64,
    /// The window from which on it adds nothing.
    pub max_window: f64,
}

impl Wanted {
    /// On a network with these times in picoseconds: the unloaded round trip, the same without its switches, and what
    /// each switch adds.
    pub fn on(self, rtt_ps: f64, base_ps: f64, hop_ps: f64) -> Target {
        let or = |set: Option<Duration>, default: f64| set.map_or(default, |set| set.ps() as f64);
        let range = or(self.range, 3.0 * rtt_ps);
        let alpha = range / (1.0 / self.min_window.sqrt() - 1.0 / self.max_window.sqrt());
        Target {
            base: or(self.base, base_ps + rtt_ps / 4.0),
            hop: or(self.hop, hop_ps),
            alpha,
            beta: -alpha / self.max_window.sqrt(),
            range,
        }
    }
}

impl Target {
    /// For a window of so many packets and a path over so many switches.
    #[inline]
    pub fn ps(&self, window: f64, hops: u8) -> f64 {
        let flow = (self.alpha / window.sqrt() + self.beta).min(self.range).max(0.0);
        self.base + self.hop * f64::from(hops) + flow
    }
}

/// How a window grows and shrinks (Algorithm 1). Windows are in packets.
#[derive(Clone, Copy, Debug, node::Saved)]
pub(crate) struct Gains {
    /// Growth in a round trip, in packets.
    pub increase: f64,
    /// Share of the excess delay by which a window shrinks.
    pub decrease: f64,
    /// Largest share of a window that one decrease takes.
    pub decrease_max: f64,
    pub window_min: f64,
    pub window_max: f64,
}

impl Gains {
    /// The window after so many packets were acknowledged below the target.
    #[inline]
    pub fn grown(&self, window: f64, acked: f64) -> f64 {
        (window + self.increase * acked / window.max(1.0)).min(self.window_max)
    }

    /// The share by which a delay above the target shrinks a window.
    #[inline]
    pub fn excess(&self, delay: f64, target: f64) -> f64 {
        let excess = (delay - target) / delay;
        self.decrease * excess
    }

    /// The window less a share of it.
    #[inline]
    pub fn shrunk(&self, window: f64, share: f64) -> f64 {
        (window * (1.0 - share.min(self.decrease_max))).max(self.window_min)
    }
}

/// The lowest line above all unloaded round trips, by the number of switches between two hosts: its value at 0, and
/// what each further switch adds.
pub(crate) fn unloaded(site: &EndpointParams) -> (Duration, Duration) {
    line_above(&site.data_rtts).unwrap_or((site.data_rtt, Duration::ZERO))
}

/// The lowest line above all points with the slope from the first to the last: its value at 0, and its slope.
fn line_above(points: &[(u8, Duration)]) -> Option<(Duration, Duration)> {
    let (&(first, low), &(last, high)) = (points.first()?, points.last()?);
    let slope = high.saturating_sub(low) / u64::from(last - first).max(1);
    let rise = |at: u8| Duration::from_ps(slope.ps().saturating_mul(u64::from(at)));
    let height = points.iter().map(|&(at, rtt)| rtt.saturating_sub(rise(at))).max()?;
    Some((height, slope))
}

#[cfg(test)]
mod tests;
