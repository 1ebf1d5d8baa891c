use proptest::prelude::*;

use super::*;

fn label(priority: u64, flow: u32) -> Label {
    Label { priority, flow: (FlowId(flow), HostId(0)), bytes: 1 }
}

/// Offers a packet as a switch does; those that are lost.
fn offer<T: Copy>(queue: &mut Queue<T>, label: Label, packet: T) -> Vec<T> {
    let mut lost = Vec::new();
    loop {
        match queue.offer(label) {
            Offer::Fits => {
                queue.push(label, packet);
                return lost;
            }
            Offer::Evicts(victim) => lost.push(victim),
            Offer::Loses => {
                lost.push(packet);
                return lost;
            }
        }
    }
}

#[test]
fn the_first_packet_of_the_flow_with_the_least_goes_first() {
    // Section 4.1's example of starvation: a flow's later packets have smaller numbers.
    let mut queue = Queue::new(10);
    for (packet, (flow, priority)) in [(1, 9), (2, 7), (1, 6), (1, 3), (2, 4)].into_iter().enumerate() {
        assert!(offer(&mut queue, label(priority, flow), packet).is_empty());
    }
    assert_eq!(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(), [0, 2, 3, 1, 4]);
}

#[test]
fn small_packets_make_room_for_a_large_one_only_as_far_as_they_are_less_urgent() {
    let mut queue = Queue::new(4);
    for (packet, priority) in [8, 1, 9, 7].into_iter().enumerate() {
        offer(&mut queue, label(priority, packet as u32), packet);
    }
    let large = |priority| Label { bytes: 3, ..label(priority, 9) };
    // For 3 bytes of number 5, the three greater ones go, the greatest first.
    assert_eq!(offer(&mut queue, large(5), 4), [2, 0, 3]);
    assert_eq!(offer(&mut queue, large(5), 5), [5]);
    assert_eq!((queue.bytes(), queue.pop(), queue.pop(), queue.pop()), (4, Some(1), Some(4), None));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..Default::default() })]

    /// Of packets of one size that were offered and have not left, it holds the most urgent; what leaves is the
    /// first of its flow; and the flow that it is of has the most urgent of all.
    #[test]
    fn the_most_urgent_of_all_that_were_offered_are_there(
        steps in proptest::collection::vec((0u64..50, 0u32..5, any::<bool>()), 1..200),
        room in 1u32..20,
    ) {
        let mut queue = Queue::new(room);
        // Number and flow, in the order of arrival; a packet's name is when it came.
        let mut model: Vec<(u64, usize, u32)> = Vec::new();
        for (now, (priority, flow, leaves)) in steps.into_iter().enumerate() {
            offer(&mut queue, label(priority, flow), now);
            model.push((priority, now, flow));
            if model.len() > room as usize {
                let worst = *model.iter().max().unwrap();
                model.retain(|packet| *packet != worst);
            }
            let mut held: Vec<usize> = queue.packets.iter().map(|(_, packet)| *packet).collect();
            held.sort_unstable();
            let mut expected: Vec<usize> = model.iter().map(|packet| packet.1).collect();
            expected.sort_unstable();
            prop_assert_eq!(held, expected);
            if leaves {
                let urgent = model.iter().min().unwrap().2;
                let first = model.iter().filter(|packet| packet.2 == urgent).map(|packet| packet.1).min();
                prop_assert_eq!(queue.pop(), first);
                model.retain(|packet| Some(packet.1) != first);
            }
        }
    }
}
