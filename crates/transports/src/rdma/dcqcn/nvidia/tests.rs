use units::Time;

use super::*;
use crate::rdma::control::{Algorithm, Control, Start};
use crate::rdma::dcqcn::Dcqcn;

const LINE: Rate = Rate::from_gbps(100);

fn control(nvidia: Nvidia) -> Dcqcn {
    let config = Config { nvidia: Some(nvidia), ..Config::default() };
    config.check().unwrap();
    config.start(Start { now: Time::ZERO, line: LINE, rtt: Duration::from_us(5) })
}

fn run(control: &mut Dcqcn, end: Time) {
    while let Some(at) = control.deadline().filter(|&at| at <= end) {
        control.wake(at);
    }
}

fn mbps_of(control: &Dcqcn) -> f64 {
    control.rate().bps() as f64 / 1e6
}

/// The page's formulas with its defaults: alpha begins at 1023/1024, and each microsecond keeps 1019/1024 of it. The
/// cut comes 4 us after the first notification and takes alpha, in 1,024ths, over 2^11.
#[test]
fn the_first_cut_is_that_of_the_published_formulas() {
    let mut control = control(Nvidia::default());
    control.on_cnp(Time::from_us(10));
    run(&mut control, Time::from_us(14));
    let alpha = 1023.0 / 1024.0 * libm::pow(1019.0 / 1024.0, 4.0);
    let expected = 100e3 * (1.0 - alpha * 1024.0 / 2048.0);
    assert!((mbps_of(&control) - expected).abs() < 0.001, "{} for {expected}", mbps_of(&control));
    assert_eq!(control.target(), LINE);
    // The first increase comes 300 us later, halfway to the target; with a threshold of 1 it only recovers.
    assert_eq!(control.deadline(), Some(Time::from_us(314)));
    run(&mut control, Time::from_us(314));
    assert!((mbps_of(&control) - (expected + 100e3) / 2.0).abs() < 0.001);
    // With a notification in an interval alpha moves to 1 by 5/1024 of the rest.
    let before = control.alpha(Time::from_us(400));
    control.on_cnp(Time::from_us(400));
    let expected = before * 1019.0 / 1024.0 + 5.0 / 1024.0;
    assert!((control.alpha(Time::from_us(401)) - expected).abs() < 1e-12);
}

/// With `rpg_gd` 10 a cut takes all of alpha, with 12 a quarter; `rpg_min_dec_fac` bounds what is taken.
#[test]
fn a_cut_is_alpha_over_a_power_of_two_and_keeps_its_least_share() {
    let alpha = 512.0 / 1024.0;
    let nvidia = Nvidia { dce_tcp_g: 1023, dce_tcp_rtt: 131_071, initial_alpha_value: 512, ..Nvidia::default() };
    for (gd, least, kept) in [
        (10, 0, 1.0 - alpha),
        (11, 0, 1.0 - alpha / 2.0),
        (12, 0, 1.0 - alpha / 4.0),
        (10, 70, 0.7),
        (8, 25, 0.25),
        (11, 100, 1.0),
    ] {
        let mut control = control(Nvidia { rpg_gd: gd, rpg_min_dec_fac: least, ..nvidia });
        control.on_cnp(Time::ZERO);
        run(&mut control, Time::from_us(4));
        assert!((mbps_of(&control) / 100e3 - kept).abs() < 1e-9, "{gd}, {least}: {}", mbps_of(&control));
    }
}

#[test]
fn the_first_notification_sets_rate_and_target() {
    let mut control = control(Nvidia { rate_to_set_on_first_cnp: 25_000, ..Nvidia::default() });
    assert_eq!(control.rate(), LINE);
    control.on_cnp(Time::ZERO);
    assert_eq!((control.rate(), control.target()), (Rate::from_gbps(25), Rate::from_gbps(25)));
    // Only the first.
    run(&mut control, Time::from_us(310));
    let rate = control.rate();
    control.on_cnp(Time::from_us(310));
    assert_eq!(control.rate(), rate);
}

/// `clamp_tgt_rate_after_time_inc` decides whether an increase by the timer lets the next cut set the target; one by
/// bytes always does.
#[test]
fn the_target_follows_the_rate_as_the_two_clamps_say() {
    let cut_again = |nvidia: Nvidia, bytes: bool| {
        let mut control = control(Nvidia { rpg_byte_reset: 1_500, ..nvidia });
        control.on_cnp(Time::ZERO);
        run(&mut control, Time::from_us(4));
        // An increase, by bytes before the timer's first.
        let at = if bytes { Time::from_us(100) } else { Time::from_us(304) };
        if bytes {
            control.on_sent(1_500);
        }
        run(&mut control, at);
        let before = control.rate();
        control.on_cnp(at + Duration::from_us(1));
        run(&mut control, at + Duration::from_us(8));
        (control.target() == before, control.target() == LINE)
    };
    let (on, off) = (true, false);
    let with = |clamp_tgt_rate, clamp_tgt_rate_after_time_inc| Nvidia {
        clamp_tgt_rate,
        clamp_tgt_rate_after_time_inc,
        ..Nvidia::default()
    };
    assert_eq!(cut_again(with(off, on), false), (true, false));
    assert_eq!(cut_again(with(off, off), false), (false, true));
    assert_eq!(cut_again(with(off, off), true), (true, false));
    assert_eq!(cut_again(with(on, off), false), (true, false));
}

/// From 60 Gbps on nothing is limited: the second half-step, 50 to 75 Gbps, passes it.
#[test]
fn at_the_greatest_rate_a_queue_pair_is_let_go() {
    let nvidia = Nvidia { dce_tcp_g: 1023, dce_tcp_rtt: 131_071, rpg_max_rate: 60_000, ..Nvidia::default() };
    let mut control = control(nvidia);
    control.on_cnp(Time::ZERO);
    run(&mut control, Time::from_us(4));
    assert!(mbps_of(&control) < 50_100.0);
    run(&mut control, Time::from_us(304));
    assert_eq!((control.rate(), control.target()), (LINE, LINE));
}

#[test]
fn values_out_of_their_range_and_keys_said_twice_are_refused() {
    let refused =
        |nvidia: Nvidia| Config { nvidia: Some(nvidia), ..Config::default() }.check().unwrap_err().to_string();
    let none = Nvidia::default();
    for (nvidia, words) in [
        (Nvidia { dce_tcp_g: 1024, ..none }, "nvidia.dce_tcp_g: 1024 is not between 0 and 1023"),
        (Nvidia { rpg_gd: 0, ..none }, "nvidia.rpg_gd: 0 is not between 1 and 15"),
        (Nvidia { rpg_min_dec_fac: 101, ..none }, "nvidia.rpg_min_dec_fac: 101"),
        (Nvidia { rpg_time_reset: 0, ..none }, "nvidia.rpg_time_reset: 0"),
        (Nvidia { rpg_min_rate: 0, ..none }, "nvidia.rpg_min_rate: 0"),
        (Nvidia { min_time_between_cnps: 5_000, ..none }, "nvidia.min_time_between_cnps: 5000"),
    ] {
        assert!(refused(nvidia).contains(words), "{}", refused(nvidia));
    }
    let both = Config { g: 0.5, nvidia: Some(none), ..Config::default() };
    assert!(both.check().unwrap_err().to_string().contains("write nvidia.dce_tcp_g instead"));
}
