use super::*;

#[test]
fn quantiles_are_those_of_what_was_noted() {
    let mut lateness = Lateness::default();
    for micros in 0..100 {
        lateness.note(Duration::from_us(micros) + Duration::from_ns(500));
    }
    for (share, micros) in [(0.5, 49.5), (0.99, 98.5), (1.0, 99.5)] {
        let quantile = lateness.quantile(share).us_f64();
        assert!((quantile / micros - 1.0).abs() < 0.01, "{share}: {quantile} for {micros}");
    }
    lateness.note(Duration::from_ms(5_000));
    assert!((lateness.max().us_f64() / 5e6 - 1.0).abs() < 0.01, "{}", lateness.max());
}

#[test]
fn a_dilated_clock_is_slow_and_one_that_is_too_late_is_set_back() {
    let (real, slow) = (Clock::new(1, Duration::ZERO), Clock::new(1_000, Duration::ZERO));
    std::thread::sleep(std::time::Duration::from_millis(1));
    assert_eq!((real.now(), real.machine()), (Time::ZERO, std::time::Duration::ZERO), "it has not begun");
    real.start();
    slow.start();
    std::thread::sleep(std::time::Duration::from_millis(30));
    assert!(slow.now() >= Time::from_us(30) && slow.now() < real.now());
    let before = real.now();
    assert_eq!(real.forgive(before, before), Duration::ZERO, "nothing is late");
    let stood = real.forgive(Time::ZERO, before);
    assert!(stood >= Duration::from_ms(20) && real.stood() > Duration::ZERO);
    // What is due at zero is now late by what is allowed, and by what has passed since.
    assert!(real.now() >= Time::ZERO + CREDIT && real.now() < before + Duration::from_ms(5_000));
    assert_eq!(real.until(Time::ZERO), std::time::Duration::ZERO);
    let second = slow.until(slow.now() + Duration::from_ms(1));
    assert!(second.as_secs_f64() > 0.9 && second.as_secs_f64() <= 1.0, "{second:?}");
}

#[test]
fn a_clock_that_jumps_is_never_late() {
    let clock = Clock::jumping();
    assert_eq!(clock.come_to(Time::from_ms(7)), Some(Time::from_ms(7)));
    assert_eq!((clock.now(), clock.told_at(Time::from_ms(7))), (Time::from_ms(7), Time::from_ms(7)));
}
