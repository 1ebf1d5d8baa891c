use super::*;

const MSS: u64 = 1000;

/// The target is 25 us, whatever the window and the path.
fn fixed() -> Config {
    let zero = Some(Duration::ZERO);
    Config { base_target: Some(Duration::from_us(25)), hop_target: zero, fs_range: zero, ..Config::default() }
}

fn flow(config: &Config, cwnd: f64) -> Swift {
    Swift { cwnd, ..config.start(Start::of(10, MSS)) }
}

/// One for a packet that took `us`, at `at_us`.
fn ack(at_us: u64, us: u64) -> Ack {
    let rtt = Some(Duration::from_us(us));
    Ack { now: Time::from_us(at_us), rtt, delay: rtt, ..Ack::of(MSS) }
}

#[test]
fn a_round_trip_below_the_target_adds_ai() {
    for (ai, cwnd) in [(1.0, 10.0), (0.5, 40.0), (2.0, 8.0)] {
        let mut flow = flow(&Config { ai, ..fixed() }, cwnd);
        for _ in 0..cwnd as u32 {
            flow.on_ack(&ack(1, 20));
        }
        // Each of `cwnd` steps is from ai / (cwnd + ai) to ai / cwnd.
        let grown = flow.cwnd - cwnd;
        assert!(grown <= ai && grown >= ai * cwnd / (cwnd + ai), "{ai} {cwnd}: {grown}");
    }
}

#[test]
fn below_one_packet_each_acknowledgement_adds_ai_whole() {
    let mut flow = flow(&Config { ai: 0.1, ..fixed() }, 0.25);
    flow.on_ack(&ack(1, 20));
    assert_eq!(flow.cwnd, 0.35);
    // Three packets at once, above one: 3 x 0.1 / 2.
    let mut flow = self::flow(&Config { ai: 0.1, ..fixed() }, 2.0);
    flow.on_ack(&Ack { delivered_bytes: 3 * MSS, ..ack(1, 20) });
    assert!((flow.cwnd - 2.15).abs() < 1e-12);
}

#[test]
fn a_window_that_was_not_full_does_not_grow_and_none_grows_past_its_maximum() {
    let mut flow = flow(&Config { max_cwnd: 11.0, ..fixed() }, 10.0);
    flow.on_ack(&Ack { limited: false, ..ack(1, 20) });
    assert_eq!(flow.cwnd, 10.0);
    for _ in 0..100 {
        flow.on_ack(&ack(1, 20));
    }
    assert_eq!(flow.cwnd, 11.0);
}

#[test]
fn the_window_shrinks_with_the_excess_and_by_half_at_most() {
    // Target 25 us, beta 0.8: 1 - 0.8 x (delay - 25) / delay.
    for (delay, left) in [(25, 1.0), (50, 0.6), (40, 0.7), (100, 0.5), (10_000, 0.5)] {
        let mut flow = flow(&fixed(), 10.0);
        flow.on_ack(&ack(1, delay));
        assert!((flow.cwnd - 10.0 * left).abs() < 1e-12, "{delay} us: {}", flow.cwnd);
    }
}

#[test]
fn the_window_shrinks_once_a_round_trip() {
    let mut flow = flow(&fixed(), 10.0);
    // 50 us late each 10 us: at 0, 50 and 100 us the window falls to 0.6 of it.
    for at in 0..=10 {
        flow.on_ack(&ack(10 * at, 50));
        let falls = at / 5 + 1;
        assert!((flow.cwnd - 10.0 * 0.6f64.powi(falls as i32)).abs() < 1e-9, "at {at}0 us: {}", flow.cwnd);
    }
    // A loss within the same round trip is answered already; one after it is not.
    let before = flow.cwnd;
    let loss = |at| Congestion { now: Time::from_us(at), ..Congestion::of(Signal::Loss, MSS) };
    flow.on_congestion(&loss(149));
    assert_eq!(flow.cwnd, before);
    flow.on_congestion(&loss(150));
    assert_eq!(flow.cwnd, before / 2.0);
}

#[test]
fn timeouts_halve_the_window_and_the_fifth_in_a_row_leaves_the_least() {
    let mut flow = flow(&fixed(), 16.0);
    let timeout =
        |at| Congestion { now: Time::from_us(at), ..Congestion::of(Signal::Timeout { again: at > 1_000 }, MSS) };
    let mut windows = Vec::new();
    for ms in 1..=5 {
        flow.on_congestion(&timeout(1_000 * ms));
        windows.push(flow.cwnd);
    }
    assert_eq!(windows, [8.0, 4.0, 2.0, 1.0, 0.001]);
    // An acknowledgement ends the row, whatever it brings.
    flow.on_ack(&Ack { delay: None, rtt: None, ..ack(5_500, 20) });
    assert_eq!((flow.cwnd, flow.retransmit_count), (0.001, 0));
    flow.on_ack(&ack(5_600, 20));
    assert_eq!(flow.cwnd, 1.001);
    flow.on_congestion(&timeout(6_000));
    assert_eq!(flow.cwnd, 0.5005);
}

#[test]
fn the_target_is_the_paper_s() {
    let us = |us| Some(Duration::from_us(us));
    let config = Config { base_target: us(25), hop_target: us(2), fs_range: us(100), ..Config::default() };
    let flow = flow(&config, 10.0);
    // Section 3.5: alpha = 100 us / (1 / sqrt(0.1) - 1 / sqrt(100)), and beta = -alpha / sqrt(100).
    let alpha = 100.0 / (10f64.sqrt() - 0.1);
    for (cwnd, hops, scaled) in [
        (0.05, 0, 100.0),
        (0.1, 1, 100.0),
        (1.0, 1, alpha * (1.0 - 0.1)),
        (4.0, 3, alpha * (0.5 - 0.1)),
        (25.0, 5, alpha * (0.2 - 0.1)),
        (100.0, 3, 0.0),
        (400.0, 3, 0.0),
    ] {
        let wanted = 25.0 + 2.0 * f64::from(hops) + scaled;
        let target = flow.target.ps(cwnd, hops) * 1e-6;
        assert!((target - wanted).abs() < 1e-9, "cwnd {cwnd}, {hops} hops: {target}, not {wanted}");
    }
}

