use proptest::prelude::*;

use super::super::newreno::NewReno;
use super::*;

const MSS: u64 = 1000;

/// A flow in congestion avoidance, with a window of `segments`.
fn flow(config: &Config, segments: u64) -> Illinois {
    let mut flow = config.start(Start::of(segments, MSS));
    flow.threshold = 2.0;
    flow
}

/// Acknowledges a window, segment by segment, each of this round trip.
fn round(flow: &mut Illinois, una: &mut u64, rtt: Duration) {
    let segments = flow.window as u64;
    let next = *una + segments * MSS;
    for _ in 0..segments {
        *una += MSS;
        flow.on_ack(&Ack { una: *una, next, rtt: Some(rtt), ..Ack::of(MSS) });
    }
}

#[test]
fn the_curves_are_those_of_the_paper() {
    let config = Config::default();
    // kappa_1 = 0.99 x 0.3 x 10 / 9.7 and kappa_2 = 0.99 x 0.3 / 9.7 - 0.01, in units of d_m.
    for (d, alpha) in [(0.0, 10.0), (0.01, 10.0), (0.5, 0.306_185_567 / 0.520_618_557), (1.0, 0.3)] {
        assert!((config.f_1(d) - alpha).abs() < 1e-8, "f_1({d}) = {}", config.f_1(d));
    }
    // Between d_2 = 0.1 and d_3 = 0.8 a line: kappa_3 = (0.125 x 0.8 - 0.5 x 0.1) / 0.7, kappa_4 = 0.375 / 0.7.
    let line = |d: f64| (0.05 + 0.375 * d) / 0.7;
    for (d, beta) in [(0.0, 0.125), (0.1, 0.125), (0.3, line(0.3)), (0.45, 0.3125), (0.8, 0.5), (1.0, 0.5)] {
        assert!((config.f_2(d) - beta).abs() < 1e-12, "f_2({d}) = {}", config.f_2(d));
    }
}

proptest! {
    #[test]
    fn the_curves_are_continuous_and_monotone_whatever_the_parameters(
        (alpha_min, above) in (0.01..5.0, 0.1..20.0),
        (beta_min, beta_more) in (0.01..0.5, 0.0..0.49),
        (eta_1, eta_2, eta_more) in (0.0..0.9, 0.0..0.5, 0.05..0.5),
    ) {
        let config = Config {
            alpha_max: alpha_min + above,
            alpha_min,
            beta_min,
            beta_max: beta_min + beta_more,
            eta_1,
            eta_2,
            eta_3: eta_2 + eta_more,
            ..Config::default()
        };
        prop_assert_eq!(config.check(), Ok(()));
        let tiny = 1e-9;
        for knee in [config.eta_1, config.eta_2, config.eta_3] {
            let (before, after) = (knee - tiny, knee + tiny);
            prop_assert!((config.f_1(before) / config.f_1(after) - 1.0).abs() < 1e-4);
            prop_assert!((config.f_2(before) - config.f_2(after)).abs() < 1e-6);
        }
        for step in 0..100 {
            let (d, more) = (f64::from(step) / 100.0, f64::from(step + 1) / 100.0);
            prop_assert!(config.f_1(d) >= config.f_1(more) && config.f_2(d) <= config.f_2(more));
        }
        prop_assert!((config.f_1(1.0) / alpha_min - 1.0).abs() < 1e-9);
    }
}

#[test]
fn what_makes_no_curve_is_refused_by_name() {
    let good = Config::default();
    for (config, key) in [
        (Config { alpha_max: f64::NAN, ..good.clone() }, "alpha_max"),
        (Config { alpha_min: 10.0, ..good.clone() }, "alpha_min"),
        (Config { beta_min: 0.6, ..good.clone() }, "beta_min"),
        (Config { beta_max: 1.0, ..good.clone() }, "beta_max"),
        (Config { eta_1: 1.0, ..good.clone() }, "eta_1"),
        (Config { eta_2: 0.8, ..good.clone() }, "eta_2"),
        (Config { eta_3: 1.1, ..good.clone() }, "eta_3"),
        (Config { theta: 0, ..good.clone() }, "theta"),
        (Config { w_thresh: -1.0, ..good.clone() }, "w_thresh"),
    ] {
        assert_eq!(config.check().unwrap_err().key, key);
    }
}

#[test]
fn the_window_grows_by_alpha_of_the_last_window_s_delay() {
    let (mut flow, mut una) = (flow(&Config::default(), 100), 0);
    let [empty, half, full] = [100, 150, 200].map(Duration::from_us);
    // Nothing is known of the first window; in it no queue is seen, so alpha is 10 in the second.
    round(&mut flow, &mut una, empty);
    assert_eq!((flow.alpha, flow.beta), (1.0, 0.5));
    // dW/dn = 10 / W over 100 acknowledgements: the square grows by 2 x 10 x 100.
    let before = flow.window;
    round(&mut flow, &mut una, full);
    assert_eq!((flow.alpha, flow.beta), (10.0, 0.125));
    assert!((flow.window - (before * before + 2_000.0).sqrt()).abs() < 0.01, "{before} {}", flow.window);
    // d_a was d_m: alpha_min and beta_max.
    let before = flow.window;
    round(&mut flow, &mut una, half);
    assert!((flow.alpha - 0.3).abs() < 1e-9 && flow.beta == 0.5, "{} {}", flow.alpha, flow.beta);
    assert!((flow.window - before - 0.3).abs() < 0.01, "{before} {}", flow.window);
    // d_a was half of d_m.
    round(&mut flow, &mut una, half);
    assert!((flow.alpha - 0.306_185_567 / 0.520_618_557).abs() < 1e-8, "{}", flow.alpha);
    let beta = (0.05 + 0.375 * 0.5) / 0.7;
    assert!((flow.beta - beta).abs() < 1e-12, "{}", flow.beta);
    flow.on_congestion(&Congestion::of(Signal::Loss, 80 * MSS));
    assert!((flow.window - 80.0 * (1.0 - beta)).abs() < 1e-9, "{}", flow.window);
}

