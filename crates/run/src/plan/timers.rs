//! Timers that a scenario sets shorter than what they wait for can take.

use fabric::Quotient;
use rustc_hash::FxHashSet;
use units::{Duration, HostId, Problem};

use super::Plan;
use crate::Ideal;

impl Plan {
    /// Of each timer that the scenario sets: whether an answer can come in time where nothing is in the way, and where
    /// a rate limiter is.
    pub(super) fn timer_warnings(&self) -> Vec<Problem> {
        let mut warnings = Vec::new();
        for (index, transport) in self.transports.iter().enumerate() {
            let timers = transport.as_scheme().timers(&self.network).into_iter().filter(|timer| timer.set);
            let timers: Vec<_> = timers.collect();
            if timers.is_empty() {
                continue;
            }
            let (round_trip, limited) = (self.longest_round_trip(index), self.longest_limited(index));
            for timer in timers {
                let contract::Timer { key, after, then, .. } = timer;
                let what = if after < round_trip {
                    format!("the longest round trip without load, {round_trip}")
                } else if after < limited {
                    format!("a message takes through its host's rate limiter, {limited}")
                } else {
                    continue;
                };
                let from_network = self.network.loaded_rtt();
                let message = format!(
                    "{after} is shorter than {what}: without an answer for so long it {then}, though nothing is lost. \
                     Leave it out for what follows from this network ({from_network} or more), or write at least that"
                );
                let place = &self.scenario.carriers().keys[index];
                warnings.push(Problem::new(format!("{place}.{}.{key}", transport.name()), message));
            }
        }
        warnings
    }

    /// The longest unloaded round trip of a full packet and an answer between hosts that a transport's flows join.
    fn longest_round_trip(&self, transport: usize) -> Duration {
        let of_transport = self.flows.iter().filter(|flow| usize::from(flow.transport) == transport);
        let pairs: FxHashSet<(HostId, HostId)> = of_transport.map(|flow| (flow.src, flow.dst)).collect();
        let quotient = Quotient::new(&self.fabric);
        let mut ideals = Ideal::by_transport(&self.fabric, &quotient, &self.scenario, &self.transports);
        let ideal = &mut ideals[transport];
        let payload = u64::from(self.sites[0].payload_max());
        let round_trips =
            pairs.into_iter().map(|(src, dst)| ideal.delivery(src, dst, payload) + ideal.answer(src, dst));
        round_trips.max().unwrap_or(Duration::ZERO)
    }

    /// The longest that a whole message of a transport takes through its host's rate limiter, or a full queue there.
    fn longest_limited(&self, transport: usize) -> Duration {
        let Some(scheme) = self.scenario.sharing.as_scheme().filter(|_| !self.hoses.is_empty()) else {
            return Duration::ZERO;
        };
        let of_transport = self.flows.iter().filter(|flow| usize::from(flow.transport) == transport);
        let limited = of_transport.filter_map(|flow| {
            let hose = *self.hoses.get(flow.src.index())?;
            let full = scheme.longest_wait(&self.sites[flow.src.index()], hose);
            Some(hose.outbound?.transmit(flow.bytes).min(full))
        });
        limited.max().unwrap_or(Duration::ZERO)
    }
}
