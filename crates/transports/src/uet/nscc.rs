//! NSCC, the sender's window: network-signal-based congestion control.
//!
//! Each acknowledgement brings two signals, the ECN mark of a packet and its queueing delay, which is its round trip
//! less the shortest one. Together they name one of four cases:
//!
//! | | delay below the target | delay at or above it |
//! |---|---|---|
//! | not marked | proportional increase, by how far it is below | fair increase, the same for all |
//! | marked | nothing | multiplicative decrease, by the mean delay, once a round trip |
//!
//! There are three more rules: *fast increase* once a whole window has been acknowledged without queueing delay; *quick
//! adapt*, which sets the window to the bytes that have arrived in one round trip, if that is a small part of the
//! window and there were losses or very long delays; and a trimmed packet reduces the window by its own size.
//!
//! Constants follow from the network's round trip and rate in proportion to a reference of 12 us at 100 Gbps, for which
//! they were chosen. They are those of `uet-htsim` (`UecSrc::initNsccParams`), in which the authors of the
//! specification work.

use node::Walk;
use units::{Duration, Rate, Time};

/// The network for which the constants are given.
const REFERENCE_RTT: Duration = Duration::from_us(12);
const REFERENCE_BDP_BYTES: f64 = 150_000.0;
/// A queueing delay below this counts as none, for fast increase.
const NO_DELAY: Duration = Duration::from_us(1);
/// Weight of a sample in the mean delay.
const MEAN_WEIGHT: f64 = 0.0125;
/// How far beyond the target the mean delay decides a decrease.
const GAMMA: f64 = 0.8;
/// No decrease takes more than this share of the window.
const DECREASE_MAX: f64 = 0.5;
/// Quick adapt acts where less than this part of the greatest window has arrived in a round trip.
const QUICK_ADAPT_PART: u64 = 8;
/// Quick adapt acts at a delay of this many targets.
const QUICK_ADAPT_TARGETS: u64 = 4;
/// Bytes that are acknowledged before increases are applied, in full packets.
const ADJUST_PACKETS: u64 = 8;

/// Times are compared with less than, not with at most.
const MOMENT: Duration = Duration::from_ps(1);

/// What is the same for all messages of a host.
#[derive(Clone, Debug)]
pub(super) struct Gains {
    rate: Rate,
    mtu: u64,
    /// The longest unloaded round trip of the network.
    pub network_rtt: Duration,
    /// The queueing delay that the window aims at.
    pub target: Duration,
    /// Whether quick adapt is on.
    quick_adapt: bool,
    /// The window at first; none for the greatest.
    initial: Option<u64>,
    /// Proportional increase, in bytes for each byte and picosecond, times the window.
    alpha: f64,
    /// Fair increase, in bytes for each byte, times the window.
    fair: f64,
    /// Bytes added once a round trip.
    eta: f64,
    /// Fast increase, in bytes for each byte.
    fast: f64,
}

impl Gains {
    pub fn new(rate: Rate, mtu: u64, payload: u64, network_rtt: Duration, target: Duration) -> Gains {
        let scale = rate.bytes_in(network_rtt) as f64 / REFERENCE_BDP_BYTES;
        let mss = payload as f64;
        Gains {
            rate,
            mtu,
            network_rtt,
            target,
            quick_adapt: true,
            initial: None,
            // The scale of the target, target / 12 us, over the target itself.
            alpha: 4.0 * mss * scale / REFERENCE_RTT.ps() as f64,
            fair: 5.0 * mss * scale,
            eta: 0.15 * mss * scale,
            fast: 0.25 * scale,
        }
    }

    pub fn with(self, initial: Option<u64>, quick_adapt: bool) -> Gains {
        Gains { initial, quick_adapt, ..self }
    }

    /// The greatest window for such a round trip: one and a half bandwidth-delay products.
    pub fn window_max(&self, rtt: Duration) -> u64 {
        (self.rate.bytes_in(rtt) * 3 / 2).max(2 * self.mtu)
    }
}

