use proptest::prelude::*;

use super::super::control::{Algorithm, Congestion, Control, Signal, Start};
use super::super::{cubic, newreno};
use super::*;

const MSS: u64 = 1_000;

/// A path of one round trip on which a bottleneck takes a segment in `slot`, and a control that fills its window as
/// soon as it may: each acknowledgement releases as many segments as it makes room for.
struct Path<C> {
    control: C,
    rtt: Duration,
    slot: Duration,
    /// When the segments in flight arrive, oldest first, with the time of their sending.
    flight: std::collections::VecDeque<(Time, Time)>,
    una: u64,
    next: u64,
    free: Time,
}

impl<C: Control> Path<C> {
    fn new(control: C, rtt: Duration, slot: Duration) -> Path<C> {
        let flight = std::collections::VecDeque::new();
        let mut path = Path { control, rtt, slot, flight, una: 0, next: 0, free: Time::ZERO };
        path.fill(Time::ZERO);
        path
    }

    fn fill(&mut self, now: Time) {
        while self.next - self.una + MSS <= self.control.window_bytes() {
            self.free = self.free.max(now) + self.slot;
            self.flight.push_back((self.free + self.rtt, now));
            self.next += MSS;
        }
    }

    /// The next acknowledgement; returns when it came.
    fn step(&mut self) -> Time {
        let (now, sent) = self.flight.pop_front().expect("a window is never empty");
        self.una += MSS;
        let rtt = now - sent;
        let ack = Ack { now, una: self.una, next: self.next, rtt: Some(rtt), srtt: rtt, ..Ack::of(MSS) };
        self.control.on_ack(&ack);
        self.fill(now);
        now
    }

    /// The window once a round trip has passed in which it grew by two segments at most.
    fn settled(&mut self) -> u64 {
        loop {
            let (before, end) = (self.control.window_bytes(), self.next);
            while self.una < end {
                self.step();
            }
            if self.control.window_bytes() <= before + 2 * MSS {
                return self.control.window_bytes() / MSS;
            }
            assert!(self.next < 1_000_000 * MSS, "slow start never ends");
        }
    }
}

fn newreno(slow_start: SlowStart) -> newreno::NewReno {
    newreno::Config { slow_start, ..newreno::Config::default() }.start(Start::of(10, MSS))
}

fn cubic() -> cubic::Cubic {
    cubic::Config::default().start(Start::of(10, MSS))
}

#[test]
fn a_train_of_half_a_round_trip_ends_slow_start_between_one_and_one_and_a_half_products() {
    // The train of a window W lasts W slots. When half a round trip of it has come, W is above half a product and
    // below one, and has grown by half a product since. Offload adds an eighth at most.
    for product in [40, 100, 700, 5_000] {
        let slot = Duration::from_us(1);
        let settled = Path::new(cubic(), slot * product, slot).settled();
        assert!(settled >= product && settled <= product * 27 / 16 + 3, "{product}: {settled}");
    }
}

#[test]
fn below_the_low_window_slow_start_goes_on() {
    // A product of four segments: trains are longer than that from the first round on.
    let mut path = Path::new(cubic(), Duration::from_us(4), Duration::from_us(1));
    assert!((16..=18).contains(&path.settled()));
}

#[test]
fn acknowledgements_further_apart_are_no_train() {
    // 1 Mbps and a second: segments arrive every 8 ms. The path holds 125 segments.
    // Two more make 16 ms: a round that begins with more has no short round trip, and windows double from round to
    // round, so that its ninth sample ends it below four products.
    let (rtt, slot) = (Duration::from_ms(1_000), Duration::from_ms(8));
    let settled = Path::new(newreno(SlowStart::hystart()), rtt, slot).settled();
    let only_trains = HyStart { delay: false, ..HyStart::default() };
    let mut path = Path::new(newreno(SlowStart::Hystart(only_trains)), rtt, slot);
    (0..5_000).for_each(|_| _ = path.step());
    assert!(settled < 4 * 125 + 9 && path.control.window_bytes() > 2_000 * MSS, "{settled}");
}

#[test]
fn grown_round_trips_end_it_after_eight_samples_of_a_round() {
    let hystart = HyStart { ack_train: false, delay_min: Duration::from_us(2), ..HyStart::default() };
    let mut control = newreno(SlowStart::Hystart(hystart));
    let mut una = 0;
    let mut ack = |control: &mut newreno::NewReno, us, new_round: bool| {
        una += MSS;
        let next = if new_round { una + 100 * MSS } else { una + 50 * MSS };
        let rtt = Some(Duration::from_us(us));
        control.on_ack(&Ack { una, next, rtt, now: Time::from_us(una / MSS), ..Ack::of(MSS) });
        control.window_bytes() / MSS
    };
    // 100 us is the least; an eighth more is 112.5.
    (0..101).for_each(|_| _ = ack(&mut control, 100, true));
    let before = control.window_bytes() / MSS;
    for sample in 1..=8 {
        assert_eq!(ack(&mut control, 113, true), before + sample);
    }
    assert_eq!(ack(&mut control, 113, true), before + 8, "the ninth ends it");
    assert_eq!(ack(&mut control, 100, true), before + 8);
}

