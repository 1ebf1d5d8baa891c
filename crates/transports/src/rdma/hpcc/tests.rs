use node::telemetry::HopRecord;
use units::{SwitchId, Time};

use super::*;

const RTT: Duration = Duration::from_us(10);

fn control(config: Config) -> Hpcc {
    config.start(Start { now: Time::ZERO, line: Rate::from_gbps(100), rtt: RTT })
}

/// Records of ports of 100 Gbps: (bytes sent, queue) of each, at so many microseconds.
fn record(at_us: u64, hops: &[(u64, u32)]) -> Telemetry {
    let mut telemetry = Telemetry::default();
    for (switch, &(sent, queue)) in hops.iter().enumerate() {
        let hop = HopRecord::new(Rate::from_gbps(100), Time::from_us(at_us), sent, queue);
        telemetry.push(SwitchId(switch as u32), hop);
    }
    telemetry
}

fn acknowledge(control: &mut Hpcc, una: u64, next: u64, telemetry: &Telemetry) -> f64 {
    let telemetry = Some(telemetry);
    control.on_ack(&Ack { now: Time::ZERO, una, next, rtt: RTT, virtual_delay: None, telemetry });
    control.rate / 1e9
}

#[test]
fn the_load_is_what_is_sent_and_the_shorter_queue() {
    let control = control(Config::default());
    // 5 us: 128 x 400 bytes of the 62,500 that would fit, and a queue of 8,000 of the 125,000 that a round trip is.
    let samples = control.samples(&record(10, &[(0, 16_000)]), &record(15, &[(51_200, 8_000)]));
    let sample = samples[0].unwrap();
    assert!((sample.load - (51_200.0 / 62_500.0 + 8_000.0 / 125_000.0)).abs() < 1e-12, "{}", sample.load);
    assert!((sample.share - 0.5).abs() < 1e-12);
    // Longer than a round trip counts as one.
    let samples = control.samples(&record(10, &[(0, 0)]), &record(40, &[(51_200, 8_000)]));
    assert!((samples[0].unwrap().share - 1.0).abs() < 1e-12);
    // A record that is not newer gives no sample.
    assert!(control.samples(&record(10, &[(512, 0)]), &record(10, &[(512, 0)]))[0].is_none());
    assert!(samples[1].is_none());
}

#[test]
fn an_overloaded_hop_takes_its_share_of_the_rate_and_the_reference_moves_once_a_round_trip() {
    let mut control = control(Config::default());
    // The first record is only kept for comparison.
    assert_eq!(acknowledge(&mut control, 1_460, 100_000, &record(10, &[(0, 0)])), 100.0);
    // Half a round trip later: the port has sent at 102.4 Gbps, quantised, with 62,480 B in queue both times. U is
    // half what it was, 1, and half of that.
    let first = record(10, &[(0, 62_480)]);
    control.last = Some(first);
    let now = record(15, &[(62_464, 62_480)]);
    let load = 0.5 + 0.5 * (62_464.0 / 62_500.0 + 62_480.0 / 125_000.0);
    let wanted = 100.0 / (load / 0.95) + 0.05;
    let rate = acknowledge(&mut control, 2_920, 100_000, &now);
    assert!((rate - wanted).abs() < 1e-9, "{rate} {wanted}");
    // The reference has not moved: the same load again moves the rate from 100 Gbps, not from where it is.
    let again = record(20, &[(124_928, 62_480)]);
    let load = 0.5 * load + 0.5 * (62_464.0 / 62_500.0 + 62_480.0 / 125_000.0);
    let wanted = 100.0 / (load / 0.95) + 0.05;
    let rate = acknowledge(&mut control, 100_000, 110_000, &again);
    assert!((rate - wanted).abs() < 1e-9, "{rate} {wanted}");
    assert_eq!(control.references[0].rate, 100e9);
    // With all of a round trip acknowledged it moves.
    acknowledge(&mut control, 100_001, 120_000, &record(25, &[(187_392, 62_480)]));
    assert!(control.references[0].rate == control.rate && control.rate < 70e9);
}

#[test]
fn below_the_target_it_takes_five_additive_steps_and_a_multiplicative_one() {
    let mut control = control(Config::default());
    control.references[0] = Reference { rate: 40e9, load: 0.5, stage: 0 };
    control.rate = 40e9;
    acknowledge(&mut control, 1, 2, &record(0, &[(0, 0)]));
    let mut rates = Vec::new();
    for round in 1..=6u64 {
        // Half a link, a round trip apart: U stays at 0.5.
        let now = record(10 * round, &[(62_464 * round, 0)]);
        rates.push(acknowledge(&mut control, 2 * round + 1, 2 * round + 2, &now));
    }
    for (step, rate) in rates[..5].iter().enumerate() {
        assert!((rate - (40.05 + 0.05 * step as f64)).abs() < 1e-9, "{rates:?}");
    }
    let load = 62_464.0 / 125_000.0;
    assert!((rates[5] - (40.25 * 0.95 / load + 0.05)).abs() < 1e-6, "{rates:?}");
}

#[test]
fn each_hop_has_its_reference_or_the_most_loaded_counts() {
    for multi_rate in [true, false] {
        let mut control = control(Config { multi_rate, ..Config::default() });
        acknowledge(&mut control, 1, 2, &record(0, &[(0, 0), (0, 0)]));
        // The first hop at half load, the second at full load with a queue of a quarter.
        let (half, full) = (62_464.0 / 125_000.0, 124_928.0 / 125_000.0 + 0.25024);
        control.last = Some(record(0, &[(0, 0), (0, 31_280)]));
        let rate = acknowledge(&mut control, 3, 4, &record(10, &[(62_464, 0), (124_928, 31_280)]));
        let wanted = 100.0 / (full / 0.95) + 0.05;
        assert!((rate - wanted).abs() < 1e-9, "{rate} {wanted}");
        let [first, second, ..] = control.references;
        if multi_rate {
            assert!((first.load - half).abs() < 1e-12 && (second.load - full).abs() < 1e-12);
            assert_eq!((first.rate, first.stage, second.stage), (100e9, 1, 0));
        } else {
            assert!((first.load - full).abs() < 1e-12);
        }
    }
}

#[test]
fn another_path_begins_anew() {
    let mut control = control(Config::default());
    acknowledge(&mut control, 1, 2, &record(0, &[(0, 0)]));
    let other = record(10, &[(1_250_000, 90_000), (1_250_000, 90_000)]);
    assert_eq!(acknowledge(&mut control, 3, 4, &other), 100.0);
    assert_eq!(control.last, Some(other));
}
