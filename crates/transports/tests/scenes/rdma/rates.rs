use clearway_transports::rdma::control::{Cnp, Spaced};
use clearway_transports::rdma::header::Acknowledgement;

use super::*;

/// Notifications as they left their receivers.
fn cnps(scene: &Scene) -> Vec<(Time, Packet)> {
    let is_cnp = |packet: &Packet| match packet.header() {
        Header::Data(_) => false,
        Header::Ack(Acknowledgement { cnp, .. }) | Header::Nack(Acknowledgement { cnp, .. }) => cnp,
        Header::Cnp(_) => true,
    };
    scene.sent.iter().filter(|sent| is_cnp(&sent.1)).copied().collect()
}

#[test]
fn a_mark_is_told_in_its_acknowledgement() {
    // Two senders: the queue is over 15 KB from some time on.
    let mut scene = scene(3, Wire { mark_bytes: 15_000, ..Wire::default() }, Dcqcn::default());
    for src in [1, 2] {
        scene.send(Time::ZERO, src, 0, 1_000 * MSS);
    }
    scene.run_until(Time::from_us(100));
    let told = cnps(&scene);
    assert!(!told.is_empty());
    assert!(told.iter().all(|(_, packet)| matches!(packet.header(), Header::Ack(_)) && packet.wire_bytes == 40));
    assert_eq!(counter(&scene, 0, "cnps"), told.len() as u64);
}

#[test]
fn a_notification_packet_comes_once_an_interval_a_flow() {
    let interval = Duration::from_us(50);
    let cnp = Cnp::Packet { interval, spaced: Spaced::QueuePair };
    let control = dcqcn::Config { cnp, ..dcqcn::Config::default() };
    let config = Dcqcn { window: Window::Unlimited, control, ..Dcqcn::default() };
    let mut scene = scene(3, Wire { mark_bytes: 15_000, ..Wire::default() }, config);
    let flows = [1, 2].map(|src| scene.send(Time::ZERO, src, 0, 20_000 * MSS));
    scene.run_until(Time::from_ms(2));
    for flow in flows {
        let told: Vec<Time> = cnps(&scene).iter().filter(|sent| sent.1.flow == flow).map(|sent| sent.0).collect();
        assert!(told.len() > 3, "{told:?}");
        // Behind another answer, by its length at most.
        let slack = Duration::from_ps(2 * 3_200);
        assert!(told.windows(2).all(|pair| pair[1] + slack >= pair[0] + interval), "{told:?}");
    }
    assert!(cnps(&scene).iter().all(|sent| matches!(sent.1.header(), Header::Cnp(_))));
}

/// All queue pairs of a receiver keep the interval together, and notifications have a class of their own.
#[test]
fn a_receiver_may_space_the_notifications_of_all_its_queue_pairs() {
    let interval = Duration::from_us(50);
    let cnp = Cnp::Packet { interval, spaced: Spaced::Receiver };
    let control = dcqcn::Config { cnp, ..dcqcn::Config::default() };
    let config = Dcqcn { window: Window::Unlimited, cnp_class: Some(6), control, ..Dcqcn::default() };
    let mut scene = scene(4, Wire { mark_bytes: 15_000, ..Wire::default() }, config);
    for src in [1, 2, 3] {
        scene.send(Time::ZERO, src, 0, 20_000 * MSS);
    }
    scene.run_until(Time::from_ms(2));
    let told: Vec<Time> = cnps(&scene).iter().map(|sent| sent.0).collect();
    assert!(told.len() > 10 && told.len() <= 41, "{}", told.len());
    let slack = Duration::from_ps(2 * 3_200);
    assert!(told.windows(2).all(|pair| pair[1] + slack >= pair[0] + interval), "{told:?}");
    assert!(cnps(&scene).iter().all(|sent| sent.1.class == 6));
    let acks = scene.sent.iter().filter(|sent| matches!(sent.1.header(), Header::Ack(_)));
    assert!(acks.clone().count() > 100 && acks.clone().all(|sent| sent.1.class == 0));
}

#[test]
fn a_rate_is_kept_packet_by_packet() {
    // TIMELY on a wire with a round trip beyond its upper threshold shrinks to its least rate, 100 Mbps: 120 us a
    // packet.
    let wire = Wire { delay: Duration::from_us(2_000), ..Wire::default() };
    let mut scene = scene(2, wire, Timely::default());
    let flow = scene.send(Time::ZERO, 0, 1, 1_000_000 * MSS);
    scene.run_until(Time::from_ms(200));
    let sent = data::<Header>(&scene, flow);
    let last: Vec<Duration> = sent[sent.len() - 50..].windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(last.iter().all(|&gap| gap == Duration::from_us(120)), "{last:?}");
}

#[test]
fn the_window_shrinks_with_the_rate() {
    // At 100 Mbps of 100 Gbps a variable window of one product is a thousandth of it, and lets one packet go a round
    // trip.
    let wire = Wire { delay: Duration::from_us(2_000), ..Wire::default() };
    let rounds = |window: Window| {
        let mut scene = scene(2, wire, Timely { window, ..Timely::default() });
        let flow = scene.send(Time::ZERO, 0, 1, 1_000_000 * MSS);
        scene.run_until(Time::from_ms(200));
        let sent = data::<Header>(&scene, flow);
        (sent.iter().filter(|sent| sent.0 >= Time::from_ms(160)).count(), in_flight_peak(&scene, flow))
    };
    // 40 ms at 100 Mbps: 333 packets, of which 33 are in flight in 4 ms. The variable window is 50 KB, 35 packets.
    let (variable, _) = rounds(Window::Variable { bdps: 1.0 });
    let (fixed, _) = rounds(Window::Fixed { bdps: 1.0 });
    assert!((330..=334).contains(&variable) && (330..=334).contains(&fixed), "{variable} {fixed}");
    // Half a product: 17 or 18 packets a round trip of 4 ms, where the rate would let 33 go.
    let (half, _) = rounds(Window::Variable { bdps: 0.5 });
    assert!((170..=180).contains(&half), "{half}");
}

#[test]
fn an_incast_of_dcqcn_marks_and_slows_down() {
    // 15 senders, marks above 50 KB: alpha is 1 to begin with, so the first cuts are by half every 4 us while marks
    // come.
    let mut scene = scene(16, Wire { mark_bytes: 50_000, ..Wire::default() }, Dcqcn::default());
    let flows: Vec<FlowId> = (1..16).map(|src| scene.send(Time::ZERO, src, 0, 300 * MSS)).collect();
    scene.run_until(Time::from_ms(100));
    assert!(flows.iter().all(|&flow| scene.completed_at(flow).is_some()));
    assert!(counter(&scene, 0, "cnps") > 0);
    assert!((0..16).all(|host| counter(&scene, host, "timeouts") == 0));
    // Never more than the first windows.
    assert!(scene.queue_bytes_peak[0] <= 15 * 45 * 1500);
}
