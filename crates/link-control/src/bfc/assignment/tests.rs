use std::collections::{BTreeMap, VecDeque};

use super::*;

const STICKY: Duration = Duration::from_us(2);

fn random() -> Stream {
    Stream::new(1, 0, "test")
}

#[test]
fn a_flow_keeps_its_queue_for_a_while() {
    let mut port = Assignment::new(4, Departures::default());
    let queue = port.assign(Time::ZERO, 9, STICKY, &mut random());
    port.left(Time::from_us(1), 9, queue, true);
    let other = port.assign(Time::from_us(1), 5, STICKY, &mut random());
    assert_ne!(other, queue);
    assert_eq!(port.assign(Time::from_us(3), 9, STICKY, &mut random()), queue);
    port.left(Time::from_us(3), 9, queue, true);
    assert_ne!(port.assign(Time::from_us(6), 9, STICKY, &mut random()), queue);
}

#[test]
fn an_empty_queue_that_may_not_send_is_second_choice() {
    let mut port = Assignment::new(2, Departures::default());
    assert!(port.set_paused(0, true) && !port.set_paused(2, true));
    assert_eq!([7, 8].map(|vfid| port.assign(Time::ZERO, vfid, STICKY, &mut random())), [1, 0]);
    assert_eq!((port.alone, port.shared), (2, 0));
    assert!(port.assign(Time::ZERO, 9, STICKY, &mut random()) < 2);
    assert_eq!((port.alone, port.shared), (2, 1));
}

#[test]
fn the_published_program_shares_at_random() {
    for (departures, sharing) in [(vec![], 1), (vec![Departure::RandomSharing], 2)] {
        let mut port = Assignment::new(2, departures.into_iter().collect());
        let mut random = random();
        // Both queues keep packets; another flow comes and goes.
        for vfid in [0, 1] {
            port.assign(Time::ZERO, vfid, STICKY, &mut random);
        }
        let mut seen = std::collections::BTreeSet::new();
        for at in 1..=64 {
            let queue = port.assign(Time::from_us(10 * at), 9, STICKY, &mut random);
            port.left(Time::from_us(10 * at), 9, queue, false);
            seen.insert(queue);
        }
        assert_eq!((seen.len(), port.shared), (sharing, 64));
    }
}

#[test]
fn the_published_program_overlooks_pauses_of_queues_without_a_flow() {
    let mut port = Assignment::new(3, Departures::published());
    let mut random = random();
    assert_eq!(port.assign(Time::ZERO, 7, STICKY, &mut random), 0);
    port.left(Time::ZERO, 7, 0, true);
    // The first queue is paused and still assigned to flow 7: another flow takes the second.
    port.set_paused(0, true);
    assert_eq!(port.assign(Time::ZERO, 8, STICKY, &mut random), 1);
    // Flow 7 returns late, to the third queue. The first is still paused and assigned to no flow.
    assert_eq!(port.assign(Time::from_us(9), 7, STICKY, &mut random), 2);
    assert_eq!(port.assign(Time::from_us(9), 9, STICKY, &mut random), 0);
}

#[test]
fn the_published_program_shares_though_an_empty_queue_is_paused() {
    let mut port = Assignment::new(2, [Departure::FirstQueue].into_iter().collect());
    let mut random = random();
    port.assign(Time::ZERO, 7, STICKY, &mut random);
    port.left(Time::ZERO, 7, 0, true);
    port.set_paused(0, true);
    assert_eq!(port.assign(Time::ZERO, 8, STICKY, &mut random), 1);
    // BFC itself would choose the empty queue.
    assert_eq!((port.assign(Time::ZERO, 9, STICKY, &mut random), port.shared), (1, 1));
}

proptest::proptest! {
    /// A model of one port: an arriving flow never shares a queue while one is empty, and its packets are never in
    /// two queues.
    #[test]
    fn no_queue_is_shared_while_one_is_empty(
        queues in 1u32..=8,
        published in proptest::bool::ANY,
        steps in proptest::collection::vec((0u16..12, proptest::bool::ANY), 1..300),
    ) {
        let departures = if published { Departures::published() } else { Departures::default() };
        let (mut port, mut random) = (Assignment::new(queues, departures), random());
        let mut waiting: BTreeMap<u32, VecDeque<u16>> = (0..queues).map(|queue| (queue, VecDeque::new())).collect();
        for (step, (vfid, comes)) in steps.into_iter().enumerate() {
            let now = Time::from_us(step as u64);
            if comes {
                let known = waiting.iter().find(|(_, flows)| flows.contains(&vfid)).map(|of| *of.0);
                let empty = waiting.values().any(VecDeque::is_empty);
                let queue = port.assign(now, vfid, Duration::ZERO, &mut random);
                match known {
                    Some(known) => proptest::prop_assert_eq!(queue, known),
                    None => proptest::prop_assert_eq!(waiting[&queue].is_empty(), empty),
                }
                waiting.get_mut(&queue).unwrap().push_back(vfid);
            } else if let Some((&queue, flows)) = waiting.iter_mut().find(|of| !of.1.is_empty()) {
                let vfid = flows.pop_front().unwrap();
                port.left(now, vfid, queue, flows.is_empty());
            }
        }
    }
}
