//! HPCC: the rate follows the switches' telemetry about their links (Li et al., SIGCOMM 2019, section 3).
//!
//! Acknowledgements carry a record of each hop of the data packet: rate, time, bytes sent, queue. Two records of a port
//! give its sending rate. Together with the shorter of the two queues, that gives the bytes in flight on the link as a
//! share of its bandwidth-delay product (U). The rate is controlled so that U approaches `target`: multiplicatively
//! above it and after `max_stage` additive steps, additively otherwise. Every acknowledgement adjusts the rate,
//! relative to a reference (W^c) that changes once in a round trip, so that the control does not react to the same
//! congestion several times.
//!
//! As in the simulator of HPCC's authors the state is a rate R, and the window of the queue pair is R T. With
//! `multi_rate` there is a reference rate for each hop, of which the least counts.

use node::{EndpointParams, Telemetry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem, Rate};

use super::control::{Ack, Algorithm, Control, Start};
use contract::{About, CongestionSignal};

/// Configuration of HPCC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "HpccConfig")]
pub struct Config {
    /// Target utilisation of a link, above 0 and at most 1 (eta, U_target). Default: 0.95.
    pub target: f64,
    /// Additive steps before a multiplicative one (maxStage). Default: 5.
    pub max_stage: u32,
    /// Rate of an additive step: W_AI / T. Default: 50Mbps.
    pub additive_increase: Rate,
    /// Whether each hop has its own reference rate. Default: true.
    pub multi_rate: bool,
    /// Whether every acknowledgement adjusts the rate, instead of one in each round trip. Default: true.
    pub fast_react: bool,
    /// Lowest rate. Default: 100Mbps.
    #[serde(alias = "min_rate")]
    pub rate_min: Rate,
    /// Whether telemetry is added to the MTU, as in HPCC's simulator, instead of included in it. Default: false.
    pub telemetry_beyond_mtu: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            target: 0.95,
            max_stage: 5,
            additive_increase: Rate::from_bps(50_000_000),
            multi_rate: true,
            fast_react: true,
            rate_min: Rate::from_bps(100_000_000),
            telemetry_beyond_mtu: false,
        }
    }
}

impl Algorithm for Config {
    type Control = Hpcc;

    const ABOUT: About = About {
        title: "HPCC",
        source: "Li et al., SIGCOMM 2019",
        summary: "Sets its rate from the link loads that the switches on the path report.",
        needs: "in-band telemetry at switches; a lossless network, or IRN",
    };

    const TELEMETRY: bool = true;

    fn telemetry_beyond_mtu(&self) -> bool {
        self.telemetry_beyond_mtu
    }

    fn check(&self) -> Result<(), Problem> {
        if !(self.target > 0.0 && self.target <= 1.0) {
            return Err(Problem::new("target", format!("{} is not above 0 and at most 1", self.target)));
        }
        if self.rate_min == Rate::ZERO {
            return Err(Problem::new("rate_min", "at 0 a flow would never send again; write a rate above 0"));
        }
        Ok(())
    }

    fn signal(&self, _: &EndpointParams) -> CongestionSignal {
        CongestionSignal::Drop
    }

    fn start(&self, start: Start) -> Hpcc {
        let line = start.line.bps() as f64;
        let reference = Reference { rate: line, load: 1.0, stage: 0 };
        Hpcc {
            target: self.target,
            max_stage: self.max_stage,
            additive_increase: self.additive_increase.bps() as f64,
            multi_rate: self.multi_rate,
            fast_react: self.fast_react,
            rate_min: (self.rate_min.bps() as f64).min(line),
            line,
            rtt: start.rtt,
            rate: line,
            after: 0,
            last: None,
            references: [reference; node::telemetry::HOPS_MAX],
        }
    }
}

