use node::Clock;
use node::Walk;
use proptest::prelude::*;
use testing::walks::{NOW, check_moved};
use units::{Duration, FlowId, HostId};

use super::*;

fn site() -> EndpointParams {
    EndpointParams {
        host: HostId(0),
        hosts: 2,
        nic_rate: Rate::from_gbps(25),
        data_rtt: Duration::from_us(20),
        data_rtts: Vec::new(),
        control_rtt: Duration::from_us(20),
        mtu_bytes: 1500,
        header_bytes: 40,
        clock: Clock::default(),
        transport: 0,
    }
}

fn packet(number: u32, bytes: u16) -> Packet {
    let mut packet = Packet::bare(FlowId(number), HostId(0), HostId(1));
    packet.wire_bytes = bytes;
    packet
}

/// A limiter with two packets that wait for tokens.
fn waiting() -> RateLimiter {
    let mut bucket = TokenBucket::new(Rate::from_gbps(5), Bytes(1_500));
    assert!(bucket.take(NOW, 1_500));
    let queue = [packet(1, 1_500), packet(2, 1_500)].into();
    RateLimiter { bucket, queue, queue_packets: 10, seen: NOW, passed: 4, dropped: 1 }
}

/// In each period a packet passes and another comes.
#[test]
fn its_walk_moves_times_and_counters() {
    let period = Duration::from_ns(2_400);
    let pass = move |limiter: &mut RateLimiter, now| {
        limiter.wake(now + period);
        assert!(limiter.bucket.take(now + period, 1_500));
        (limiter.passed, limiter.dropped) = (limiter.passed + 1, limiter.dropped + 2);
    };
    let see = |limiter: &RateLimiter| (limiter.bucket.clone(), limiter.seen, limiter.passed, limiter.dropped);
    let walk = |limiter: &mut RateLimiter, walk: &mut Walk| node::State::visit(limiter, walk, &());
    check_moved(&[node::walk::visit_words], period, waiting, walk, pass, see);
}

#[test]
fn a_backlogged_host_sends_exactly_its_rate() {
    let mut limiter = Config::default().limiter(&site(), Rate::from_gbps(5));
    let mut sent = Vec::new();
    let mut now = Time::ZERO;
    for number in 0..100 {
        limiter.enqueue(now, packet(number, 1500));
    }
    while now < Time::MAX {
        while let Some(packet) = limiter.poll_transmit(now) {
            sent.push((now, packet.flow.0));
        }
        now = limiter.poll_at();
        limiter.wake(now);
    }
    // 1500 bytes take 2.4 us at 5 Gbps; the first had its tokens.
    assert_eq!(sent, (0..100).map(|n| (Time::from_ns(2_400 * u64::from(n)), n)).collect::<Vec<_>>());
}

#[test]
fn asks_to_be_woken_only_later_than_now() {
    let mut limiter = Config::default().limiter(&site(), Rate::from_gbps(5));
    (0..3).for_each(|number| assert!(limiter.enqueue(Time::from_us(7), packet(number, 1500))));
    assert_eq!(limiter.poll_at(), Time::MAX, "it may go as soon as the NIC is free");
    assert!(limiter.poll_transmit(Time::from_us(8)).is_some());
    assert_eq!(limiter.poll_at(), Time::from_ns(10_400));
    limiter.wake(Time::from_ns(10_400));
    assert_eq!(limiter.poll_at(), Time::MAX);
}

#[test]
fn what_finds_the_queue_full_is_dropped() {
    let mut limiter = Config { queue_packets: 3, ..Config::default() }.limiter(&site(), Rate::from_gbps(5));
    (0..5).for_each(|number| assert_eq!(limiter.enqueue(Time::ZERO, packet(number, 1500)), number < 3));
    assert_eq!(limiter.counters(), vec![("limiter_passed_packets", 0), ("limiter_dropped_packets", 2)]);
    assert_eq!(limiter.poll_transmit(Time::ZERO).map(|p| p.flow), Some(FlowId(0)));
    assert_eq!(limiter.poll_transmit(Time::ZERO), None);
}

#[test]
fn senseless_settings_are_refused_by_name() {
    assert_eq!(Config { burst: Some(Bytes(0)), ..Config::default() }.check().unwrap_err().key, "burst");
    assert_eq!(Config { queue_packets: 0, ..Config::default() }.check().unwrap_err().key, "queue_packets");
    assert_eq!(Config::default().check(), Ok(()));
}

proptest! {
    #[test]
    fn packets_in_are_packets_out_queued_or_dropped(
        bps in 1_000_000u64..25_000_000_000,
        steps in prop::collection::vec((0u64..5_000_000, 64u16..=1500, 0u8..4), 1..80),
    ) {
        let mut limiter = Config { queue_packets: 5, ..Config::default() }.limiter(&site(), Rate::from_bps(bps));
        let (mut now, mut entered, mut left) = (Time::ZERO, 0, Vec::new());
        for (gap, bytes, pulls) in steps {
            now += Duration::from_ps(gap);
            limiter.enqueue(now, packet(entered, bytes));
            entered += 1;
            left.extend((0..pulls).filter_map(|_| limiter.poll_transmit(now)));
        }
        let mut queued = 0;
        while now < Time::MAX {
            while let Some(packet) = limiter.poll_transmit(now) {
                left.push(packet);
                queued += 1;
            }
            now = limiter.poll_at();
        }
        prop_assert!(queued <= 5 && left.windows(2).all(|pair| pair[0].flow < pair[1].flow));
        let dropped = limiter.counters()[1].1;
        prop_assert_eq!(u64::from(entered), left.len() as u64 + dropped);
    }
}
