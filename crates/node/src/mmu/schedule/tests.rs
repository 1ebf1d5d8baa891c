use super::*;

fn by_bytes(queues: &[(u8, u32)]) -> Level {
    Level { queues: queues.to_vec(), unit: Unit::Bytes(2_048) }
}

/// Bytes that each queue has sent after `packets` packets, if all always have packets of these sizes.
fn served(schedule: &mut Schedule, sizes: [u32; CLASSES], packets: u32) -> [u64; CLASSES] {
    let ready = (0..CLASSES).fold(0, |bits, queue| bits | u8::from(sizes[queue] > 0) << queue);
    let mut sent = [0; CLASSES];
    for _ in 0..packets {
        let queue = schedule.pick(Time::ZERO, ready, |queue| sizes[usize::from(queue)]).unwrap();
        schedule.sent(Time::ZERO, queue, sizes[usize::from(queue)]);
        sent[usize::from(queue)] += u64::from(sizes[usize::from(queue)]);
    }
    sent
}

/// After any number of packets, two queues of a level are apart from their weights by no more than a turn and a packet
/// (Shreedhar and Varghese 1995, lemma 2), whatever the sizes of packets.
#[test]
fn bytes_are_shared_by_weight_to_a_turn_and_a_packet() {
    let weights = [(0, 14), (3, 15), (4, 30), (7, 1)];
    let mut schedule = Schedule::new(vec![by_bytes(&weights)], Default::default(), None);
    let sizes = [1_500, 0, 0, 4_200, 9_000, 0, 0, 64];
    let mut all = [0u64; CLASSES];
    for _ in 0..2_000 {
        for (total, sent) in all.iter_mut().zip(served(&mut schedule, sizes, 7)) {
            *total += sent;
        }
        for (a, of_a) in weights {
            for (b, of_b) in weights {
                let turns = |queue: u8, weight: u32| all[usize::from(queue)] as f64 / f64::from(weight);
                let packet = |queue: u8, weight: u32| f64::from(sizes[usize::from(queue)]) / f64::from(weight);
                let apart = (turns(a, of_a) - turns(b, of_b)).abs();
                assert!(apart <= 2_048.0 + packet(a, of_a) + packet(b, of_b), "queues {a} and {b}: {all:?}");
            }
        }
    }
}

/// By packets, a round is as many packets as weights, whatever their sizes.
#[test]
fn packets_are_shared_by_weight_exactly() {
    let level = Level { queues: vec![(1, 2), (2, 1), (5, 4)], unit: Unit::Packets };
    let mut schedule = Schedule::new(vec![level], Default::default(), None);
    let sent = served(&mut schedule, [0, 1_500, 64, 0, 0, 9_000, 0, 0], 7 * 100);
    assert_eq!(sent, [0, 200 * 1_500, 100 * 64, 0, 0, 400 * 9_000, 0, 0]);
}

#[test]
fn levels_are_strict_and_a_queue_without_packets_saves_nothing() {
    let levels = vec![by_bytes(&[(6, 1)]), by_bytes(&[(3, 1), (4, 1)]), by_bytes(&[(0, 1)])];
    let mut schedule = Schedule::new(levels, Default::default(), None);
    assert_eq!(served(&mut schedule, [64, 0, 0, 64, 64, 0, 64, 0], 50)[6], 50 * 64);
    // Queue 4 was idle while queue 3 sent; it gets no more than half afterwards.
    assert_eq!(served(&mut schedule, [64, 0, 0, 1_024, 0, 0, 0, 0], 1_000)[3], 1_024_000);
    let both = served(&mut schedule, [64, 0, 0, 1_024, 1_024, 0, 0, 0], 1_000);
    assert_eq!((both[0], both[3].abs_diff(both[4]) <= 3 * 1_024), (0, true), "{both:?}");
}

/// A shaped queue sends its burst and the packet that goes beyond it at once, then at its rate to the picosecond.
#[test]
fn the_greatest_rate_is_exact() {
    let rate = Rate::from_gbps(10);
    let mut rates = [Rates::default(); CLASSES];
    rates[3].max = Some((rate, 3_000));
    let mut schedule = Schedule::new(vec![by_bytes(&[(3, 1)]), by_bytes(&[(0, 1)])], rates, None);
    let (mut now, mut at) = (Time::ZERO, Vec::new());
    while at.len() < 100 {
        match schedule.pick(now, 1 << 3, |_| 1_500) {
            Some(queue) => {
                schedule.sent(now, queue, 1_500);
                at.push(now);
            }
            None => now = schedule.next_at(1 << 3),
        }
    }
    for (packet, at) in (0u64..).zip(at) {
        assert_eq!(at, Time::ZERO + rate.transmit(packet.saturating_sub(2) * 1_500));
    }
    // Another queue may go meanwhile.
    assert_eq!(schedule.pick(now, 1 << 3 | 1, |_| 1_500), Some(0));
}