#[test]
fn targets_that_are_not_set_follow_from_the_unloaded_round_trip() {
    // 10 us over one switch, of which the switch makes 2.
    let flow = flow(&Config::default(), 10.0);
    assert_eq!(flow.target.ps(100.0, 1) * 1e-6, 12.5);
    assert_eq!(flow.target.ps(100.0, 3) * 1e-6, 16.5);
    assert!((flow.target.ps(0.1, 1) * 1e-6 - 42.5).abs() < 1e-9);
}

#[test]
fn targets_allow_for_a_packet_s_own_time_at_its_aq_s_rate() {
    // An AQ of 10.4 Mbps takes 800 us for a packet of 1,040 B: unloaded, a round trip of 10 us is one of 810 there.
    let start = Start { virtual_serialisation: Duration::from_us(800), ..Start::of(10, MSS) };
    let mut flow = Swift { cwnd: 100.0, ..Config::default().start(start) };
    assert_eq!(flow.target.ps(100.0, 1) * 1e-6, 8.0 + 800.0 + 202.5 + 2.0);
    assert!((flow.target.ps(0.1, 1) * 1e-6 - 1_012.5 - 2_430.0).abs() < 1e-9);
    // What finds the AQ empty opens the window; twice the time of two packets ahead closes it.
    let tagged = |at, virtual_us| Ack { virtual_delay: Some(Duration::from_us(virtual_us)), hops: 1, ..ack(at, 10) };
    flow.on_ack(&tagged(1_000, 800));
    assert!(flow.cwnd > 100.0);
    flow.on_ack(&tagged(2_000, 1_600));
    assert!(flow.cwnd < 100.0);
    // Targets that are set are kept.
    let flow = fixed().start(start);
    assert_eq!(flow.target.ps(1.0, 1) * 1e-6, 25.0);
}

#[test]
fn virtual_delay_takes_the_place_of_the_queue_s() {
    let mut flow = flow(&fixed(), 10.0);
    flow.on_ack(&ack(0, 12));
    let grown = flow.cwnd;
    // The round trip, 500 us, is others' doing: 12 us of path and 10 of virtual delay are below the target of 25.
    let tagged = |at, virtual_us| Ack { virtual_delay: Some(Duration::from_us(virtual_us)), ..ack(at, 500) };
    flow.on_ack(&tagged(1_000, 10));
    assert!((flow.cwnd - (grown + 1.0 / grown)).abs() < 1e-12);
    // 12 and 38 are 50: twice the target.
    let before = flow.cwnd;
    flow.on_ack(&tagged(2_000, 38));
    assert!((flow.cwnd - 0.6 * before).abs() < 1e-12);
    // The round trip in which it may not shrink again is the real one.
    let before = flow.cwnd;
    flow.on_ack(&tagged(2_499, 38));
    assert_eq!(flow.cwnd, before);
    flow.on_ack(&tagged(2_500, 38));
    assert!((flow.cwnd - 0.6 * before).abs() < 1e-12);
}

#[test]
fn under_an_aq_a_window_takes_its_own_delay() {
    let mut flow = flow(&fixed(), 4.0);
    flow.on_ack(&Ack { virtual_delay: Some(Duration::from_us(4)), ..ack(0, 20) });
    // 4 1/4 packets in 20 + 4 us.
    let gap = flow.pacing().unwrap().transmit(MSS + 40).us_f64();
    assert!((gap / (24.0 / 4.25) - 1.0).abs() < 1e-5, "{gap} us");
}

#[test]
fn half_a_packet_is_one_every_two_round_trips() {
    for (cwnd, us) in [(0.5, 40), (0.1, 200), (0.001, 20_000)] {
        let mut flow = flow(&fixed(), 4.0);
        flow.on_ack(&ack(0, 20));
        assert_eq!(flow.pacing(), None);
        flow.cwnd = cwnd;
        let gap = flow.pacing().unwrap().transmit(MSS + 40).us_f64();
        // To the bit a second of its rate.
        assert!((gap / us as f64 - 1.0).abs() < 1e-5, "{cwnd}: {gap} us");
        assert_eq!(flow.window_bytes(), (cwnd * MSS as f64) as u64);
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let refused = |config: Config| config.check().unwrap_err().key;
    let config = Config::default;
    assert_eq!(config().check(), Ok(()));
    assert_eq!(refused(Config { ai: 0.0, ..config() }), "ai");
    assert_eq!(refused(Config { beta: f64::NAN, ..config() }), "beta");
    assert_eq!(refused(Config { max_mdf: 1.0, ..config() }), "max_mdf");
    assert_eq!(refused(Config { base_target: Some(Duration::ZERO), ..config() }), "base_target");
    assert_eq!(refused(Config { fs_min_cwnd: 0.0, ..config() }), "fs_min_cwnd");
    assert_eq!(refused(Config { fs_max_cwnd: 0.1, ..config() }), "fs_max_cwnd");
    assert_eq!(refused(Config { min_cwnd: 0.0, ..config() }), "min_cwnd");
    assert_eq!(refused(Config { max_cwnd: 1e6, ..config() }), "max_cwnd");
    assert_eq!(refused(Config { retx_reset_threshold: 0, ..config() }), "retx_reset_threshold");
}
