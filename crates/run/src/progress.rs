use units::{Duration, Time};

use crate::Plan;

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time by the run's clock.
    pub now: Time,
    /// When the run ends at the latest.
    pub horizon: Time,
    /// Flows that have ended.
    pub flows_done: u64,
    /// Flows in all.
    pub flows: u64,
    /// Payload that hosts have received, what was sent again included; or flows that have ended, where bytes are not
    /// counted.
    pub work_done: u64,
    /// Payload of all flows; or flows in all.
    pub work: u64,
    /// For how long no class has received payload, if that is longer than the audit's patience
    /// ([`Plan::patience`]); else zero.
    pub still: Duration,
}

impl Progress {
    /// Of a run whose work is counted in flows.
    pub fn by_flows(now: Time, horizon: Time, flows_done: u64, flows: u64) -> Progress {
        Progress { now, horizon, flows_done, flows, work_done: flows_done, work: flows, still: Duration::ZERO }
    }

    /// Share of the run's work that is done, from 0 to 1.
    ///
    /// Work is done where packets are, so it is counted in bytes and not in flows, most of which are short: when half
    /// of the flows of web search have ended, a tenth of the bytes may have come. A run that ends at its horizon before
    /// all bytes have come is as far as its clock. Bytes that are sent again may count twice. So a run may have
    /// received all bytes before all flows have ended.
    pub fn fraction(&self) -> f64 {
        let share = |of: u64, all: u64| if all == 0 { 0.0 } else { of as f64 / all as f64 };
        if self.flows_done >= self.flows {
            return 1.0;
        }
        share(self.work_done, self.work).max(share(self.now.ps(), self.horizon.ps())).min(0.999)
    }
}

/// Sees from one look to the next whether payload comes.
#[derive(Clone, Copy, Debug)]
pub struct Stillness {
    patience: Duration,
    payload_bytes: u64,
    since: Time,
}

impl Stillness {
    /// Of a run that has not begun.
    pub fn new(plan: &Plan) -> Stillness {
        Stillness { patience: plan.patience(), payload_bytes: 0, since: Time::ZERO }
    }

    /// Takes the payload that hosts have received by now; returns for how long none has come, if that is long.
    pub fn see(&mut self, now: Time, payload_bytes: u64) -> Duration {
        if payload_bytes != self.payload_bytes {
            (self.payload_bytes, self.since) = (payload_bytes, now);
        }
        Some(now.since(self.since)).filter(|&still| still >= self.patience).unwrap_or_default()
    }
}