/// A port's rate holds for all of its queues together, after its burst, and weights stay: 40 Gbps by 1 : 3.
#[test]
fn the_greatest_rate_of_a_port_is_exact_and_weights_divide_it() {
    let rate = Rate::from_gbps(40);
    let level = Level { queues: vec![(1, 1), (2, 3)], unit: Unit::Packets };
    let mut schedule = Schedule::new(vec![level], Default::default(), Some((rate, 3_000)));
    let (mut now, mut at, mut sent) = (Time::ZERO, Vec::new(), [0u64; CLASSES]);
    while at.len() < 4_000 {
        match schedule.pick(now, 0b110, |_| 1_500) {
            Some(queue) => {
                schedule.sent(now, queue, 1_500);
                sent[usize::from(queue)] += 1;
                at.push(now);
            }
            None => now = schedule.next_at(0b110),
        }
    }
    for (packet, at) in (0u64..).zip(at) {
        assert_eq!(at, Time::ZERO + rate.transmit(packet.saturating_sub(2) * 1_500));
    }
    assert_eq!((sent[1], sent[2]), (1_000, 3_000));
}

/// A queue at its own greatest rate waits for that, and the port for its own: 10 Gbps of 25, the rest for the other.
#[test]
fn rates_of_a_port_and_of_a_queue_both_hold() {
    let mut rates = [Rates::default(); CLASSES];
    rates[3].max = Some((Rate::from_gbps(10), 1_500));
    let levels = vec![by_bytes(&[(3, 1)]), by_bytes(&[(0, 1)])];
    let mut schedule = Schedule::new(levels, rates, Some((Rate::from_gbps(25), 1_500)));
    let (mut now, mut sent) = (Time::ZERO, [0u64; CLASSES]);
    while now < Time::from_ms(1) {
        match schedule.pick(now, 1 << 3 | 1, |_| 1_500) {
            Some(queue) => {
                schedule.sent(now, queue, 1_500);
                sent[usize::from(queue)] += 1_500;
            }
            None => now = schedule.next_at(1 << 3 | 1),
        }
    }
    assert!(sent[3].abs_diff(1_250_000) <= 2 * 1_500 && sent[0].abs_diff(1_875_000) <= 2 * 1_500, "{sent:?}");
    // With the other queue idle the port is not full, and the queue still has its own rate.
    assert_eq!(schedule.pick(now, 1 << 3, |_| 1_500), None);
    assert!(schedule.next_at(1 << 3) > now);
}

/// A least rate in a level takes nothing from the weights of the others: 10 of 100 Gbps, and 90 by 1 : 2.
#[test]
fn a_least_rate_leaves_weights_alone() {
    let mut rates = [Rates::default(); CLASSES];
    rates[0].min = Rate::from_gbps(10);
    let level = Level { queues: vec![(1, 4), (2, 8), (0, 1)], unit: Unit::Packets };
    let mut schedule = Schedule::new(vec![level], rates, None);
    let (mut now, mut sent) = (Time::ZERO, [0u64; CLASSES]);
    for _ in 0..13_000 {
        let queue = schedule.pick(now, 0b111, |_| 1_000).unwrap();
        schedule.sent(now, queue, 1_000);
        sent[usize::from(queue)] += 1;
        now += Rate::from_gbps(100).transmit(1_000);
    }
    assert!(sent[2].abs_diff(2 * sent[1]) <= 8 && sent[0].abs_diff(1_300) <= 2, "{sent:?}");
}

/// A queue of the last level gets its least rate from a port that the first level would fill.
#[test]
fn the_least_rate_comes_first() {
    let (port, least) = (Rate::from_gbps(100), Rate::from_gbps(10));
    let mut rates = [Rates::default(); CLASSES];
    rates[0].min = least;
    let mut schedule = Schedule::new(vec![by_bytes(&[(7, 1)]), by_bytes(&[(0, 1)])], rates, None);
    let (mut now, mut sent) = (Time::ZERO, [0u64; 2]);
    for _ in 0..10_000 {
        let queue = schedule.pick(now, 1 << 7 | 1, |_| 1_000).unwrap();
        schedule.sent(now, queue, 1_000);
        sent[usize::from(queue == 0)] += 1;
        now += port.transmit(1_000);
    }
    assert!(sent[1].abs_diff(1_000) <= 1, "{sent:?}");
}