/// The rate of a queue pair.
#[derive(Clone, Debug, node::State)]
pub struct Hpcc {
    target: f64,
    max_stage: u32,
    additive_increase: f64,
    multi_rate: bool,
    fast_react: bool,
    rate_min: f64,
    line: f64,
    /// T.
    rtt: Duration,
    /// In bits per second.
    rate: f64,
    /// The references change when more than this is acknowledged (lastUpdateSeq).
    #[state(sequence(1))]
    after: u64,
    /// The last record of each hop (L).
    last: Option<Telemetry>,
    /// By hop, or the first for all.
    references: [Reference; node::telemetry::HOPS_MAX],
}

/// The reference that the rate is computed from.
#[derive(Clone, Copy, Debug, node::State)]
struct Reference {
    /// R^c, in bits per second.
    rate: f64,
    /// U, smoothed over a round trip.
    load: f64,
    /// Additive steps since the last multiplicative one (incStage).
    stage: u32,
}

/// What follows from two records of a port.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Bytes in flight on its link, in bandwidth-delay products (u').
    load: f64,
    /// The time between the records, as a share of a round trip.
    share: f64,
}

impl Hpcc {
    /// MeasureInflight's inner part (Algorithm 1), for each hop; `None` if the record is not newer.
    fn samples(&self, last: &Telemetry, now: &Telemetry) -> [Option<Sample>; node::telemetry::HOPS_MAX] {
        let mut samples = [None; node::telemetry::HOPS_MAX];
        let hops = last.hops().iter().zip(now.hops());
        for (sample, (before, hop)) in samples.iter_mut().zip(hops) {
            if hop.at <= before.at || hop.sent_bytes < before.sent_bytes || hop.rate == Rate::ZERO {
                continue;
            }
            let (span, rtt) = ((hop.at - before.at).secs_f64(), self.rtt.secs_f64());
            let rate = hop.rate.bps() as f64;
            let sent = (hop.sent_bytes - before.sent_bytes) as f64 * 8.0 / span;
            let queue = f64::from(hop.queue_bytes.min(before.queue_bytes)) * 8.0;
            *sample = Some(Sample { load: sent / rate + queue / (rate * rtt), share: (span / rtt).min(1.0) });
        }
        samples
    }

    /// ComputeWind for one reference: the rate, and the new reference.
    fn step(&self, reference: &mut Reference, sample: Sample) -> Reference {
        reference.load = reference.load * (1.0 - sample.share) + sample.load * sample.share;
        let excess = reference.load / self.target;
        let (rate, stage) = if excess >= 1.0 || reference.stage >= self.max_stage {
            (reference.rate / excess + self.additive_increase, 0)
        } else {
            (reference.rate + self.additive_increase, reference.stage + 1)
        };
        Reference { rate: rate.clamp(self.rate_min, self.line), load: reference.load, stage }
    }
}

impl Control for Hpcc {
    fn rate(&self) -> Rate {
        Rate::from_bps((self.rate + 0.5) as u64)
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let Some(now) = ack.telemetry else { return };
        let Some(last) = self.last.replace(*now).filter(|last| last.path() == now.path()) else {
            self.after = self.after.max(ack.next);
            return;
        };
        let whole = ack.una > self.after;
        if !whole && !self.fast_react {
            self.last = Some(last);
            return;
        }
        let mut samples = self.samples(&last, now);
        if !self.multi_rate {
            let most = samples.into_iter().flatten().max_by(|a, b| a.load.total_cmp(&b.load));
            samples = [None; node::telemetry::HOPS_MAX];
            samples[0] = most;
        }
        if samples.iter().all(Option::is_none) {
            return;
        }
        let used = if self.multi_rate { now.hops().len() } else { 1 };
        let mut least = self.line;
        let mut references = self.references;
        for (reference, sample) in references.iter_mut().zip(samples).take(used) {
            let Some(sample) = sample else {
                least = least.min(reference.rate);
                continue;
            };
            let next = self.step(reference, sample);
            least = least.min(next.rate);
            if whole {
                *reference = next;
            }
        }
        self.references = references;
        self.rate = least;
        if whole {
            self.after = self.after.max(ack.next);
        }
    }
}

#[cfg(test)]
mod tests;
