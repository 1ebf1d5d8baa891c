use super::*;

fn sent(packets: u64) -> Outstanding {
    let mut outstanding = Outstanding::new(100);
    (0..packets).for_each(|packet| assert!(!outstanding.send(packet)));
    outstanding
}

/// A packet delayed by adaptive balancing is not lost; packets missing further back are.
#[test]
fn packets_may_overtake_each_other() {
    let mut outstanding = sent(10);
    assert!(!outstanding.sack(3, 3));
    assert_eq!(outstanding.lost(), None);
    assert!(outstanding.sack(5, 3));
    assert_eq!(repair(&mut outstanding), [0, 1]);
}

/// Sends all that is lost.
fn repair(outstanding: &mut Outstanding) -> Vec<u64> {
    let resend = |_| outstanding.lost().inspect(|&lost| assert!(outstanding.send(lost)));
    (0..100).map_while(resend).collect()
}

#[test]
fn what_lies_before_a_packet_that_arrived_is_lost_once() {
    let mut outstanding = sent(10);
    outstanding.acknowledge(2, Time::ZERO);
    // 2, 3 and 5 are missing.
    assert!(outstanding.sack(4, 0));
    assert_eq!(repair(&mut outstanding), [2, 3]);
    assert!(!outstanding.sack(6, 0));
    assert_eq!(repair(&mut outstanding), [5]);
    // 7 has arrived, then 2: 3 is still missing, and has been sent again.
    outstanding.sack(7, 0);
    assert!(outstanding.acknowledge(3, Time::ZERO));
    assert!(repair(&mut outstanding).is_empty());
    // Up to 10, all that was sent when recovery began.
    outstanding.acknowledge(9, Time::ZERO);
    assert!(outstanding.repair.is_some());
    outstanding.acknowledge(10, Time::ZERO);
    assert!(outstanding.repair.is_none());
    assert_eq!((outstanding.in_flight(), outstanding.following()), (0, Some(10)));
}

#[test]
fn a_timeout_repairs_the_first_and_the_rest_once_its_retransmission_has_arrived() {
    let us = Time::from_us;
    let mut outstanding = sent(10);
    outstanding.sack(8, 0);
    assert_eq!(repair(&mut outstanding), [0, 1, 2, 3, 4, 5, 6, 7]);
    outstanding.time_out(us(100));
    assert_eq!(repair(&mut outstanding), [0, 1, 2, 3, 4, 5, 6, 7]);

    let mut outstanding = sent(5);
    outstanding.time_out(us(100));
    assert_eq!(repair(&mut outstanding), [0]);
    // What was late arrives: nothing was lost.
    outstanding.acknowledge(1, us(3));
    assert!(repair(&mut outstanding).is_empty());
    // Again, and the retransmission arrives.
    outstanding.time_out(us(200));
    assert_eq!(repair(&mut outstanding), [1]);
    outstanding.acknowledge(2, us(200));
    assert_eq!(repair(&mut outstanding), [2, 3, 4]);
}

#[test]
fn going_back_sends_all_again() {
    let mut outstanding = sent(5);
    outstanding.acknowledge(2, Time::ZERO);
    outstanding.go_back();
    assert_eq!((outstanding.following(), outstanding.in_flight()), (Some(2), 0));
    assert!(outstanding.send(2) && outstanding.send(3));
    // An answer to what was sent before.
    outstanding.acknowledge(5, Time::ZERO);
    assert_eq!(outstanding.following(), Some(5));
    assert!(!outstanding.send(5));
}