/// The window of a message.
#[derive(Clone, Debug, node::State)]
#[state(given(Gains))]
pub(super) struct Window {
    /// Bytes that may be in flight, headers included.
    pub bytes: u64,
    max: u64,
    /// The shortest round trip that was seen, at first the network's longest unloaded one.
    base_rtt: Duration,
    mean_delay: Mean,
    /// Increase that is not applied yet, times the window.
    gained: f64,
    /// Bytes acknowledged since increases were applied.
    since_adjusted: u64,
    #[state(later(given.network_rtt + MOMENT, expired))]
    adjusted_at: Time,
    #[state(later(self.base_rtt + MOMENT, expired))]
    decreased_at: Time,
    /// Bytes acknowledged in a row without queueing delay, and whether they make the window grow.
    #[state(when(self.fast, counted_of, _))]
    undelayed: u64,
    fast: bool,
    quick: QuickAdapt,
}

/// The mean delay.
#[derive(Clone, Copy, Debug, Default, node::State)]
#[state(last(self.tell(walk)))]
struct Mean {
    #[state(skip("`tell` visits it"))]
    ps: f64,
    /// The last sample, and how many there have been: for who goes over the state.
    #[state(skip("`tell` visits it"))]
    last_ps: f64,
    #[state(skip("`tell` visits it"))]
    samples: u64,
    /// How often a sample was another than the one before, or somebody asked for the mean.
    #[state(skip("`tell` visits it"))]
    others: u64,
}

impl Mean {
    fn add(&mut self, ps: f64) {
        self.others += u64::from(ps != self.last_ps);
        (self.last_ps, self.samples) = (ps, self.samples + 1);
        self.ps = Mean::with(self.ps, ps);
    }

    fn with(mean: f64, ps: f64) -> f64 {
        MEAN_WEIGHT * ps + (1.0 - MEAN_WEIGHT) * mean
    }

    fn ask(&mut self) -> f64 {
        self.others += 1;
        self.ps
    }

    fn tell(&mut self, walk: &mut Walk) {
        walk.same(self.last_ps);
        walk.inherited(walk.flow, self.ps.to_bits());
        walk.unused_of("the mean queueing delay", &mut self.ps.to_bits(), self.others);
        let others = walk.counted_of(walk.flow, &mut self.others);
        let samples = walk.counted_of(walk.flow, &mut self.samples);
        if others == 0 {
            (0..samples).for_each(|_| self.ps = Mean::with(self.ps, self.last_ps));
        }
    }
}

/// Quick adapt.
#[derive(Clone, Debug, Default, node::State)]
#[state(given(Gains))]
struct QuickAdapt {
    /// Bytes that have arrived in the round trip that ends then.
    #[state(when(given.quick_adapt, _, counted_of))]
    achieved: u64,
    ends_at: Option<Time>,
    /// A packet was trimmed.
    asked: bool,
    /// After it has acted, signals are old news until as much as was in flight has been answered.
    ignore: u64,
    #[state(when(self.ignored < self.ignore, _, counted_of))]
    ignored: u64,
}

impl Window {
    pub fn new(gains: &Gains, now: Time) -> Window {
        let max = gains.window_max(gains.network_rtt);
        Window {
            bytes: gains.initial.map_or(max, |initial| initial.clamp(gains.mtu, max)),
            max,
            base_rtt: gains.network_rtt,
            mean_delay: Mean::default(),
            gained: 0.0,
            since_adjusted: 0,
            adjusted_at: now,
            decreased_at: now,
            undelayed: 0,
            fast: false,
            quick: QuickAdapt::default(),
        }
    }

    /// The queueing delay of a packet whose round trip this is. A shorter one than all before is the new shortest.
    fn delay(&mut self, gains: &Gains, rtt: Duration) -> Duration {
        if rtt < self.base_rtt {
            self.base_rtt = rtt;
            self.max = gains.window_max(rtt);
        }
        rtt.saturating_sub(self.base_rtt)
    }

