use units::Stream;

use super::*;
use crate::harmony::theory;

/// A packet's length in which all is counted.
const PACKET: Bytes = Bytes(1);

#[test]
fn theorem_3_1_is_tight_at_the_first_two_switches() {
    for k in 1..=16 {
        for (i, meeting) in (1..).zip(worst(k, 2)) {
            assert_eq!(meeting.queued_packets, theory::queue_max_at(i, k, PACKET).0, "K = {k}, switch {i}");
        }
    }
}

#[test]
fn from_the_third_switch_on_queues_can_exceed_theorem_3_1() {
    let found: Vec<u64> = worst(8, 5).iter().map(|meeting| meeting.queued_packets).collect();
    assert!(
        found[2] > theory::queue_max(3, 8, PACKET).0 && found[4] > 2 * theory::queue_max(5, 8, PACKET).0,
        "{found:?}"
    );
    // With two virtual links there is one other message at a time, and no more is found than the theorem has.
    let two: Vec<u64> = worst(2, 5).iter().map(|meeting| meeting.queued_packets).collect();
    assert_eq!(two, [1, 2, 3, 4, 5]);
}

#[test]
fn from_k_7_on_one_packet_waits_longer_at_three_switches_than_equation_1_says() {
    let equation = |k: u32| u64::from(6 * (k - 1));
    let found = |k| worst_wait(k, 3).iter().map(|delay| delay.packets).sum::<u64>();
    assert!((1..=6).all(|k| found(k) <= equation(k)));
    assert_eq!((found(7), equation(7)), (37, 36));
    assert_eq!((found(8), equation(8)), (44, 42));
    for k in 1..=64 {
        let waits = worst_wait(k, 5);
        let mut together = 0;
        for (i, delay) in (1..).zip(waits) {
            together += delay.packets;
            assert!(delay.packets <= proven_queue_max_at(i, k, PACKET).0, "K = {k}, switch {i}");
            assert!(together <= ((1 << i) - 1) * u64::from(k - 1), "K = {k}, switch {i}");
        }
    }
}

#[test]
fn the_proven_bound_holds_against_the_adversary() {
    for k in [1, 2, 3, 5, 8, 16] {
        for (i, meeting) in (1..).zip(worst(k, 5)) {
            let bound = proven_queue_max_at(i, k, PACKET).0;
            assert!(meeting.queued_packets <= bound, "K = {k}, switch {i}: {} of {bound}", meeting.queued_packets);
            if k == 8 {
                assert!(meeting.queued_packets * 5 >= bound * 4, "switch {i}: {} of {bound}", meeting.queued_packets);
            }
        }
    }
}

#[test]
fn every_message_of_the_adversary_keeps_to_its_virtual_link() {
    // At the first switch packets are K apart; further on no link carries more than one packet a packet time.
    for meeting in worst(8, 5) {
        assert!(meeting.arrivals.windows(2).all(|pair| pair[0] < pair[1]));
    }
    assert!(worst(8, 1)[0].arrivals.windows(2).all(|pair| pair[1] - pair[0] == 8));
}

#[test]
fn the_proven_bound_holds_wherever_messages_begin() {
    // Three switches; K messages a port, of which one goes on; each with a phase of its own, some with pauses.
    let mut random = Stream::new(1, 0, "adversary");
    for _ in 0..200 {
        let k = 2 + random.below(6);
        let mut message = |_| {
            let mut at = random.below(k);
            let packets = (0..12).map(|_| {
                let this = at;
                at += k + if random.chance(0.2) { random.below(2 * k) } else { 0 };
                this
            });
            packets.collect::<Vec<u64>>()
        };
        let first: Vec<Vec<Vec<u64>>> = (0..k * k).map(|_| (0..k).map(&mut message).collect()).collect();
        let second: Vec<Vec<u64>> = first.iter().map(|port| serve(port).0).collect();
        let third: Vec<Vec<u64>> = second.chunks(k as usize).map(|port| serve(port).0).collect();
        for (i, ports) in
            (1..).zip([first.concat().chunks(k as usize).map(<[_]>::to_vec).collect(), chunks(&second, k), vec![third]])
        {
            for port in ports {
                let bound = proven_queue_max_at(i, k as u32, PACKET).0;
                assert!(serve(&port).1 <= bound, "K = {k}, switch {i}");
            }
        }
    }
}

fn chunks(messages: &[Vec<u64>], k: u64) -> Vec<Vec<Vec<u64>>> {
    messages.chunks(k as usize).map(<[_]>::to_vec).collect()
}

/// When the last message's packets have left a port, and the most that any packet finds before it.
fn serve(messages: &[Vec<u64>]) -> (Vec<u64>, u64) {
    let last = messages.len() - 1;
    let mut arrivals: Vec<(u64, usize)> =
        messages.iter().enumerate().flat_map(|(who, at)| at.iter().map(move |&at| (at, who))).collect();
    arrivals.sort_unstable();
    let (mut free_at, mut longest, mut left) = (0, 0, Vec::new());
    for (at, who) in arrivals {
        let begins = free_at.max(at);
        longest = longest.max(begins - at);
        free_at = begins + 1;
        if who == last {
            left.push(free_at);
        }
    }
    (left, longest)
}
