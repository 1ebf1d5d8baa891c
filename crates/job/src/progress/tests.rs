use units::Duration;

use super::*;
use crate::Builder;

/// A host for each rank.
fn apart(ranks: u32) -> Arc<Placement> {
    let (rate, delay) = (Rate::from_gbps(8), Duration::from_us(1));
    Arc::new(Placement { host_of: (0..ranks).map(HostId).collect(), rate, delay })
}

fn us(time: u64) -> Time {
    Time::ZERO + Duration::from_us(time)
}

/// Rank 0 computes, sends, and computes again when the answer is there.
fn ping_pong() -> Arc<Graph> {
    let mut b = Builder::new(2);
    let first = b.compute(Rank(0), Duration::from_us(5), &[]);
    let (_, asked) = b.message((Rank(0), Rank(1)), 100, (0, 0), &[first], &[]);
    let think = b.compute(Rank(1), Duration::from_us(2), &[asked]);
    let (_, answered) = b.message((Rank(1), Rank(0)), 100, (0, 0), &[think], &[]);
    b.compute(Rank(0), Duration::from_us(1), &[answered]);
    Arc::new(b.build().expect("sound"))
}

#[test]
fn ranks_on_two_hosts_wait_for_each_others_messages() {
    let graph = ping_pong();
    let mut zero = Progress::new(Arc::clone(&graph), apart(graph.ranks()), &[Rank(0)]);
    let mut one = Progress::new(Arc::clone(&graph), apart(graph.ranks()), &[Rank(1)]);
    let mut out = Vec::new();
    zero.begin(us(0), &mut out);
    one.begin(us(0), &mut out);
    assert_eq!((zero.next_at(), one.next_at(), out.len()), (us(5), Time::MAX, 0));
    zero.wake(us(5), &mut out);
    assert_eq!(std::mem::take(&mut out), [MessageId(0)]);
    one.arrived(MessageId(0), us(9), &mut out);
    assert_eq!(one.next_at(), us(11));
    one.wake(us(11), &mut out);
    assert_eq!(std::mem::take(&mut out), [MessageId(1)]);
    zero.sent(MessageId(0), us(10), &mut out);
    zero.arrived(MessageId(1), us(15), &mut out);
    zero.wake(us(16), &mut out);
    one.sent(MessageId(1), us(17), &mut out);
    assert_eq!((zero.left(), one.left(), out.len()), (0, 0, 0));
    let done: Vec<_> = zero.done().iter().map(|done| (done.begin, done.end)).collect();
    assert_eq!(done, [(us(0), us(5)), (us(15), us(16))]);
}

#[test]
fn a_message_that_comes_early_is_kept() {
    let mut b = Builder::new(2);
    let first = b.compute(Rank(1), Duration::from_us(5), &[]);
    let (_, received) = b.message((Rank(0), Rank(1)), 100, (0, 0), &[], &[first]);
    b.compute(Rank(1), Duration::from_us(2), &[received]);
    let mut one = Progress::new(Arc::new(b.build().expect("sound")), apart(2), &[Rank(1)]);
    let mut out = Vec::new();
    one.begin(us(0), &mut out);
    one.arrived(MessageId(0), us(1), &mut out);
    assert_eq!(one.next_at(), us(5));
    one.wake(us(5), &mut out);
    assert_eq!((one.next_at(), one.left()), (us(7), 1));
}

#[test]
fn a_rank_does_one_computation_at_a_time_in_the_order_in_which_they_could_begin() {
    let mut b = Builder::new(2);
    b.compute(Rank(0), Duration::from_us(4), &[]);
    b.compute(Rank(0), Duration::from_us(3), &[]);
    let late = b.delay(Rank(0), Duration::from_us(1), &[]);
    b.compute(Rank(0), Duration::from_us(2), &[late]);
    b.compute(Rank(1), Duration::from_us(1), &[]);
    let graph = Arc::new(b.build().expect("sound"));
    let mut both = Progress::new(graph, apart(2), &[Rank(0), Rank(1)]);
    let mut out = Vec::new();
    both.begin(us(0), &mut out);
    while both.next_at() < Time::MAX {
        both.wake(both.next_at(), &mut out);
    }
    let done: Vec<_> = both.done().iter().map(|done| (done.step.0, done.begin, done.end)).collect();
    assert_eq!(done, [(4, us(0), us(1)), (0, us(0), us(4)), (1, us(4), us(7)), (3, us(7), us(9))]);
    assert_eq!(both.left(), 0);
}

#[test]
fn messages_within_a_host_share_their_ranks_link() {
    let mut b = Builder::new(3);
    // 1 kB takes 1 us on the link of 8 Gbps, and 1 us more until it is there.
    let (_, first) = b.message((Rank(0), Rank(1)), 1_000, (0, 0), &[], &[]);
    let (_, second) = b.message((Rank(0), Rank(1)), 1_000, (0, 0), &[], &[]);
    b.compute(Rank(1), Duration::from_us(5), &[first, second]);
    b.message((Rank(0), Rank(2)), 1_000, (0, 0), &[], &[]);
    let placement = Placement { host_of: vec![HostId(0), HostId(0), HostId(1)], ..(*apart(3)).clone() };
    let mut here = Progress::new(Arc::new(b.build().expect("sound")), Arc::new(placement), &[Rank(0), Rank(1)]);
    let mut out = Vec::new();
    here.begin(us(0), &mut out);
    assert_eq!(out, [MessageId(2)], "only what leaves the host");
    while here.next_at() < Time::MAX {
        here.wake(here.next_at(), &mut out);
    }
    let done: Vec<_> = here.done().iter().map(|done| (done.begin, done.end)).collect();
    assert_eq!(done, [(us(0), us(2)), (us(1), us(3)), (us(3), us(8))]);
    assert_eq!(here.left(), 1, "the send to the other host");
}

#[test]
fn messages_of_a_connection_leave_one_after_the_other_in_the_order_in_which_they_are_due() {
    let mut b = Builder::new(2);
    let connection = b.connection();
    let late = b.delay(Rank(0), Duration::from_us(2), &[]);
    for after in [&[late][..], &[], &[]] {
        b.message((Rank(0), Rank(1)), 1_000, (0, 0), after, &[]);
        b.over(connection);
    }
    b.message((Rank(0), Rank(1)), 1_000, (0, 0), &[], &[]);
    let mut zero = Progress::new(Arc::new(b.build().expect("sound")), apart(2), &[Rank(0)]);
    let mut out = Vec::new();
    zero.begin(us(0), &mut out);
    assert_eq!(std::mem::take(&mut out), [MessageId(1), MessageId(3)], "one of the connection, and what is on none");
    zero.wake(us(2), &mut out);
    assert_eq!(out, [], "the connection is busy");
    zero.left_host(MessageId(1), us(2), &mut out);
    assert_eq!(std::mem::take(&mut out), [MessageId(2)], "was due before the delayed one");
    zero.left_host(MessageId(2), us(2), &mut out);
    zero.left_host(MessageId(0), us(2), &mut out);
    assert_eq!(out, [MessageId(0)]);
}
