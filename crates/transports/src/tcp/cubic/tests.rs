use super::*;

const MSS: u64 = 1000;

fn flow(segments: u64) -> Cubic {
    Config::default().start(Start::of(segments, MSS))
}

fn congest(flow: &mut Cubic, signal: Signal) {
    let flight_bytes = flow.window_bytes();
    flow.on_congestion(&Congestion::of(signal, flight_bytes));
}

/// Acknowledges a window, segment by segment, within a round trip.
fn round(flow: &mut Cubic, now: &mut Time, srtt: Duration) {
    let segments = flow.window as u64;
    for _ in 0..segments {
        *now += srtt / segments;
        flow.on_ack(&Ack { now: *now, srtt, ..Ack::of(MSS) });
    }
}

#[test]
fn at_short_round_trips_it_is_reno_s_equal() {
    // Section 4.3: 3 (1 - beta) / (1 + beta) = 0.529 segments a round trip up to what it had, then one.
    let (mut flow, mut now) = (flow(100), Time::ZERO);
    congest(&mut flow, Signal::Loss);
    let step = 3.0 * 0.3 / 1.7;
    for rounds in 1..50u32 {
        round(&mut flow, &mut now, Duration::from_us(10));
        let reno = 70.0 + step * f64::from(rounds);
        // A round acknowledges whole segments, so it falls short of a window by less than one.
        assert!((flow.window - reno).abs() < 0.01 * reno, "{} {reno}", flow.window);
    }
    while flow.window < 100.0 {
        round(&mut flow, &mut now, Duration::from_us(10));
    }
    let before = flow.window;
    round(&mut flow, &mut now, Duration::from_us(10));
    assert!((flow.window - before - 1.0).abs() < 0.02, "{before} {}", flow.window);
}

#[test]
fn fast_convergence_leaves_room() {
    let mut flow = flow(100);
    congest(&mut flow, Signal::Loss);
    assert_eq!((flow.window, flow.w_max), (70.0, 100.0));
    congest(&mut flow, Signal::Mark);
    assert!((flow.window - 49.0).abs() < 1e-9 && (flow.w_max - 70.0 * 1.7 / 2.0).abs() < 1e-9);
}

#[test]
fn after_a_timeout_the_plateau_is_where_congestion_avoidance_begins() {
    let (mut flow, mut now) = (flow(100), Time::ZERO);
    congest(&mut flow, Signal::Timeout { again: false });
    assert_eq!((flow.window, flow.threshold), (1.0, 70.0));
    congest(&mut flow, Signal::Timeout { again: true });
    assert_eq!(flow.threshold, 70.0);
    while flow.epoch.is_none() {
        round(&mut flow, &mut now, Duration::from_ms(100));
    }
    assert_eq!(flow.epoch.map(|epoch| epoch.k), Some(0.0));
    assert!(flow.w_max >= 70.0 && flow.w_max < 72.0, "{}", flow.w_max);
}

#[test]
fn time_in_which_the_window_was_not_full_does_not_count() {
    let (mut flow, mut now) = (flow(100), Time::ZERO);
    congest(&mut flow, Signal::Loss);
    round(&mut flow, &mut now, Duration::from_ms(100));
    let age = flow.epoch.unwrap().age;
    let idle = now + Duration::from_ms(5_000);
    flow.on_ack(&Ack { now: idle, limited: false, ..Ack::of(MSS) });
    assert_eq!(flow.epoch.unwrap().age, age);
}

#[test]
fn linux_grows_by_a_twentieth_until_the_first_loss() {
    let start = || {
        let mut flow = super::super::linux::Config::default().start(Start::of(100, MSS));
        flow.leave_slow_start();
        flow
    };
    // 10 ms are too short for the cubic or for Reno's share: 1.05^10 = 1.629.
    let (mut flow, mut now) = (start(), Time::ZERO);
    for _ in 0..10 {
        round(&mut flow, &mut now, Duration::from_ms(1));
    }
    assert!((flow.window - 162.9).abs() < 1.0, "{}", flow.window);
    // The first loss ends it, a timeout brings it back.
    congest(&mut flow, Signal::Loss);
    let before = flow.window;
    round(&mut flow, &mut now, Duration::from_ms(1));
    assert!(flow.window < before + 1.0, "{before} {}", flow.window);
    congest(&mut flow, Signal::Timeout { again: false });
    (flow.window, flow.threshold) = (100.0, 100.0);
    round(&mut flow, &mut now, Duration::from_ms(1));
    assert!((flow.window - 105.0).abs() < 0.2, "{}", flow.window);
    // RFC 9438 has no such rule.
    let mut plain = self::flow(100);
    plain.leave_slow_start();
    round(&mut plain, &mut now, Duration::from_ms(1));
    assert!(plain.window < 101.1, "{}", plain.window);
}
