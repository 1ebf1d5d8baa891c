use std::collections::VecDeque;

use units::{FlowId, HostId};

use super::*;

#[test]
fn a_link_gives_packets_back_in_order_with_their_times() {
    let mut pool = Pool::default();
    let packet = Packet::bare(FlowId(0), HostId(0), HostId(1));
    let ids: Vec<PacketId> = (0..3).map(|_| pool.insert(packet, Transit::default())).collect();
    let mut flight = Flight::default();
    assert_eq!((flight.next_at(), flight.pop(&pool)), (Time::MAX, None));
    let alone: Vec<bool> = ids.iter().zip(1..).map(|(&id, ns)| flight.push(&mut pool, id, Time::from_ns(ns))).collect();
    assert_eq!(alone, [true, false, false]);
    assert_eq!(flight.iter(&pool).collect::<Vec<_>>(), ids);
    for (&id, ns) in ids.iter().zip(1..) {
        assert_eq!((flight.next_at(), flight.pop(&pool)), (Time::from_ns(ns), Some(id)));
    }
    assert_eq!(flight.next_at(), Time::MAX);
    assert!(flight.push(&mut pool, ids[0], Time::from_ns(9)));
}

proptest::proptest! {
    /// Checks two queues in one pool against two deques.
    #[test]
    fn queues_through_the_pool_behave_as_deques(steps in proptest::collection::vec((0usize..2, 0u8..5), 1..300)) {
        let mut pool = Pool::default();
        let mut queues = [Fifo::default(); 2];
        let mut models = [VecDeque::new(), VecDeque::new()];
        for (number, (which, what)) in steps.into_iter().enumerate() {
            let (queue, model) = (&mut queues[which], &mut models[which]);
            let taken = match what {
                0 | 1 => {
                    let packet = Packet::bare(FlowId(number as u32), HostId(0), HostId(1));
                    let id = pool.insert(packet, Transit::default());
                    queue.push(&mut pool, id);
                    model.push_back(number as u32);
                    continue;
                }
                2 => (queue.pop(&pool), model.pop_front()),
                3 => {
                    let middle = queue.iter(&pool).nth(model.len() / 2);
                    middle.into_iter().for_each(|id| queue.remove(&mut pool, id));
                    (middle, model.remove(model.len() / 2))
                }
                _ => (queue.pop_last(&mut pool), model.pop_back()),
            };
            let flow = taken.0.map(|id| pool.remove(id).packet.flow.0);
            proptest::prop_assert_eq!(flow, taken.1);
            proptest::prop_assert_eq!(queue.is_empty(), model.is_empty());
            proptest::prop_assert_eq!(pool.len(), models[0].len() + models[1].len());
        }
    }
}

#[test]
fn the_time_from_head_to_tail_is_never_too_short_and_too_long_by_a_rounding_only() {
    let times = (0..57).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, (1 << bit) + 1, 24_000_000_001 >> (bit % 9)]);
    for ps in times.filter(|&ps| ps <= 1 << 56) {
        let kept = TailLag::of(Duration::from_ps(ps)).time().ps();
        let most = if ps < 1 << 31 { ps } else { ps + (ps >> 24) };
        assert!((ps..=most).contains(&kept), "{kept} for {ps}");
    }
    assert_eq!(TailLag::of(Duration::from_ps(u64::MAX)).time().ps(), ((1 << 26) - 1) << 31);
}
