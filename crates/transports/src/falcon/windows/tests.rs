use node::{Clock, EndpointParams};
use units::{Bytes, HostId, Rate};

use super::super::{Config, ReceiveBuffer};
use super::*;

const RTT: Duration = Duration::from_us(10);

/// 100 Gbps, a round trip of 10 us over one switch.
fn site() -> EndpointParams {
    EndpointParams {
        host: HostId(0),
        hosts: 2,
        nic_rate: Rate::from_gbps(100),
        data_rtt: RTT,
        data_rtts: vec![(1, RTT)],
        control_rtt: RTT,
        mtu_bytes: 1_500,
        header_bytes: 40,
        clock: Clock::default(),
        transport: 0,
    }
}

/// One path; the target is 25 us for any window and path.
fn fixed() -> Config {
    let zero = Some(Duration::ZERO);
    Config {
        paths: 1,
        base_delay_target: Some(Duration::from_us(25)),
        topology_scaling_per_hop: zero,
        max_flow_scaling: zero,
        ..Config::default()
    }
}

fn params(config: &Config) -> Params {
    Params::new(config, &site(), &contract::NetworkView::star(&site()))
}

/// An answer at `at_us` of a packet whose round trip and delay were `us`.
fn answer(at_us: u64, us: u64) -> Answer {
    let echo = Echo { path: 0, hops: 1, buffer_level: 0, t1_ns: 0, held_ns: 0 };
    let us = Duration::from_us(us);
    Answer { now: Time::from_us(at_us), rtt: us, delay: us, echo, exhausted: false }
}

fn acked(windows: &mut Windows, packets: u32, answer: &Answer, params: &Params) -> bool {
    (0..packets).for_each(|_| windows.acknowledged(usize::from(answer.echo.path)));
    windows.answered(answer, params)
}

#[test]
fn below_the_target_a_window_grows_by_the_increment_over_itself_for_each_packet() {
    let params = params(&Config { initial_fcwnd: 20.0, fabric_additive_increment: 2.0, ..fixed() });
    let mut windows = Windows::new(&params);
    acked(&mut windows, 5, &answer(1, 20), &params);
    assert_eq!(windows.fcwnd(&params), 20.0 + 2.0 * 5.0 / 20.0);
    // Below one packet, by the increment whole.
    let params = self::params(&Config { initial_fcwnd: 0.25, fabric_additive_increment: 0.5, ..fixed() });
    let mut windows = Windows::new(&params);
    acked(&mut windows, 1, &answer(1, 20), &params);
    assert_eq!(windows.fcwnd(&params), 0.75);
}

#[test]
fn above_the_target_it_shrinks_with_the_excess_by_half_at_most_and_once_a_round_trip() {
    // 1 - 0.8 (delay - 25) / delay.
    for (delay, left) in [(50, 0.6), (40, 0.7), (100, 0.5), (1_000, 0.5)] {
        let params = params(&fixed());
        let mut windows = Windows::new(&params);
        acked(&mut windows, 1, &answer(2_000, delay), &params);
        let first = windows.fcwnd(&params);
        assert!((first / 32.0 - left).abs() < 1e-9, "{delay}: {first}");
        acked(&mut windows, 1, &answer(2_000 + delay - 1, delay), &params);
        assert_eq!(windows.fcwnd(&params), first);
        acked(&mut windows, 1, &answer(2_000 + delay, delay), &params);
        assert!((windows.fcwnd(&params) / first - left).abs() < 1e-9);
    }
}

#[test]
fn the_target_grows_with_hops_and_as_the_window_shrinks() {
    let config = Config {
        base_delay_target: Some(Duration::from_us(25)),
        topology_scaling_per_hop: Some(Duration::from_us(1)),
        max_flow_scaling: Some(Duration::from_us(100)),
        ..Config::default()
    };
    let target = params(&config).target;
    // Specification 10.3.4 with Isekai's values: alpha = 100 / (1 / sqrt 0.1 - 1 / sqrt 256), beta = -alpha / 16.
    let alpha = 100.0 / (10f64.sqrt() - 1.0 / 16.0);
    for (window, hops, flow) in
        [(256.0, 0, 0.0), (1_000.0, 0, 0.0), (1.0, 3, alpha - alpha / 16.0), (0.1, 5, 100.0), (0.01, 5, 100.0)]
    {
        let expected = 25.0 + f64::from(hops) + flow;
        assert!((target.ps(window, hops) / 1e6 - expected).abs() < 1e-6, "{window}: {}", target.ps(window, hops));
    }
}

