//! TCP with the settings that Linux has by default: CUBIC with HyStart, RACK and tail loss probes (RFC 8985), PRR
//! (RFC 9937), an acknowledgement for every second segment and 40 ms at most for the first (`TCP_DELACK_MIN`), an
//! initial window of 10 segments, a timeout that is 200 ms above the round trip at least (`TCP_RTO_MIN` bounds
//! `rttvar`) and 120 s at most (`TCP_RTO_MAX`), and no ECN that a sender asks for (`tcp_ecn` is 2).
//!
//! It differs from `cubic` in defaults alone, so every one can be set. A receiver with receive offload (GRO)
//! acknowledges once for what its NIC hands up at a time: `delayed_ack = { packets = 44, timeout = "20us" }` is 64 KB
//! or what comes within an interrupt's 20 us.
//!
//! Before the first loss, and after a timeout before the next, its window grows by 5% in a round trip at least
//! (`bictcp_update` of `tcp_cubic.c`).
//!
//! Absent: Linux's quick acknowledgements of a connection's first segments; segmentation offload; pacing, which CUBIC
//! there does only under the `fq` queue; its Reno-friendly window, which grows by 0.53 segments throughout, as RFC 8312
//! said, where that of RFC 9438 grows by 1 from the window before the last reduction on.

use std::borrow::Cow;

use node::EndpointParams;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use units::{Duration, Problem};

use super::control::{Algorithm, Ecn, Start};
use super::{DelayedAck, cubic};
use contract::{About, CongestionSignal};

/// `ca->cnt = 20` of `bictcp_update`: a segment for each twenty that are acknowledged.
const GROWTH_BEFORE_LOSS: f64 = 0.05;

/// Configuration of Linux's congestion control: CUBIC's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Config(pub cubic::Config);

impl JsonSchema for Config {
    fn schema_name() -> Cow<'static, str> {
        "LinuxConfig".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        cubic::Config::json_schema(generator)
    }
}

impl Algorithm for Config {
    type Control = cubic::Cubic;

    const ABOUT: About = About {
        title: "Linux TCP",
        source: "Linux's defaults: RFC 9438, RFC 8985, RFC 9937",
        summary: "CUBIC with HyStart, RACK, tail loss probes, rate reduction by PRR and delayed acknowledgements.",
        needs: "nothing; ECN if its marks are to be used",
    };

    fn stack(config: super::Config<Config>) -> super::Config<Config> {
        super::Config {
            delayed_ack: Some(DelayedAck { packets: 2, timeout: Duration::from_ms(40) }),
            rto_min: Duration::from_ms(200),
            rto_variance_min: Duration::from_ms(200),
            rto_max: Duration::from_ms(120_000),
            rack: true,
            tail_loss_probe: true,
            prr: true,
            ..config
        }
    }

    fn check(&self) -> Result<(), Problem> {
        self.0.check()
    }

    fn ecn(&self) -> Ecn {
        self.0.ecn()
    }

    fn signal(&self, site: &EndpointParams) -> CongestionSignal {
        self.0.signal(site)
    }

    fn start(&self, start: Start) -> cubic::Cubic {
        let growth_before_loss = self.0.growth_before_loss.or(Some(GROWTH_BEFORE_LOSS));
        cubic::Config { growth_before_loss, ..self.0.clone() }.start(start)
    }
}
