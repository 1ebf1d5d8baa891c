//! The limit, marking threshold and idle period of an AQ that make its share precise, from its rate, the round trip,
//! the MTU and the least retransmission timeout.
//!
//! Section 6 leaves the least limit to experience and gives no period for "idle". An AQ holds no packets, so these are
//! not queue lengths. They determine how long an entity may fall behind its rate before it loses bandwidth for good (an
//! A-Gap that runs empty forgets the deficit), and how far it may run ahead. R is the AQ's rate, T the round trip, M a
//! full packet, B = R T. In a kernel, packets of several segments arrive at once: of these, M' is the largest (M in a
//! simulated network).
//!
//! **Limit.** The gap must not run empty while a congestion control finds its way back after a loss.
//! * A window that was halved: its rate grows by M/T^2 a second. The gap is the sum of the excess over R, so a limit L
//!   is reached at an excess of x = sqrt(2 L M) / T; halved, the rate lacks (R - x) / 2, and until it is back at R the
//!   gap has drained by (R - x)^2 T^2 / (8 M). That is at most L for x >= R/3, so for L >= B^2 / (18 M).
//! * A window that can't be small enough (B below a packet): the sender waits for its retransmission timer, `timeout`,
//!   and if that packet is lost too, for twice that. For this time R drains: 3 `timeout` R.
//! * At less than a packet in a `timeout` the timer doubles until a packet sent again finds room, M/R after a loss: so
//!   by up to 2 M/R. It stays there until a packet that was not sent again is acknowledged, and the next loss doubles
//!   it, to 4 M/R; and once more where that packet is lost as well. For this time R drains: 8 M'.
//!
//! L / R bounds how far an AQ may run ahead (section 3.2.2): at 1 Mbps that is 0.1 s. The limit never exceeds the
//! physical queue's, which bounds bursts.
//!
//! **Threshold.** The A-Gap at which a step marks. DCTCP goes on lowering its window for as long as the gap stands
//! above the threshold, and the gap sums up what a queue would have taken off by its delay: the window falls to a third
//! of B and less before marks end, a deficit of some 0.7 B. That takes (0.7 B)^2 / (2 M) to make up, so a threshold of
//! B^2 / (4 M), plus B for bursts, loses nothing. The gap delays no packets, so there is no reason for less. If three
//! quarters of the limit are enough for that, they are the threshold; the remaining quarter absorbs what arrives before
//! marks take effect. Where the queue's limit is too small for that (from some 9 Gbps on at 60 us and 1 MB), deficits
//! can't be made up, and the threshold is as low as it can be, so that windows swing little: DCTCP's own, B/7 (its
//! equation 13), and B (1 - R/C) beside it, since a window stays in the bursts in which it was sent, which arrive at
//! the link's rate C; and 2 M' for the arriving packet and the one before. DCTCP then has 92 to 97% of its share.
//!
//! **Idle.** An entity with data to send may be silent for a round trip through a full queue, T + Q/C. After a loss it
//! waits for its timer, which doubles while the gap has no room; a full gap has room for a packet after M/R. So it
//! sends within twice the greater of `timeout` and M/R. An entity that was silent for longer than the sum of both has
//! nothing to send.
//!
//! **Grain.** Limits and thresholds are rounded up to five significant bits, so that AQs of a million different rates
//! have some hundred different policies, which a table can number ([`Policy`](super::Policy)).

use units::{Bytes, Duration, Rate};

use contract::sharing::portion;

/// The least retransmission timeout of the TCP transport (`rto_min`).
pub const TIMEOUT: Duration = Duration::from_ms(1);

/// Properties of the network from which settings are derived, together with a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::Saved)]
pub struct Path {
    /// The longest unloaded round trip of the network.
    pub rtt: Duration,
    /// Bytes of a full packet on the wire.
    pub mtu: Bytes,
    /// The most bytes that arrive at once: a full packet, or one of several segments in a kernel.
    pub burst: Bytes,
    /// The least retransmission timeout of senders.
    pub timeout: Duration,
}

impl Path {
    /// A path in a simulated network.
    pub const fn simulated(rtt: Duration, mtu: Bytes) -> Path {
        Path { rtt, mtu, burst: mtu, timeout: TIMEOUT }
    }

    /// The least limit with which an entity at `rate` gets its full rate.
    pub fn least_limit(self, rate: Rate) -> Bytes {
        let waited = rate.bytes_in(self.timeout * 3);
        grain(Bytes(self.halving(rate).get().max(waited).saturating_add(8 * self.burst.get())))
    }

    /// The least limit with which a window that was halved at `rate` comes back before the gap runs empty.
    pub fn halving(self, rate: Rate) -> Bytes {
        let bdp = u128::from(rate.bytes_in(self.rtt));
        Bytes(u64::try_from(bdp * bdp / u128::from(18 * self.mtu.get().max(1))).unwrap_or(u64::MAX))
    }

    /// The marking threshold for an entity at `rate` on a link of `capacity`, under `limit`.
    pub fn threshold(self, rate: Rate, capacity: Rate, limit: Bytes) -> Bytes {
        let bdp = rate.bytes_in(self.rtt);
        let ample = limit.get() / 4 * 3;
        let deficit = u128::from(bdp) * u128::from(bdp) / u128::from(4 * self.mtu.get().max(1));
        if deficit + u128::from(bdp) <= u128::from(ample) {
            return Bytes(ample);
        }
        let bunched = portion(bdp, capacity.bps().saturating_sub(rate.bps()), u128::from(capacity.bps()));
        grain(Bytes(bunched + bdp / 7 + 2 * self.burst.get())).min(Bytes(ample))
    }

    /// The length of a physical queue that keeps a link of `capacity` busy while a window is halved: what the link
    /// carries in a round trip, and two packets.
    pub fn room(self, capacity: Rate) -> Bytes {
        Bytes(capacity.bytes_in(self.rtt) + 2 * self.burst.get())
    }

    /// How long an entity at `rate` may be silent although it has data to send. `wait` is the longest delay of the
    /// physical queue.
    pub fn silence(self, rate: Rate, wait: Duration) -> Duration {
        let packet = u64::try_from(drain_ps(rate, self.mtu)).unwrap_or(u64::MAX);
        let timer = packet.max(self.timeout.ps()).saturating_mul(2);
        Duration::from_ps(self.rtt.ps().saturating_add(wait.ps()).saturating_add(timer))
    }
}

/// Time in picoseconds to drain `bytes` at `rate`.
pub fn drain_ps(rate: Rate, bytes: Bytes) -> u128 {
    u128::from(bytes.get()) * 8_000_000_000_000 / u128::from(rate.bps().max(1))
}

/// `bytes` rounded up to five significant bits.
pub fn grain(bytes: Bytes) -> Bytes {
    let shift = (64 - bytes.get().leading_zeros()).saturating_sub(5);
    Bytes(bytes.get().saturating_add((1 << shift) - 1) >> shift << shift)
}
