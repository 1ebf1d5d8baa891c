use units::Time;

use super::*;

/// A queue pair at 50 Gbps of 100, with no history of round trips.
fn control() -> Timely {
    let start = Start { now: Time::ZERO, line: Rate::from_gbps(100), rtt: Duration::from_us(20) };
    Timely { rate: 50e9, last: Some(100.0), ..Config::default().start(start) }
}

fn mbps(control: &Timely) -> f64 {
    control.rate / 1e6
}

#[test]
fn below_the_low_threshold_it_grows_whatever_the_gradient() {
    let mut control = control();
    for rtt in [20.0, 30.0, 49.0] {
        control.decide(rtt);
    }
    assert_eq!(mbps(&control), 50_030.0);
}

#[test]
fn above_the_high_threshold_it_shrinks_by_how_far() {
    let mut control = control();
    control.decide(1_000.0);
    // 1 - 0.8 (1 - 500 / 1000)
    assert!((mbps(&control) - 30_000.0).abs() < 1e-6);
    // Even as the round trip falls.
    control.decide(625.0);
    assert!((mbps(&control) - 30_000.0 * (1.0 - 0.8 * 0.2)).abs() < 1e-6);
}

#[test]
fn between_them_a_rising_round_trip_shrinks_it_in_proportion() {
    let mut control = control();
    control.decide(102.0);
    // Difference 0.875 x 2 us, gradient 0.0875, 1 - 0.8 x 0.0875 = 0.93.
    assert!((mbps(&control) - 46_500.0).abs() < 1e-6, "{}", mbps(&control));
    // Level: the smoothed difference is 0.125 x 1.75 us and still positive.
    control.decide(102.0);
    assert!((mbps(&control) - 46_500.0 * (1.0 - 0.8 * 0.21875 / 20.0)).abs() < 1e-6);
    // A jump of more than the unit over beta would make it negative.
    control.decide(300.0);
    assert_eq!(mbps(&control), 100.0);
}

#[test]
fn the_fifth_falling_round_trip_in_a_row_grows_it_by_five_steps() {
    let mut control = control();
    let mut grown = Vec::new();
    for n in 1..=6 {
        let before = mbps(&control);
        control.decide(100.0 - f64::from(n));
        grown.push(mbps(&control) - before);
    }
    assert_eq!(grown, [10.0, 10.0, 10.0, 10.0, 50.0, 50.0]);
    control.decide(120.0);
    let before = mbps(&control);
    control.decide(60.0);
    assert_eq!(mbps(&control) - before, 10.0);
}

#[test]
fn it_decides_once_a_round_trip_or_once_a_segment() {
    let decisions = |segment: Option<u64>| {
        let mut control = Timely { segment, ..control() };
        let mut changes = 0;
        for packet in 1..=100u64 {
            let before = control.rate;
            let rtt = Duration::from_us(30);
            let (una, next) = (packet * 1460, (packet + 20) * 1460);
            control.on_ack(&Ack { now: Time::ZERO, una, next, rtt, virtual_delay: None, telemetry: None });
            changes += u32::from(control.rate != before);
        }
        changes
    };
    // After packet 1, when all that was in flight then is acknowledged: packets 1, 22, 43, 64, 85.
    assert_eq!(decisions(None), 5);
    // Packets 1, 12, 23, ..., 100: the first at which 16,000 bytes more than at the last are acknowledged.
    assert_eq!(decisions(Some(16_000)), 10);
}
