use super::*;

const BOUNDS: Bounds = Bounds {
    min: Duration::from_us(100),
    max: Duration::from_ms(1),
    granularity: Duration::from_us(1),
    variance_min: Duration::ZERO,
};

#[test]
fn the_estimate_follows_rfc_6298() {
    let mut rtt = Rtt::new(Duration::from_us(50));
    assert_eq!(rtt.timeout(&BOUNDS), Duration::from_us(150));
    // (2.2): SRTT = 80, RTTVAR = 40, RTO = 80 + 4 x 40.
    rtt.sample(Duration::from_us(80));
    assert_eq!((rtt.smoothed(), rtt.timeout(&BOUNDS)), (Duration::from_us(80), Duration::from_us(240)));
    // (2.3): RTTVAR = 3/4 x 40 + 1/4 x |80 - 160| = 50, then SRTT = 7/8 x 80 + 1/8 x 160 = 90.
    rtt.sample(Duration::from_us(160));
    assert_eq!((rtt.smoothed(), rtt.timeout(&BOUNDS)), (Duration::from_us(90), Duration::from_us(290)));
}

#[test]
fn a_steady_path_ends_at_the_bounds_and_the_granularity() {
    let mut rtt = Rtt::new(Duration::from_us(50));
    for _ in 0..100 {
        rtt.sample(Duration::from_us(40));
    }
    assert_eq!(rtt.timeout(&BOUNDS), Duration::from_us(100));
    let loose = Bounds { min: Duration::ZERO, ..BOUNDS };
    assert_eq!(rtt.timeout(&loose), Duration::from_us(41));
}

#[test]
fn the_timeout_doubles_until_its_maximum_or_a_sample() {
    let mut rtt = Rtt::new(Duration::from_us(50));
    let mut timeouts = Vec::new();
    for _ in 0..4 {
        timeouts.push(rtt.timeout(&BOUNDS));
        rtt.back_off();
    }
    assert_eq!(timeouts, [150, 300, 600, 1000].map(Duration::from_us));
    for _ in 0..100 {
        rtt.back_off();
    }
    assert_eq!(rtt.timeout(&BOUNDS), BOUNDS.max);
    rtt.sample(Duration::from_us(50));
    assert_eq!(rtt.timeout(&BOUNDS), Duration::from_us(150));
}

#[test]
fn linux_adds_its_least_to_the_round_trip() {
    let linux = Bounds { variance_min: Duration::from_us(200), ..BOUNDS };
    let mut rtt = Rtt::new(Duration::from_us(50));
    assert_eq!(rtt.timeout(&linux), Duration::from_us(250));
    // Four times a variance of 60 is more.
    rtt.sample(Duration::from_us(120));
    assert_eq!(rtt.timeout(&linux), Duration::from_us(360));
    let mut rtt = Rtt::new(Duration::from_us(50));
    for _ in 0..100 {
        rtt.sample(Duration::from_us(40));
    }
    assert_eq!(rtt.timeout(&linux), Duration::from_us(240));
}