#[test]
fn after_a_timeout_hystart_watches_again() {
    let (rtt, slot) = (Duration::from_us(100), Duration::from_us(1));
    let mut path = Path::new(newreno(SlowStart::hystart()), rtt, slot);
    path.settled();
    path.control.on_congestion(&Congestion::of(Signal::Timeout { again: false }, 400 * MSS));
    (path.una, path.flight) = (path.next, std::collections::VecDeque::new());
    path.fill(path.free);
    // The threshold is 200, twice what the path holds.
    (0..300).for_each(|_| _ = path.step());
    let settled = path.settled();
    assert!((100..160).contains(&settled), "{settled}");
}

#[test]
fn hystart_plus_plus_slows_down_for_five_rounds_before_it_leaves() {
    let thresholds = HyStartPlusPlus {
        min_rtt_thresh: Duration::from_us(4),
        max_rtt_thresh: Duration::from_us(16),
        ..HyStartPlusPlus::default()
    };
    let (rtt, slot) = (Duration::from_us(100), Duration::from_us(1));
    let mut path = Path::new(newreno(SlowStart::HystartPlusPlus(thresholds)), rtt, slot);
    let mut growth = Vec::new();
    for _ in 0..16 {
        let (before, end) = (path.control.window_bytes(), path.next);
        while path.una < end {
            path.step();
        }
        growth.push(path.control.window_bytes() as f64 / before as f64);
    }
    // It doubles, then grows by a quarter for what is left of a round and four more, then by a segment.
    let doubles = growth.iter().filter(|&&by| by > 1.9).count();
    let quarters = growth.iter().filter(|&&by| by > 1.2 && by < 1.3).count();
    let ends = growth.iter().rposition(|&by| by > 1.05).unwrap();
    assert!(doubles >= 3 && (4..=5).contains(&quarters), "{growth:?}");
    assert!(growth[ends + 1..].iter().all(|&by| by < 1.02) && ends < 14, "{growth:?}");
}

#[test]
fn shorter_round_trips_resume_slow_start() {
    let thresholds = HyStartPlusPlus {
        min_rtt_thresh: Duration::from_us(4),
        max_rtt_thresh: Duration::from_us(16),
        ..HyStartPlusPlus::default()
    };
    let mut control = newreno(SlowStart::HystartPlusPlus(thresholds));
    let mut una = 0;
    // Rounds of ten segments, each with one round trip.
    let mut round = |us| {
        let before = control.window_bytes();
        for segment in 0..10 {
            una += MSS;
            let next = una + 9 * MSS - if segment == 0 { 0 } else { MSS };
            control.on_ack(&Ack { una, next, rtt: Some(Duration::from_us(us)), ..Ack::of(MSS) });
        }
        (control.window_bytes() - before) / (MSS / 4)
    };
    // 40 quarters of a segment are full growth, 10 a fourth of it.
    assert_eq!([round(100), round(100)], [40, 40]);
    let grown = round(120);
    assert!(grown < 40, "{grown}");
    assert_eq!(round(120), 10);
    let resumed = round(110);
    assert!(resumed > 10, "{resumed}");
    assert!(round(110) > 10);
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    let of = |slow_start| newreno::Config { slow_start, ..newreno::Config::default() }.check().unwrap_err().key;
    let hystart = HyStart { delay_min: Duration::from_ms(20), ..HyStart::default() };
    assert_eq!(of(SlowStart::Hystart(hystart)), "slow_start.hystart.delay_min");
    let plus = HyStartPlusPlus { css_rounds: 0, ..HyStartPlusPlus::default() };
    assert_eq!(of(SlowStart::HystartPlusPlus(plus)), "slow_start.hystart_plus_plus.css_rounds");
}

proptest! {
    /// Whatever comes, neither opens the window more than slow start without it does, and both end slow start once.
    #[test]
    fn no_watch_opens_the_window_faster(
        rtts in proptest::collection::vec(1u64..30_000, 1..400), plus in any::<bool>(), spacing in 1u64..3_000,
    ) {
        let slow_start =
            if plus { SlowStart::HystartPlusPlus(HyStartPlusPlus::default()) } else { SlowStart::hystart() };
        let (mut watched, mut plain) = (newreno(slow_start), newreno(SlowStart::Standard));
        let mut una = 0;
        for (index, us) in rtts.into_iter().enumerate() {
            una += MSS;
            let (rtt, now) = (Duration::from_us(us), Time::from_us(index as u64 * spacing));
            let ack = Ack { now, una, next: una + 40 * MSS, rtt: Some(rtt), srtt: rtt, ..Ack::of(MSS) };
            watched.on_ack(&ack);
            plain.on_ack(&ack);
            prop_assert!(watched.window_bytes() <= plain.window_bytes());
        }
    }
}
