use node::Walk;
use testing::walks::check_moved;
use units::Duration;

use super::*;

/// Queues in which so many headers go before each data packet.
fn queues_of(headers_per_packet: u16) -> TrimmingQueues {
    let params = Params {
        transport: 0,
        data_bytes_max: 12_000,
        headers_bytes_max: 12_000,
        header_bytes: 40,
        headers_per_packet,
        marks_last_hop: true,
        send_back: None,
        trimmed_last_hop: None,
    };
    let mut queues = TrimmingQueues::new(params, [true, false]);
    queues.ports[1].turn = 3;
    queues
}

fn queues() -> TrimmingQueues {
    queues_of(10)
}

fn visit_all(queues: &mut TrimmingQueues, walk: &mut Walk) {
    node::State::visit(queues, walk, &());
}

#[test]
fn its_walk_moves_counters() {
    let pass = |queues: &mut TrimmingQueues, _| {
        queues.returned += 2;
        queues.headers_lost += 3;
    };
    check_moved(&[], Duration::from_ns(7), queues, visit_all, pass, QueueDiscipline::counters);
}

/// Where headers always go first, only a port that has sent very many of them lets data go before.
#[test]
fn its_walk_moves_turns_that_are_far_from_over() {
    let pass = |queues: &mut TrimmingQueues, _| queues.ports[1].turn += 100;
    let all = || queues_of(u16::MAX);
    check_moved(&[], Duration::from_ns(7), all, visit_all, pass, |queues| queues.ports[1].turn);
    let notes = |queues: &mut TrimmingQueues| testing::walks::notes(testing::walks::NOW, &[], queues, visit_all);
    let found = |change: fn(&mut TrimmingQueues)| {
        let mut after = all();
        change(&mut after);
        node::walk::recurrence(&notes(&mut all()), &notes(&mut after)).map(|found| found.most).ok()
    };
    // From 3 up by 100, to 103: the next 654 times it stays below 65,535.
    assert_eq!(found(|queues| queues.ports[1].turn += 100), Some(654));
    assert_eq!(found(|_| ()), Some(u64::MAX));
    assert_eq!(found(|queues| queues.ports[1].data_turns += 1), None);
    assert_eq!(found(|queues| queues.ports[1].turn = 2), None);
}
