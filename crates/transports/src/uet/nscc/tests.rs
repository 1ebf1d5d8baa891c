//! The window at the reference: 12 us at 100 Gbps, 150,000 B in flight at most and half as much again in the window;
//! packets of 4,000 B, all of it payload; a target of 9 us.

use proptest::prelude::*;
use testing::walks::{NOW, check_moved};
use units::FlowId;

use super::*;

const RTT: Duration = Duration::from_us(12);
const MTU: u64 = 4_000;
const MAX: u64 = 225_000;

fn gains() -> Gains {
    Gains::new(Rate::from_gbps(100), MTU, MTU, RTT, Duration::from_us(9))
}

fn at(us: u64) -> Time {
    Time::from_us(us)
}

/// A window of so many bytes, since time 0.
fn window(bytes: u64) -> Window {
    Window::new(&gains().with(Some(bytes), true), Time::ZERO)
}

fn rtt(delay: Duration) -> Option<Duration> {
    Some(RTT + delay)
}

#[test]
fn it_begins_at_one_and_a_half_bandwidth_delay_products() {
    assert_eq!(Window::new(&gains(), Time::ZERO).bytes, MAX);
    // A shorter round trip than the network's longest has a smaller product.
    let mut window = Window::new(&gains(), Time::ZERO);
    window.acked(&gains(), at(8), Some(Duration::from_us(8)), false, MTU, 0);
    assert_eq!(window.bytes, 150_000);
}

#[test]
fn without_a_mark_below_the_target_it_grows_by_how_far_it_is_below() {
    let grown = |delay| {
        let mut window = window(80_000);
        // More than eight packets: what they gain is applied at once.
        window.acked(&gains(), at(1), rtt(Duration::from_us(delay)), false, 40_000, 0);
        window.bytes - 80_000
    };
    // 4 packets a target's worth of bytes: 4 x 4,000 B x 40,000 / 12 us x (9 us - delay) / 80,000.
    assert_eq!([grown(3), grown(6), grown(8)], [4_000, 2_000, 666]);
}

#[test]
fn without_a_mark_at_the_target_or_above_all_grow_alike() {
    let grown = |delay, bytes| {
        let mut window = window(bytes);
        window.acked(&gains(), at(1), rtt(Duration::from_us(delay)), false, 40_000, 0);
        window.bytes - bytes
    };
    // Five packets a window's worth of bytes.
    assert_eq!([grown(9, 80_000), grown(30, 80_000)], [10_000, 10_000]);
    assert_eq!(grown(9, 40_000), 20_000);
}

#[test]
fn a_mark_below_the_target_changes_nothing() {
    let mut window = window(80_000);
    for _ in 0..5 {
        window.acked(&gains(), at(1), rtt(Duration::from_us(8)), true, 40_000, 0);
    }
    assert_eq!(window.bytes, 80_000);
}

#[test]
fn a_mark_above_the_target_shrinks_it_once_a_round_trip_by_the_mean_delay() {
    let mut window = window(80_000);
    // The mean is behind: nothing yet, but for an eta a round trip, 0.15 of a packet.
    window.acked(&gains(), at(13), rtt(Duration::from_us(36)), true, MTU, 0);
    assert_eq!(window.bytes, 80_600);
    window.mean_delay.ps = 18e6;
    // Half of the mean is beyond the target, of which 0.8 count; the sample of 18 us changes no mean.
    window.acked(&gains(), at(14), rtt(Duration::from_us(18)), true, MTU, 0);
    assert_eq!(window.bytes, 48_360);
    window.acked(&gains(), at(26), rtt(Duration::from_us(18)), true, MTU, 0);
    // No second decrease within a round trip.
    assert_eq!(window.bytes, 48_360 + 600);
    window.mean_delay.ps = 1e9;
    window.acked(&gains(), at(27), rtt(Duration::from_us(1_000)), true, MTU, 0);
    // By half at the most.
    assert_eq!(window.bytes, 24_480);
}

#[test]
fn a_whole_window_without_delay_makes_it_grow_fast() {
    let mut window = window(40_000);
    for _ in 0..10 {
        window.acked(&gains(), at(1), rtt(Duration::ZERO), false, MTU, 0);
    }
    // All of a window: not more than one yet. After eight packets, and one, what was gained is applied.
    let slow = 40_000 + (9.0 * 4.0 * 4_000.0 * 0.75 * 4_000.0 / 40_000.0) as u64;
    assert_eq!(window.bytes, slow);
    for _ in 0..10 {
        window.acked(&gains(), at(1), rtt(Duration::ZERO), false, MTU, 0);
    }
    // A quarter of what arrives, from the packet on that goes beyond the window.
    assert!(window.fast && (window.bytes - slow) % 1_000 < 1_000 && window.bytes > slow + 3_000, "{}", window.bytes);
    let before = window.bytes;
    window.acked(&gains(), at(1), rtt(Duration::ZERO), false, MTU, 0);
    assert_eq!(window.bytes, before + 1_000);
    window.acked(&gains(), at(1), rtt(NO_DELAY), false, MTU, 0);
    assert!(!window.fast);
}

