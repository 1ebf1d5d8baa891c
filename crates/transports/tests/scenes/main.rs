//! Scenes of transports on the virtual wire. One program, since each is linked with all transports.

mod rdma;
mod tcp;

use std::collections::BTreeSet;

use contract::{NetworkView, Scheme};
use node::{Event, Header, Packet};
use testing::{PacketFate, Scene, Wire};
use units::{Duration, FlowId, Time};

/// Message bytes in a full packet.
const MSS: u64 = 1460;

/// Round trip of a full packet and its acknowledgement on the default wire: 2 x 120 ns there, 2 x 3.2 ns back, 5 us.
const RTT: Duration = Duration::from_ps(5_246_400);

/// Time of a full packet on the default wire.
const PACKET: Duration = Duration::from_ns(120);

/// What a host's endpoint has counted under a name.
fn counter(scene: &Scene, host: u32, name: &str) -> u64 {
    let counters = scene.endpoint(host).counters();
    counters.iter().find(|counter| counter.0 == name).unwrap_or_else(|| panic!("no counter {name}")).1
}

/// Hosts with this scheme on the virtual wire.
fn scene<C: Scheme + 'static>(hosts: u32, wire: Wire, config: C) -> Scene {
    assert_eq!(config.check(), Ok(()));
    Scene::new(hosts, wire, move |site| config.endpoint(site, &NetworkView::star(site)))
}

/// The number of a data packet: of the full packets before it in its message.
fn number<H: Header>(packet: &Packet) -> Option<u64> {
    (packet.payload_bytes > 0).then(|| packet.header::<H>().payload_offset() / MSS)
}

/// Data packets of a flow: when they left, and their numbers.
fn data<H: Header>(scene: &Scene, flow: FlowId) -> Vec<(Time, u64)> {
    let sent = scene.sent.iter().filter(|sent| sent.1.flow == flow);
    sent.filter_map(|(at, packet)| Some((*at, number::<H>(packet)?))).collect()
}

/// When each packet that was sent more than once was sent again.
fn resent<H: Header>(scene: &Scene, flow: FlowId) -> Vec<(Time, u64)> {
    let mut seen = BTreeSet::new();
    data::<H>(scene, flow).into_iter().filter(|sent| !seen.insert(sent.1)).collect()
}

/// Loses the transmissions of flow 0 named by (packet, how often).
fn lose<H: Header>(scene: &mut Scene, losses: &[(u64, u32)]) {
    let mut left = losses.to_vec();
    scene.spoil(move |_, packet| {
        let mut due = left.iter_mut().filter(|loss| Some(loss.0) == number::<H>(packet) && loss.1 > 0);
        match due.next() {
            Some(loss) => {
                loss.1 -= 1;
                PacketFate::Drop
            }
            None => PacketFate::Pass,
        }
    });
}

/// All answers to flow 0 are lost for a second, while other messages come to its receiver.
fn a_second_without_answers(config: impl Scheme + 'static) {
    let mut scene = scene(3, Wire::default(), config);
    scene.spoil(|now, packet| {
        let delivers = packet.payload_bytes > 0 && now < Time::from_us(20);
        let lost = packet.flow == FlowId(0) && now < Time::from_ms(1_000) && !delivers;
        if lost { PacketFate::Drop } else { PacketFate::Pass }
    });
    let flow = scene.send(Time::ZERO, 0, 1, 10 * MSS);
    (0..10).for_each(|others| _ = scene.send(Time::from_ms(100 * others), 2, 1, MSS));
    scene.run_until(Time::from_ms(2_000));
    assert!(scene.delivered_at(flow) < Some(Time::from_us(20)));
    assert!(scene.completed_at(flow) > Some(Time::from_ms(1_000)));
    assert_eq!(scene.events.iter().filter(|event| event.2 == Event::Delivered { flow }).count(), 1);
}
