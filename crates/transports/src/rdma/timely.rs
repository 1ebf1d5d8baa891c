//! TIMELY: the rate follows the gradient of the round trip (Mittal et al., SIGCOMM 2015, section 4).
//!
//! Between two thresholds the smoothed difference of successive round trips decides (Algorithm 1). If round trips fall
//! or stay level, the rate grows by one step, and by five steps from the fifth time in a row on. If they rise, it
//! shrinks in proportion. Below the lower threshold it always grows; above the upper one it shrinks in proportion to
//! the excess.

use node::EndpointParams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem, Rate};

use super::control::{Ack, Algorithm, Control, Start};
use contract::{About, CongestionSignal};

/// Configuration of TIMELY.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "TimelyConfig")]
pub struct Config {
    /// Round trip below which the rate always grows. Default: 50us.
    pub t_low: Duration,
    /// Round trip above which the rate always shrinks. Default: 500us.
    pub t_high: Duration,
    /// Unit of the gradient: the round trip of an unloaded network. Default: 20us.
    pub min_rtt: Duration,
    /// Weight of the newest difference in the smoothed one, above 0 and at most 1 (alpha). Default: 0.875.
    pub ewma: f64,
    /// Factor of decreases, above 0 and at most 1. Default: 0.8.
    pub beta: f64,
    /// Step of growth (delta). Default: 10Mbps.
    pub step: Rate,
    /// Number of consecutive growths by the gradient after which a growth is this many steps (N). Default: 5.
    pub hyper: u32,
    /// Acknowledged bytes between two decisions: the paper's segment. Default: one decision in each round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<Bytes>,
    /// Lowest rate. Default: 100Mbps.
    #[serde(alias = "min_rate")]
    pub rate_min: Rate,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            t_low: Duration::from_us(50),
            t_high: Duration::from_us(500),
            min_rtt: Duration::from_us(20),
            ewma: 0.875,
            beta: 0.8,
            step: Rate::from_bps(10_000_000),
            hyper: 5,
            segment: None,
            rate_min: Rate::from_bps(100_000_000),
        }
    }
}

impl Algorithm for Config {
    type Control = Timely;

    const ABOUT: About = About {
        title: "TIMELY over RoCE",
        source: "Mittal et al., SIGCOMM 2015",
        summary: "Raises its rate while round-trip times fall or are short, lowers it while they rise or are long.",
        needs: "a lossless network, or IRN",
    };

    fn check(&self) -> Result<(), Problem> {
        if self.t_low > self.t_high {
            return Err(Problem::new("t_low", format!("{} is above t_high, {}", self.t_low, self.t_high)));
        }
        if self.min_rtt == Duration::ZERO {
            return Err(Problem::new("min_rtt", "0 is not a round-trip time; write one, such as \"20us\""));
        }
        for (key, value) in [("ewma", self.ewma), ("beta", self.beta)] {
            if !(value > 0.0 && value <= 1.0) {
                return Err(Problem::new(key, format!("{value} is not above 0 and at most 1")));
            }
        }
        if self.rate_min == Rate::ZERO {
            return Err(Problem::new("rate_min", "at 0 a flow would never send again; write a rate above 0"));
        }
        Ok(())
    }

    fn signal(&self, _: &EndpointParams) -> CongestionSignal {
        CongestionSignal::Delay
    }

    fn start(&self, start: Start) -> Timely {
        let us = |span: Duration| span.us_f64();
        let line = start.line.bps() as f64;
        Timely {
            t_low: us(self.t_low),
            t_high: us(self.t_high),
            min_rtt: us(self.min_rtt),
            ewma: self.ewma,
            beta: self.beta,
            step: self.step.bps() as f64,
            hyper: self.hyper,
            segment: self.segment.map(Bytes::get),
            rate_min: (self.rate_min.bps() as f64).min(line),
            line,
            rate: line,
            last: None,
            least: Duration::MAX,
            difference: 0.0,
            falling: 0,
            after: 0,
        }
    }
}

/// The rate of a queue pair.
#[derive(Clone, Debug, node::State)]
#[state(first(walk.same(self.falling.min(self.hyper))))]
pub struct Timely {
    /// In microseconds: thresholds, and the gradient's unit.
    t_low: f64,
    t_high: f64,
    min_rtt: f64,
    ewma: f64,
    beta: f64,
    step: f64,
    hyper: u32,
    segment: Option<u64>,
    rate_min: f64,
    line: f64,
    /// In bits per second.
    rate: f64,
    /// The last round trip, in microseconds.
    last: Option<f64>,
    /// The least round trip, for packets of an AQ.
    least: Duration,
    /// The smoothed difference of successive round trips, in microseconds.
    difference: f64,
    /// Number of consecutive decisions without a positive gradient.
    #[state(counted_of)]
    falling: u32,
    /// The next decision is due when more than this is acknowledged.
    #[state(sequence(1))]
    after: u64,
}

impl Timely {
    /// Algorithm 1 of the paper.
    fn decide(&mut self, rtt: f64) {
        let Some(last) = self.last.replace(rtt) else { return };
        self.difference = (1.0 - self.ewma) * self.difference + self.ewma * (rtt - last);
        let gradient = self.difference / self.min_rtt;
        if rtt < self.t_low {
            self.rate += self.step;
        } else if rtt > self.t_high {
            self.falling = 0;
            self.rate *= 1.0 - self.beta * (1.0 - self.t_high / rtt);
        } else if gradient <= 0.0 {
            self.falling += 1;
            self.rate += if self.falling >= self.hyper { f64::from(self.hyper) * self.step } else { self.step };
        } else {
            self.falling = 0;
            self.rate *= (1.0 - self.beta * gradient).max(0.0);
        }
        self.rate = self.rate.clamp(self.rate_min, self.line);
    }
}

impl Control for Timely {
    fn rate(&self) -> Rate {
        Rate::from_bps((self.rate + 0.5) as u64)
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.least = self.least.min(ack.rtt);
        if ack.una <= self.after {
            return;
        }
        self.after = self.segment.map_or(ack.next, |segment| ack.una - 1 + segment);
        // Under an AQ the physical queue depends on others.
        let rtt = ack.virtual_delay.map_or(ack.rtt, |delay| self.least + delay);
        self.decide(rtt.us_f64());
    }
}

#[cfg(test)]
mod tests;
