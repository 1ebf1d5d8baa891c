//! Protective load balancing (PLB): a flow that meets congestion in several rounds changes its path (Qureshi et al.:
//! PLB: Congestion Signals are Simple and Effective for Network Load Balancing, SIGCOMM 2022).
//!
//! A round is a window of data. It is congested if at least a given share of it was marked. After a number of
//! consecutive congested rounds the flow changes its flow label (RFC 6437), which switches hash together with its
//! addresses. Its packets then take another path, which any node that knows the hash can compute (Pyrrha, section 4.2).
//! A timeout changes the label at once, since the path may have failed, and prevents further changes for a while. Rules
//! and defaults are Linux's (`tcp_plb.c`).
//!
//! Absent: changing earlier while nothing is in flight. A flow here is one message, which is never idle before its end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem, Time};

/// Configuration of protective load balancing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Plb {
    /// Share of marked bytes from which on a round is congested, above 0 and at most 1. Default: 0.5.
    pub marked_share: f64,
    /// Number of consecutive congested rounds after which a flow changes its path. Default: 12.
    pub rounds: u32,
    /// After a timeout, which changes the path, how long marks do not change it. Default: 60s.
    pub quiet_after_timeout: Duration,
}

impl Default for Plb {
    /// The values of Linux.
    fn default() -> Plb {
        Plb { marked_share: 0.5, rounds: 12, quiet_after_timeout: Duration::from_ms(60_000) }
    }
}

impl Plb {
    pub(super) fn check(&self) -> Result<(), Problem> {
        if !(self.marked_share > 0.0 && self.marked_share <= 1.0) {
            let message = format!("{} is not above 0 and at most 1", self.marked_share);
            return Err(Problem::new("marked_share", message));
        }
        if self.rounds == 0 {
            return Err(Problem::new("rounds", "at 0 it would change paths without congestion; write at least 1"));
        }
        Ok(())
    }
}

/// A flow's path and its state of congestion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, node::State)]
pub(super) struct Path {
    /// The flow label; 0 until the path changes.
    pub label: u32,
    /// End of the window of data that is being observed.
    round_end: u64,
    acked: u64,
    marked: u64,
    congested: u32,
    #[state(expired)]
    quiet_until: Time,
}

impl Path {
    /// `acked` more bytes are acknowledged, up to `una`; all bytes before `next` have been sent. Returns whether the
    /// path changes.
    pub fn on_ack(&mut self, plb: &Plb, now: Time, acked: u64, marked: bool, una: u64, next: u64) -> bool {
        self.acked += acked;
        self.marked += if marked { acked } else { 0 };
        if una <= self.round_end || self.acked == 0 {
            return false;
        }
        let congested = self.marked as f64 >= plb.marked_share * self.acked as f64;
        self.congested = if congested { self.congested + 1 } else { 0 };
        (self.round_end, self.acked, self.marked) = (next, 0, 0);
        if self.congested < plb.rounds || now < self.quiet_until {
            return false;
        }
        self.change();
        true
    }

    pub fn on_timeout(&mut self, plb: &Plb, now: Time) {
        self.quiet_until = now.saturating_add(plb.quiet_after_timeout);
        self.change();
    }

    fn change(&mut self) {
        // Any new label will do, since switches hash it. 0 means no label.
        self.label = self.label.wrapping_add(1).max(1);
        self.congested = 0;
    }
}

#[cfg(test)]
mod tests;
