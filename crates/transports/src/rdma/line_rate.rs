//! No rate control: line rate, limited only by the window. Flow controls are measured with it.

use node::EndpointParams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Rate;

use super::control::{Algorithm, Control, Start};
use contract::{About, CongestionSignal};

/// Line rate has no settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LineRateConfig")]
pub struct Config {}

impl Algorithm for Config {
    type Control = LineRate;

    const ABOUT: About = About {
        title: "RDMA without rate control",
        source: "InfiniBand Architecture Specification, annex A17 (RoCEv2); IRN (SIGCOMM 2018)",
        summary: "Queue pairs that send at line rate within a window.",
        needs: "a lossless network, or little loss",
    };

    fn signal(&self, _: &EndpointParams) -> CongestionSignal {
        CongestionSignal::Drop
    }

    fn start(&self, start: Start) -> LineRate {
        LineRate(start.line)
    }
}

/// The rate of the host's link.
#[derive(Clone, Copy, Debug, node::State)]
pub struct LineRate(Rate);

impl Control for LineRate {
    fn rate(&self) -> Rate {
        self.0
    }
}
