use super::*;

const LINE: Rate = Rate::from_gbps(100);

fn control(config: &Config) -> Dcqcn {
    config.start(Start { now: Time::ZERO, line: LINE, rtt: Duration::from_us(5) })
}

/// Wakes it whenever it wants, up to `end`.
fn run(control: &mut Dcqcn, end: Time) {
    while let Some(at) = control.deadline().filter(|&at| at <= end) {
        control.wake(at);
    }
}

#[test]
fn alpha_after_n_updates_is_a_geometric_series() {
    let us = Time::from_us;
    let g: f64 = 1.0 / 256.0;
    let mut control = control(&Config::default());
    control.on_cnp(us(0));
    // Without another notification: (1 - g)^n.
    for n in [1, 7, 300, 2_000] {
        assert!((control.alpha(us(n)) - libm::pow(1.0 - g, n as f64)).abs() < 1e-12, "{n}");
    }
    // With one an interval from then on: 1 - (1 - alpha) (1 - g)^n.
    let before = control.alpha(us(2_000));
    for n in 0..700u64 {
        control.on_cnp(us(2_000 + n) + Duration::from_ns(500));
        let alpha = control.alpha(us(2_001 + n));
        let wanted = 1.0 - (1.0 - before) * libm::pow(1.0 - g, (n + 1) as f64);
        assert!((alpha - wanted).abs() < 1e-9, "{n}: {alpha} {wanted}");
    }
}

#[test]
fn cuts_come_on_a_clock_if_notifications_did() {
    let us = Time::from_us;
    let mut control = control(&Config::default());
    control.on_cnp(us(10));
    assert_eq!((control.rate(), control.deadline()), (LINE, Some(us(14))));
    run(&mut control, us(15));
    let g: f64 = 1.0 / 256.0;
    let factor = 1.0 - libm::pow(1.0 - g, 4.0) / 2.0;
    assert!((control.rate().bps() as f64 / 100e9 - factor).abs() < 1e-9);
    // None in the next interval: no cut at 18 us. One at 21 us: a cut at 22 us.
    run(&mut control, us(21));
    assert_eq!(control.deadline(), Some(us(14 + 900)));
    control.on_cnp(us(21));
    assert_eq!(control.deadline(), Some(us(22)));
    // Before any increase the target stays.
    run(&mut control, us(30));
    assert_eq!(control.target(), LINE);
    assert_eq!(control.deadline(), Some(us(22 + 900)));
}

#[test]
fn recovery_is_fast_then_additive_then_hyper() {
    let ms = Time::from_ms;
    let mut control = control(&Config { increase_timer: Duration::from_ms(1), g: 1.0, ..Config::default() });
    let rates = |control: &Dcqcn| (control.rate().bps() / 1_000, control.target().bps() / 1_000);
    control.on_cnp(Time::ZERO);
    // With g = 1, alpha is whether a notification came in the last interval.
    control.on_cnp(Time::from_ns(3_500));
    run(&mut control, Time::from_us(4));
    assert_eq!(rates(&control), (50_000_000, 100_000_000));
    run(&mut control, ms(1) + Duration::from_us(4));
    assert_eq!(rates(&control), (75_000_000, 100_000_000));
    // After an increase, a cut makes the rate before it the target.
    control.on_cnp(ms(1) + Duration::from_ns(7_500));
    run(&mut control, ms(1) + Duration::from_us(8));
    assert_eq!(rates(&control), (37_500_000, 75_000_000));
    run(&mut control, ms(2) + Duration::from_us(8));
    assert_eq!(rates(&control), (56_250_000, 75_000_000)); // fast recovery
    run(&mut control, ms(3) + Duration::from_us(8));
    assert_eq!(rates(&control), (65_650_000, 75_050_000)); // additive: 50 Mbps
    run(&mut control, ms(4) + Duration::from_us(8));
    assert_eq!(rates(&control), (70_400_000, 75_150_000)); // hyper: 100 Mbps
}

#[test]
fn bytes_increase_the_rate_too_and_hyper_increase_needs_both() {
    let byte_counter = Some(Bytes(1_500_000));
    let mut control = control(&Config { byte_counter, g: 1.0, ..Config::default() });
    control.on_cnp(Time::ZERO);
    control.on_cnp(Time::from_ns(3_500));
    run(&mut control, Time::from_us(4));
    let rate = |control: &Dcqcn| control.rate().bps() / 1_000;
    (0..999).for_each(|_| control.on_sent(1500));
    assert_eq!(rate(&control), 50_000_000);
    control.on_sent(1500);
    assert_eq!(rate(&control), 75_000_000);
    // The timer has not fired: however many follow, the target grows by 50 Mbps at most, here not beyond the line.
    (0..5_000).for_each(|_| control.on_sent(1500));
    assert_eq!((control.by_timer, control.by_bytes, control.target()), (0, 6, LINE));
}

#[test]
fn the_rate_stays_between_its_least_and_the_link_s() {
    let mut control = control(&Config { g: 1.0, ..Config::default() });
    control.on_cnp(Time::ZERO);
    for ns in (500..200_000).step_by(1_000) {
        run(&mut control, Time::from_ns(ns));
        control.on_cnp(Time::from_ns(ns));
    }
    run(&mut control, Time::from_us(210));
    assert_eq!(control.rate(), Config::default().rate_min);
    run(&mut control, Time::from_ms(3_000));
    assert_eq!((control.rate(), control.deadline()), (LINE, None));
}
