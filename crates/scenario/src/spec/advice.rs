//! Settings that have no effect in their scenario, as far as this shows without a network.
//!
//! Comparing schemes means running one scenario under many, and what one scheme uses another ignores. So a setting
//! without effect is no error: it is said once, with what would give it one. `run::compatibility` adds those that show
//! on a network.

use catalogue::Transport;
use fabric::FailureSpec;
use units::Problem;

use super::{HostSpec, Measure, Scenario};

impl Scenario {
    /// Settings that have no effect here: for each, its key and what gives it one.
    pub fn advice(&self) -> Vec<Problem> {
        let mut advice = self.idle_settings();
        advice.extend(self.renamed.iter().cloned());
        let mut under = |key: &str, of: Vec<Problem>| advice.extend(of.into_iter().map(|problem| problem.under(key)));
        let carriers = self.carriers();
        for (transport, key) in carriers.transports.iter().zip(&carriers.keys) {
            under(key, transport.advice());
        }
        under("host.cpu", self.host.cpu.map_or_else(Vec::new, |cpu| cpu.advice()));
        under("flow_control", self.flow_control.advice());
        under("sharing", self.sharing.advice());
        for (index, class) in self.traffic.iter().enumerate() {
            under(&format!("traffic[{index}]"), class.advice());
            under(&format!("traffic[{index}]"), self.idle_resubmit(class));
        }
        for (index, job) in self.job.iter().enumerate() {
            under(&format!("job[{index}]"), job.advice());
        }
        for (index, failure) in self.failure.iter().enumerate() {
            under(&format!("failure[{index}]"), failure.advice());
        }
        advice
    }

    /// The settings of no scheme, class, job or failure.
    fn idle_settings(&self) -> Vec<Problem> {
        let (usual, measure) = (Scenario::default(), Measure::default());
        let own = self.traffic.iter().map(|class| &class.transport).chain(self.job.iter().map(|job| &job.transport));
        let own = own.chain(self.live.sockets.values().map(|socket| &socket.transport));
        let named_by_all = !own.into_iter().any(Option::is_none) && self.classes().next().is_some();
        let requests = self.entity.iter().any(|entity| !entity.request.is_empty());
        let stays = !self.failure.iter().any(FailureSpec::is_news);
        let unlearned = "has no effect without a failure that routing learns of; delete it or add a [[failure]]";
        let idle = [
            (
                "transport",
                named_by_all && self.transport != Transport::default(),
                "has no effect, since every traffic class names its own; delete one or the other",
            ),
            (
                "sharing",
                !requests && self.sharing.as_scheme().is_some(),
                "has no effect, since no entity requests anything; add an [[entity]] with a request",
            ),
            (
                "host.intake_buffer",
                self.host.intake_rate.is_none() && self.host.intake_buffer != HostSpec::default().intake_buffer,
                "has no effect without host.intake_rate; set that or delete this",
            ),
            ("reroute_delay", stays && self.reroute_delay != usual.reroute_delay, unlearned),
            ("reroute_per_hop", stays && self.reroute_per_hop != usual.reroute_per_hop, unlearned),
            ("reroute_compute_max", stays && self.reroute_compute_max != usual.reroute_compute_max, unlearned),
            (
                "measure.alone",
                self.measure.alone && self.job.is_empty(),
                "has no effect without a [[job]]; delete it or add one",
            ),
            (
                "measure.drain",
                self.measure.end.is_some() && self.measure.drain != measure.drain,
                "has no effect beside measure.end; delete one of them",
            ),
        ];
        idle.into_iter().filter(|idle| idle.1).map(|(key, _, why)| Problem::new(key, why)).collect()
    }
}