    /// An acknowledgement of so many more bytes, `in_flight` after it. `rtt` is that of the packet that caused it, if
    /// it is known which copy of it arrived.
    pub fn acked(&mut self, gains: &Gains, now: Time, rtt: Option<Duration>, marked: bool, bytes: u64, in_flight: u64) {
        self.quick.achieved += bytes;
        self.since_adjusted += bytes;
        self.quick.ignored += bytes;
        let delay = match rtt {
            Some(rtt) => {
                let delay = self.delay(gains, rtt);
                // A long delay without a mark is that of a queue which has drained since: it counts as little.
                let stale = !marked && delay > gains.target;
                self.mean_delay.add(if stale { self.base_rtt.ps() as f64 * 0.25 } else { delay.ps() as f64 });
                delay
            }
            None => Duration::from_ps(self.mean_delay.ask() as u64),
        };
        if self.quick_adapts(gains, now, false, marked, delay, in_flight) {
            return;
        }
        match (marked, delay >= gains.target) {
            (false, true) => self.gained += gains.fair * bytes as f64,
            (false, false) => self.increase(gains, bytes, delay),
            (true, true) => self.decrease(gains, now),
            (true, false) => {}
        }
        self.bound(gains);
        let threshold = ADJUST_PACKETS * gains.mtu;
        if self.since_adjusted > threshold || now.since(self.adjusted_at) > gains.network_rtt {
            self.adjust(gains, now);
        }
        self.bound(gains);
    }

    fn increase(&mut self, gains: &Gains, bytes: u64, delay: Duration) {
        if delay < NO_DELAY {
            self.undelayed += bytes;
            self.fast |= self.undelayed > self.bytes;
        } else {
            self.undelayed = 0;
            self.fast = false;
        }
        if self.fast {
            self.bytes += (bytes as f64 * gains.fast) as u64;
        } else {
            self.gained += gains.alpha * bytes as f64 * gains.target.saturating_sub(delay).ps() as f64;
        }
    }

    fn decrease(&mut self, gains: &Gains, now: Time) {
        self.fast = false;
        self.undelayed = 0;
        let (mean, target) = (self.mean_delay.ask(), gains.target.ps() as f64);
        if mean > target && now.since(self.decreased_at) > self.base_rtt {
            let kept = (1.0 - GAMMA * (mean - target) / mean).max(DECREASE_MAX);
            self.bytes = ((self.bytes as f64 * kept) as u64).max(gains.mtu);
            self.decreased_at = now;
        }
    }

    /// Applies the increases that have been summed up.
    fn adjust(&mut self, gains: &Gains, now: Time) {
        self.bytes += (self.gained / self.bytes as f64) as u64;
        if now.since(self.adjusted_at) >= gains.network_rtt {
            self.bytes += gains.eta as u64;
            self.adjusted_at = now;
        }
        (self.gained, self.since_adjusted) = (0.0, 0);
    }

    fn bound(&mut self, gains: &Gains) {
        self.bytes = self.bytes.clamp(gains.mtu, self.max);
    }

    /// A packet of this many bytes was trimmed; `rtt` is the time until the NACK arrived. Where receivers give credit
    /// and it happened on the last link, they see to it (`by_credit`).
    pub fn trimmed(&mut self, gains: &Gains, now: Time, rtt: Duration, bytes: u64, by_credit: bool, in_flight: u64) {
        self.delay(gains, rtt);
        self.quick.ignored += bytes;
        self.quick.asked = true;
        self.mean_delay.add(gains.network_rtt.ps() as f64);
        if !self.quick_adapts(gains, now, true, true, Duration::ZERO, in_flight) && !by_credit {
            self.bytes = self.bytes.saturating_sub(bytes);
            self.bound(gains);
        }
    }

    /// A packet of this many bytes was lost without a NACK.
    pub fn lost(&mut self, gains: &Gains, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes).max(gains.mtu);
    }

    /// Quick adapt, once a round trip: whether it has acted, or the signal is to be ignored since it has.
    fn quick_adapts(
        &mut self,
        gains: &Gains,
        now: Time,
        lost: bool,
        marked: bool,
        delay: Duration,
        in_flight: u64,
    ) -> bool {
        if !gains.quick_adapt {
            return false;
        }
        let quick = &mut self.quick;
        let mut acted = marked && quick.ignored < quick.ignore;
        if !acted && quick.ends_at.is_none_or(|at| now > at) {
            let late = delay > gains.target * QUICK_ADAPT_TARGETS;
            if quick.ends_at.is_some() && (quick.asked || lost || late) && quick.achieved < self.max / QUICK_ADAPT_PART
            {
                self.bytes = quick.achieved.max(gains.mtu);
                (quick.ignore, quick.ignored, quick.asked) = (in_flight, 0, false);
                acted = true;
            }
            quick.achieved = 0;
            quick.ends_at = Some(now + self.base_rtt + gains.target);
        }
        if acted {
            (self.gained, self.since_adjusted) = (0.0, 0);
        }
        acted
    }
}

#[cfg(test)]
mod tests;
