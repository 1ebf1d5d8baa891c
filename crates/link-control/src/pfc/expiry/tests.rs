use super::*;

const RATES: [Rate; 2] = [Rate::from_gbps(100), Rate::from_gbps(400)];

fn node(pause: u16, refresh: Option<u16>) -> Expiry {
    *Expiry::new(Quanta::new(Some(pause), refresh), RATES.into_iter()).expect("they have quanta")
}

fn pause(classes: u8, quanta: u16) -> Frame {
    Frame { classes, pause: classes, quanta }
}

/// 65,535 x 512 bits are 33,553,920: 335.5392 us at 100 Gbps, a quarter of that at 400.
#[test]
fn a_pause_ends_after_its_quanta_of_512_bit_times_of_the_port() {
    let begun = Time::from_us(3);
    for (port, ns) in [(0, 335_539.2), (1, 83_884.8)] {
        let mut node = node(65_535, None);
        node.heard(begun, PortId(port), pause(0b1000, 65_535));
        assert_eq!(node.next_at(), begun + Duration::from_ps((ns * 1e3) as u64));
        assert_eq!(node.due(node.next_at() - Duration::from_ps(1), PortId(port)), (0, 0));
        assert_eq!(node.due(node.next_at(), PortId(port)), (0b1000, 0));
        node.settle();
        assert_eq!((node.next_at(), node.ended), (Time::MAX, 1));
    }
}

/// Each frame begins its time anew, for its own classes; a resume ends it.
#[test]
fn a_pause_that_is_said_again_lasts_from_then_on_and_each_class_has_its_own() {
    let (mut node, us) = (node(1_000, None), Time::from_us);
    // 1,000 quanta are 5.12 us.
    let span = Duration::from_ns(5_120);
    node.heard(us(0), PortId(0), pause(0b11, 1_000));
    node.heard(us(4), PortId(0), pause(0b01, 1_000));
    assert_eq!(node.due(us(0) + span, PortId(0)).0, 0b10);
    assert_eq!(node.due(us(4) + span - Duration::from_ps(1), PortId(0)).0, 0);
    node.heard(us(5), PortId(0), pause(0b100, 1_000));
    node.heard(us(6), PortId(0), Frame::resume(0b01));
    assert_eq!(node.due(us(20), PortId(0)).0, 0b100);
}

/// A pause is said again every `refresh` until it is lifted: by default in the middle of its quanta, with 0 never.
#[test]
fn pauses_are_refreshed_until_they_are_lifted() {
    let (port, start) = (PortId(0), Time::from_us(1));
    for (refresh, quanta) in [(None, 500), (Some(250), 250), (Some(1), 1)] {
        let mut node = node(1_000, refresh);
        assert_eq!(node.said(start, port, 0b1, true), 1_000);
        let step = Duration::from_ns(512).mul_f64(f64::from(quanta) / 100.0);
        for round in 1..4u64 {
            let (at, said) = node.wake_nic(start + step * round);
            assert_eq!((at, said), (0, Some(pause(0b1, 1_000))), "{refresh:?}, {round}");
            assert_eq!(node.next_at(), start + step * (round + 1));
        }
        assert_eq!((node.said(start + step * 4, port, 0b1, false), node.refreshes), (0, 3));
        node.settle();
        assert_eq!(node.next_at(), Time::MAX);
    }
    let mut never = node(1_000, Some(0));
    never.said(start, port, 0b1, true);
    assert_eq!(never.next_at(), Time::MAX);
}

#[test]
fn a_link_that_fails_ends_all_pauses() {
    let mut node = node(1_000, None);
    node.heard(Time::ZERO, PortId(0), pause(0b1, 1_000));
    node.said(Time::ZERO, PortId(1), 0b1, true);
    node.clear(PortId(0));
    // The other port's stays: 500 quanta at 400 Gbps.
    assert_eq!(node.next_at(), Time::from_ns(640));
}

#[test]
fn keys_that_make_no_sense_are_refused_and_those_that_lose_packets_are_doubted() {
    let said = |quanta, refresh| Quanta::check(quanta, refresh).unwrap_err().to_string();
    assert!(said(None, Some(5)).contains("goes with quanta"));
    assert!(said(Some(0), None).contains("1 to 65535"));
    let doubt = |refresh| Quanta::doubt(Some(100), refresh).map(|doubt| doubt.to_string());
    assert_eq!(doubt(None).or(doubt(Some(99))), None);
    assert!(doubt(Some(0)).unwrap().contains("after 100 quanta even if memory is still full"));
    assert!(
        doubt(Some(100)).unwrap().contains("before it is sent again after 100; write less than quanta, such as 50")
    );
}