#[test]
fn a_trimmed_packet_takes_its_size_and_where_little_has_arrived_the_window_adapts_at_once() {
    let mut window = window(200_000);
    window.trimmed(&gains(), at(1), RTT, MTU, false, 200_000);
    assert_eq!(window.bytes, 196_000);
    // What receivers see to by credit is not counted twice.
    window.trimmed(&gains(), at(1), RTT, MTU, true, 200_000);
    assert_eq!(window.bytes, 196_000);
    // 12,000 B have arrived in the round trip that began at 1 us and lasts for 21: less than an eighth of the greatest.
    window.acked(&gains(), at(10), rtt(Duration::ZERO), false, 12_000, 100_000);
    let before = window.bytes;
    window.trimmed(&gains(), at(22), RTT, MTU, false, 100_000);
    assert_eq!(window.bytes, before - MTU);
    window.trimmed(&gains(), at(23), RTT, MTU, false, 100_000);
    assert_eq!(window.bytes, 12_000);
    // Until the 100,000 B are answered, trims and marks are old news.
    for _ in 0..24 {
        window.trimmed(&gains(), at(24), RTT, MTU, false, 100_000);
    }
    assert_eq!(window.bytes, 12_000);
    window.trimmed(&gains(), at(24), RTT, MTU, false, 100_000);
    window.trimmed(&gains(), at(24), RTT, MTU, false, 100_000);
    assert!(window.bytes < 12_000);
    // Where it is off, a trimmed packet is worth its size alone.
    let off = gains().with(None, false);
    let mut window = Window::new(&off, Time::ZERO);
    for time in [1, 30, 60] {
        window.trimmed(&off, at(time), RTT, MTU, false, 100_000);
    }
    assert_eq!(window.bytes, MAX - 3 * MTU);
}

proptest! {
    #[test]
    fn it_stays_between_a_packet_and_its_greatest(
        signals in proptest::collection::vec((0u64..20, 0u64..200, any::<bool>(), 0u64..100_000, 0u8..4), 1..200)
    ) {
        let gains = gains();
        let mut window = Window::new(&gains, Time::ZERO);
        let mut now = Time::ZERO;
        for (pause, delay, marked, bytes, kind) in signals {
            now += Duration::from_us(pause);
            let rtt = Duration::from_us(5 + delay);
            match kind {
                0 => window.trimmed(&gains, now, rtt, bytes, marked, bytes),
                1 => window.lost(&gains, bytes),
                _ => window.acked(&gains, now, (kind == 2).then_some(rtt), marked, bytes, bytes),
            }
            prop_assert!((MTU..=MAX).contains(&window.bytes), "{}", window.bytes);
        }
    }
}

const FLOW: FlowId = FlowId(3);

/// A window in the middle of everything.
fn busy() -> Window {
    Window {
        bytes: 100_000,
        max: MAX,
        base_rtt: RTT,
        mean_delay: Mean { ps: 5e6, last_ps: 4e6, samples: 90, others: 3 },
        gained: 7e5,
        since_adjusted: 8_000,
        adjusted_at: NOW - RTT / 2,
        decreased_at: NOW - RTT / 3,
        undelayed: 12_000,
        fast: false,
        quick: QuickAdapt {
            achieved: 20_000,
            ends_at: Some(NOW + RTT / 2),
            asked: false,
            ignore: 50_000,
            ignored: 30_000,
        },
    }
}

impl Window {
    /// The same, so much later.
    pub fn later(mut self, by: Duration) -> Window {
        (self.adjusted_at, self.decreased_at) = (self.adjusted_at + by, self.decreased_at + by);
        self.quick.ends_at = self.quick.ends_at.map(|at| at + by);
        self
    }
}

fn visit(window: &mut Window, walk: &mut Walk, gains: &Gains) {
    walk.flow = FLOW;
    node::State::visit(window, walk, gains);
}

fn visit_of(mean: &mut Mean, walk: &mut Walk, flow: FlowId) {
    walk.flow = flow;
    node::State::visit(mean, walk, &());
}

/// What is not compared with anything goes on growing.
#[test]
fn its_walk_moves_times_and_what_grows() {
    let period = Duration::from_us(1);
    let make = || {
        let mut window = Window { fast: true, ..busy() };
        (window.quick.ignore, window.quick.ignored) = (0, 30_000);
        window
    };
    let pass = |window: &mut Window, _| {
        *window = window.clone().later(Duration::from_us(1));
        (window.undelayed, window.quick.ignored) = (window.undelayed + MTU, window.quick.ignored + MTU);
        window.quick.achieved += MTU;
    };
    let see = |window: &Window| format!("{window:?}");
    let without = gains().with(None, false);
    check_moved(&[], period, make, |window, walk| visit(window, walk, &without), pass, see);
}

/// Delays that stay are added as often as they came; those that change have brought the mean back to where it was.
#[test]
fn its_walk_moves_the_mean() {
    let (period, flow) = (Duration::from_us(1), FLOW);
    let mean = || Mean { ps: 5e6, last_ps: 4e6, samples: 90, others: 3 };
    let walk = move |mean: &mut Mean, walk: &mut Walk| visit_of(mean, walk, flow);
    let see = |mean: &Mean| format!("{mean:?}");
    let stays = |mean: &mut Mean, _| (0..3).for_each(|_| mean.add(4e6));
    check_moved(&[], period, mean, walk, stays, see);
    let changes = |mean: &mut Mean, _| {
        let before = mean.ps;
        mean.add(3e6);
        mean.add(4e6);
        mean.ps = before;
    };
    check_moved(&[], period, mean, walk, changes, see);
    // Another flow in its place must have the same.
    let notes = |flow: u32, mut mean: Mean| {
        testing::walks::notes(NOW, &[], &mut mean, |mean, walk| visit_of(mean, walk, FlowId(flow)))
    };
    let other = Mean { ps: 6e6, ..mean() };
    assert!(node::walk::recurrence(&notes(3, mean()), &notes(4, mean())).is_ok());
    assert!(node::walk::recurrence(&notes(3, mean()), &notes(4, other)).is_err());
}
