//! Warnings about settings of AQs that run but can hardly give precise shares.

use node::Marking;
use units::{Bytes, Duration, Problem, Rate};

use super::derive::drain_ps;
use super::{Config, Limit, LinkSpec};
use contract::CongestionSignal;

/// Longest time that an entity may run ahead of its rate without a warning. Shares are usually measured over such
/// spans.
const AHEAD: Duration = Duration::from_ms(100);

impl Config {
    /// The limit of an AQ of `rate`.
    pub fn limit_of(&self, link: &LinkSpec, rate: Rate) -> Bytes {
        self.limit.bytes(link.queue, rate, link.capacity, link.path)
    }

    /// The warnings for the AQ of the least rate on a link; keys as in the settings.
    pub fn warnings_at(&self, link: &LinkSpec, rate: Rate) -> Vec<Problem> {
        let mut warnings = Vec::new();
        let limit = self.limit_of(link, rate);
        let packets = Bytes(4 * link.path.burst.get());
        if limit < packets {
            let message = format!(
                "gives an AQ of {rate} a limit of {limit}: below four full packets ({packets}) most congestion \
                 controls cannot keep that rate"
            );
            warnings.push(Problem::new("limit", message));
        }
        let ahead = drain_ps(rate, limit);
        if self.limit != Limit::Derived && ahead > u128::from(AHEAD.ps()) && limit > link.path.least_limit(rate) {
            let ahead = Duration::from_ps(u64::try_from(ahead).unwrap_or(u64::MAX));
            let least = link.path.least_limit(rate);
            let message = format!(
                "gives an AQ of {rate} a limit of {limit}: it can send as much above its share as its rate allows in \
                 {ahead}; {least} would suffice (\"derived\")"
            );
            warnings.push(Problem::new("limit", message));
        }
        // A round trip through a full queue plus a packet at the entity's rate: an entity that sends all it may is
        // silent for that long.
        let wait = link.capacity.transmit(link.queue.get());
        let packet = u64::try_from(drain_ps(rate, link.path.mtu)).unwrap_or(u64::MAX);
        let least = Duration::from_ps(link.path.rtt.ps().saturating_add(wait.ps()).saturating_add(packet));
        let lends = self.work_conserving.is_some_and(|conserving| conserving.lends());
        if let Some(idle) = self.idle_after.filter(|_| !lends).filter(|&idle| idle > Duration::ZERO && idle < least) {
            let message = format!(
                "{idle} is less than {least}, the time of a round trip through a full queue and a packet at {rate}: \
                 active entities would count as idle, and shares would be wrong; leave it out, or write at least \
                 {least}"
            );
            warnings.push(Problem::new("idle_after", message));
        }
        warnings
    }

    /// The warning for the AQ of the greatest rate on a link, if its limit is less than what a window that is halved
    /// takes to come back.
    pub fn halving_warning(&self, link: &LinkSpec, rate: Rate) -> Option<Problem> {
        let (limit, least) = (self.limit_of(link, rate), link.path.halving(rate));
        (limit < least).then(|| {
            let message = format!(
                "gives an AQ of {rate} a limit of {limit}: a congestion control that halves its window after a loss \
                 can't carry that rate over a round trip of {} with less than {least}, the square of what is in flight \
                 over 18 packets, and loses up to a quarter of it; write at least that, with as large a switch.buffer, \
                 or let senders react to marks (dctcp)",
                link.path.rtt
            );
            Problem::new("limit", message)
        })
    }

    /// The warning about an entity's own feedback under a limit.
    pub fn feedback_warning(&self, limit: Bytes, feedback: CongestionSignal) -> Option<Problem> {
        let CongestionSignal::Ecn(Marking::Step { threshold }) = feedback else { return None };
        (threshold >= limit).then(|| {
            let message =
                format!("{threshold} is not below the AQ's limit of {limit}: packets are dropped before any is marked");
            Problem::new("feedback.ecn.step.threshold", message)
        })
    }
}