#[test]
fn paths_have_windows_of_their_own_whose_sum_counts() {
    let params = params(&Config { paths: 4, ..fixed() });
    let mut windows = Windows::new(&params);
    assert_eq!((windows.fcwnd(&params), windows.of_path(3)), (32.0, 8.0));
    let of = |path: u8, us: u64| Answer { echo: Echo { path, ..answer(1, us).echo }, ..answer(1_000, us) };
    acked(&mut windows, 8, &of(1, 20), &params);
    acked(&mut windows, 8, &of(2, 50), &params);
    assert_eq!([0, 1, 3].map(|path| windows.of_path(path)), [8.0, 9.0, 8.0]);
    assert!((windows.of_path(2) - 4.8).abs() < 1e-9);
    // What other paths' answers acknowledged counts when one comes over its own.
    (0..16).for_each(|_| windows.acknowledged(3));
    assert!(windows.has_news(3) && !windows.has_news(0));
    windows.answered(&of(3, 20), &params);
    assert_eq!(windows.of_path(3), 10.0);
    // The timeout is by the slowest path: 0.75 x 10 us + 0.25 x 50 us, twice, but for the shortest.
    assert_eq!(windows.rtt(), Duration::from_us(20));
    assert_eq!(windows.timeout(&params), Duration::from_us(250));
}

#[test]
fn a_first_timeout_halves_and_the_third_of_a_packet_leaves_the_minimum() {
    let params = params(&fixed());
    let mut windows = Windows::new(&params);
    windows.timed_out(0, 1, Time::from_us(300), &params);
    windows.timed_out(0, 1, Time::from_us(305), &params);
    assert_eq!(windows.fcwnd(&params), 16.0);
    windows.timed_out(0, 2, Time::from_us(600), &params);
    assert_eq!(windows.fcwnd(&params), 16.0);
    windows.timed_out(0, 3, Time::from_us(900), &params);
    assert_eq!((windows.fcwnd(&params), windows.packets(&params)), (0.01, 1));
    // One packet in rtt / fcwnd; the timeout begins when the packet may leave.
    assert_eq!(windows.gap(&params), Some(Duration::from_us(1_000)));
    assert_eq!(windows.timeout(&params), Duration::from_us(2 * 10 + 990));
}

#[test]
fn a_path_changes_after_congested_round_trips_in_a_row() {
    let params = params(&fixed());
    let mut windows = Windows::new(&params);
    let mut rounds = |late: &[bool]| {
        late.iter().fold(0, |changes, &late| {
            let us = if late { 26 } else { 24 };
            // More than a window at once is a round.
            changes + u64::from(acked(&mut windows, 40, &answer(1_000, us), &params))
        })
    };
    // 26 us is above 1.01 x 25 us.
    assert_eq!(rounds(&[true, true, true, true, false, true, true, true, true]), 0);
    assert_eq!(rounds(&[true]), 1);
    assert_eq!(rounds(&[true, true, true, true]), 0);
    assert_eq!(rounds(&[true]), 1);
}

fn nic(level: u8) -> (Params, impl Fn(u64, u8) -> Answer) {
    let buffer = ReceiveBuffer {
        rate: Rate::from_gbps(10),
        size: Bytes(1_000_000),
        target_rx_buffer_level: level,
        initial_ncwnd: 40.0,
        min_ncwnd: 1.0,
        max_ncwnd: 256.0,
        nic_additive_increment: 1.0,
        nic_multiplicative_decrease_factor: 0.8,
        max_nic_multiplicative_decrease_factor: 0.5,
    };
    let params = params(&Config { receive_buffer: Some(buffer), ..fixed() });
    let of = |at_us, buffer_level| Answer { echo: Echo { buffer_level, ..answer(1, 1).echo }, ..answer(at_us, 10) };
    (params, of)
}

#[test]
fn the_nic_window_follows_the_buffer_once_a_round_trip_each_way() {
    let (params, at) = nic(15);
    let mut windows = Windows::new(&params);
    let mut step = |at_us, level| {
        windows.answered(&at(at_us, level), &params);
        windows.nic_packets()
    };
    // Grows once in ten microseconds.
    assert_eq!([step(100, 14), step(105, 14), step(110, 0)], [41, 41, 42]);
    // By 0.8 (20 - 15) / 20, when a round trip has passed since it last changed.
    assert_eq!([step(115, 20), step(120, 20), step(121, 20)], [42, 33, 33]);
    // It turns round at once.
    assert_eq!(step(122, 14), 34);
    // At the target exactly it stays: the excess is 0.
    assert_eq!(step(200, 15), 34);
}

#[test]
fn a_full_buffer_halves_the_nic_window() {
    let (params, at) = nic(15);
    let mut windows = Windows::new(&params);
    let full = |at_us| Answer { exhausted: true, ..at(at_us, 31) };
    windows.answered(&full(100), &params);
    assert_eq!(windows.nic_packets(), 20);
    windows.answered(&full(105), &params);
    assert_eq!(windows.nic_packets(), 20);
    windows.answered(&full(110), &params);
    assert_eq!(windows.nic_packets(), 10);
    for step in 0..20 {
        windows.answered(&full(200 + 10 * step), &params);
    }
    assert_eq!(windows.nic_packets(), 1);
}

#[test]
fn at_its_greatest_the_nic_window_still_shrinks() {
    let (mut params, at) = nic(15);
    params.nic.as_mut().unwrap().max = 41.0;
    let mut windows = Windows::new(&params);
    // Answers come far more often than once in a round trip.
    for at_us in 100..200 {
        windows.answered(&at(at_us, 0), &params);
    }
    assert_eq!(windows.nic_packets(), 41);
    windows.answered(&at(200, 31), &params);
    assert!(windows.nic_packets() < 41);
}
