//! Scenes of TCP on the virtual wire: what RFCs and arithmetic say of delivery, loss recovery and congestion control.

mod bbr;
mod controls;
mod delivery;
mod recovery;
mod swift;

use clearway_transports::tcp::control::{Ack, Algorithm, Congestion, Control, Ecn, Start};
use clearway_transports::tcp::header::{Acknowledgement, Header};
use clearway_transports::tcp::{self, Config, cubic, dctcp, illinois, newreno};
use contract::{About, CongestionSignal, NetworkView, Scheme};
use node::{Packet, Site};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testing::{PacketFate, Scene, Wire, sent};
use units::{Duration, FlowId, HostId, Problem, Rate, Time};

use crate::{MSS, PACKET, RTT, counter};

type Bbr = Config<tcp::bbr::Config>;
type NewReno = Config<newreno::Config>;
type Cubic = Config<cubic::Config>;
type Dctcp = Config<dctcp::Config>;
type Swift = Config<tcp::swift::Config>;
type Illinois = Config<illinois::Config>;

fn scene<A: Algorithm>(hosts: u32, wire: Wire, config: Config<A>) -> Scene {
    assert_eq!(config.check(), Ok(()));
    Scene::new(hosts, wire, move |site| config.endpoint(site, &NetworkView::star(site)))
}

/// Data packets of a flow: when they left, and the number of their segment.
fn data(scene: &Scene, flow: FlowId) -> Vec<(Time, u64)> {
    let is_data = |packet: &Packet| packet.flow == flow && packet.payload_bytes > 0;
    let number = |packet: &Packet| packet.header::<Header>().sequence() / MSS;
    scene.sent.iter().filter(|sent| is_data(&sent.1)).map(|sent| (sent.0, number(&sent.1))).collect()
}

/// When each segment that was sent more than once was sent again.
fn resent(scene: &Scene, flow: FlowId) -> Vec<(Time, u64)> {
    let mut seen = std::collections::BTreeSet::new();
    data(scene, flow).into_iter().filter(|sent| !seen.insert(sent.1)).collect()
}

fn acks(scene: &Scene) -> impl Iterator<Item = (Time, Packet, Acknowledgement)> {
    sent!(scene, Header::Ack(ack) => ack).into_iter()
}

/// Loses the transmissions of flow 0 named by (segment, how often).
fn lose(scene: &mut Scene, losses: &[(u64, u32)]) {
    let mut left = losses.to_vec();
    scene.spoil(move |_, packet| {
        let segment = packet.header::<Header>().sequence() / MSS;
        let mut due = left.iter_mut().filter(|loss| loss.0 == segment && loss.1 > 0);
        match due.next().filter(|_| packet.payload_bytes > 0) {
            Some(loss) => {
                loss.1 -= 1;
                PacketFate::Drop
            }
            None => PacketFate::Pass,
        }
    });
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
    fn signal(&self, _: &Site) -> CongestionSignal {
        CongestionSignal::Drop
    }
    fn start(&self, start: Start) -> FixedWindow {
        FixedWindow { bytes: start.window_bytes, rate: self.rate }
    }
}

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
