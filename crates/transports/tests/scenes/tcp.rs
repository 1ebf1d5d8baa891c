//! Scenes of TCP on the virtual wire: what RFCs and arithmetic say of delivery, loss recovery and congestion control.

mod bbr;
mod controls;
mod delivery;
mod rack;
mod recovery;
mod swift;

use clearway_transports::tcp::control::{Ack, Algorithm, Congestion, Control, Ecn, Start};
use clearway_transports::tcp::header::{Acknowledgement, Header};
use clearway_transports::tcp::{self, Config, cubic, dctcp, illinois, newreno};
use contract::{About, CongestionSignal, NetworkView, Scheme};
use node::{EndpointParams, Packet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testing::{PacketFate, Scene, Wire, sent};
use units::{Duration, FlowId, HostId, Problem, Rate, Time};

use crate::{MSS, PACKET, RTT, a_second_without_answers, counter, data, lose, resent, scene};

type Bbr = Config<tcp::bbr::Config>;
type NewReno = Config<newreno::Config>;
type Cubic = Config<cubic::Config>;
type Dctcp = Config<dctcp::Config>;
type Swift = Config<tcp::swift::Config>;
type Illinois = Config<illinois::Config>;

fn acks(scene: &Scene) -> impl Iterator<Item = (Time, Packet, Acknowledgement)> {
    sent!(scene, Header::Ack(ack) => ack).into_iter()
}

/// A congestion control from outside the crate: a window that never changes, and a rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Fixed {
    rate: Option<Rate>,
}

impl Algorithm for Fixed {
    type Control = FixedWindow;

    const ABOUT: About = About { title: "", source: "", summary: "", needs: "" };

    fn check(&self) -> Result<(), Problem> {
        Ok(())
    }
    fn ecn(&self) -> Ecn {
        Ecn::Off
    }
    fn signal(&self, _: &EndpointParams) -> CongestionSignal {
        CongestionSignal::Drop
    }
    fn start(&self, start: Start) -> FixedWindow {
        FixedWindow { bytes: start.window_bytes, rate: self.rate }
    }
}

#[derive(node::State)]
#[state(refuse("a test does not say what of its state moves"))]
struct FixedWindow {
    bytes: u64,
    rate: Option<Rate>,
}

impl Control for FixedWindow {
    fn on_ack(&mut self, _: &Ack) {}
    fn on_congestion(&mut self, _: &Congestion) {}
    fn window_bytes(&self) -> u64 {
        self.bytes
    }
    fn pacing(&self) -> Option<Rate> {
        self.rate
    }
}