#[test]
fn after_delay_alpha_waits_for_theta_calm_windows_in_a_row() {
    let (mut flow, mut una) = (flow(&Config::default(), 100), 0);
    let (near, far) = (Duration::from_us(200), Duration::from_us(100));
    let mut play = |rtts: &[Duration]| -> Vec<bool> {
        let mut at_max = |&rtt: &Duration| {
            round(&mut flow, &mut una, rtt);
            flow.alpha == 10.0
        };
        rtts.iter().map(&mut at_max).collect()
    };
    // What a window has seen counts from the next on.
    assert_eq!(play(&[far, far, near, near]), [false, true, true, false]);
    // Four calm windows are too few, and count for nothing after one that is not.
    assert_eq!(play(&[far, far, far, far, near, far]), [false; 6]);
    assert_eq!(play(&[far, far, far, far, far]), [false, false, false, false, true]);
}

#[test]
fn it_is_standard_tcp_in_slow_start_with_small_windows_and_after_a_timeout() {
    let (mut slow, mut una) = (Config::default().start(Start::of(10, MSS)), 0);
    for window in [20, 40, 80] {
        round(&mut slow, &mut una, Duration::from_us(100));
        assert_eq!(slow.window_bytes(), window * MSS);
    }
    slow.on_congestion(&Congestion::of(Signal::Loss, 80 * MSS));
    assert_eq!(slow.window_bytes(), 40 * MSS);

    let mut small = flow(&Config::default(), 14);
    let mut una = 0;
    round(&mut small, &mut una, Duration::from_us(100));
    assert!(small.window > 14.9 && small.window < 15.0, "{}", small.window);
    round(&mut small, &mut una, Duration::from_us(100));
    assert_eq!((small.alpha, small.beta), (1.0, 0.5));

    let (mut late, mut una) = (flow(&Config::default(), 100), 0);
    for _ in 0..2 {
        round(&mut late, &mut una, Duration::from_us(100));
    }
    assert_eq!((late.alpha, late.beta), (10.0, 0.125));
    late.on_congestion(&Congestion::of(Signal::Timeout { again: false }, 100 * MSS));
    assert_eq!((late.window, late.threshold, late.alpha, late.beta), (1.0, 50.0, 1.0, 0.5));
    late.on_congestion(&Congestion::of(Signal::Timeout { again: true }, MSS));
    assert_eq!((late.window, late.threshold), (1.0, 50.0));
}

/// Beside a NewReno flow that loses whenever it does, on a path of `path` segments with as large a buffer. A loss
/// takes half of either window, so windows at losses are as their growths between losses, 1 and alpha's average.
/// The queue `d` grows from 0 to 1 by `f_1(d) + 1` a round trip, so that alpha's average is the integral of `f_1 /
/// (f_1 + 1)` over that of `1 / (f_1 + 1)`, with `f_1 = kappa_1 / (kappa_2 + d)`: `l / (1 - l)`, where `l = kappa_1
/// ln((kappa_1 + kappa_2 + 1) / (kappa_1 + kappa_2))`.
#[test]
fn beside_newreno_its_window_at_losses_is_the_average_of_alpha() {
    let (kappa_1, kappa_2) = (0.306_185_567, 0.020_618_557);
    let l = kappa_1 * libm::log((kappa_1 + kappa_2 + 1.0) / (kappa_1 + kappa_2));
    let wanted = l / (1.0 - l);

    let path = 2_000.0;
    let (mut illinois, mut una) = (flow(&Config::default(), 1_000), 0);
    let mut newreno = NewReno::new(Start::of(0, MSS), &SlowStart::Standard);
    newreno.reduce(1_000 * MSS);
    let (mut peaks, mut losses) = ([0.0; 2], 0);
    while losses < 40 {
        let queued = illinois.window + (newreno.window_bytes() / MSS) as f64 - path;
        let rtt = Duration::from_us(100).mul_f64(1.0 + queued.max(0.0) / path);
        round(&mut illinois, &mut una, rtt);
        for _ in 0..newreno.window_bytes() / MSS {
            newreno.on_ack(&Ack::of(MSS));
        }
        if queued > path {
            losses += 1;
            if losses > 20 {
                peaks[0] += illinois.window;
                peaks[1] += (newreno.window_bytes() / MSS) as f64;
            }
            for flow in [&mut illinois as &mut dyn Control, &mut newreno] {
                flow.on_congestion(&Congestion::of(Signal::Loss, flow.window_bytes()));
            }
        }
    }
    let share = peaks[0] / peaks[1];
    assert!((share / wanted - 1.0).abs() < 0.03, "{share}, in theory {wanted}");
}
