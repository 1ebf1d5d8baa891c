use units::Bytes;

use super::*;

const PACKET: Duration = Duration::from_ns(120);

/// After k arrivals that find L bytes: L (1 - (1 - 2^-n)^k). After m packets' time of idleness: (1 - 2^-n)^m of that.
#[test]
fn the_average_is_a_geometric_series_and_decays_while_idle() {
    for exponent in [1u8, 4, 9] {
        let keeps = 1.0 - 1.0 / f64::from(1u32 << exponent);
        let mut average = Average::default();
        for arrivals in 1..2_000 {
            average.arrives(Time::from_us(arrivals), 100_000, exponent, PACKET);
            let expected = 100_000.0 * (1.0 - keeps.powi(arrivals as i32));
            assert!((average.bytes - expected).abs() < 1e-6, "{exponent}, {arrivals}: {} {expected}", average.bytes);
        }
        let (full, left_at) = (average.bytes, Time::from_us(2_000));
        average.empties(left_at);
        // 37 packets could have left, and half of another.
        average.arrives(left_at + Duration::from_ns(4_500), 0, exponent, PACKET);
        let expected = full * keeps.powi(37);
        assert!((average.bytes - expected).abs() < 1e-6, "{} {expected}", average.bytes);
        average.arrives(left_at + Duration::from_us(5), 40_000, exponent, PACKET);
        let expected = expected * keeps + 40_000.0 * (1.0 - keeps);
        assert!((average.bytes - expected).abs() < 1e-6, "{} {expected}", average.bytes);
    }
}

fn curve(min: u64, max: u64, probability_max: f64, mark: bool, drop: bool) -> Curve {
    Curve { hits: Marking::Ramp { min: Bytes(min), max: Bytes(max), probability_max, per: None }, mark, drop }
}

/// How many of 40,000 packets are marked and lost, at a length halfway up the ramp of each colour.
#[test]
fn each_colour_has_its_own_ramp() {
    let curves = [
        curve(100_000, 200_000, 0.1, true, true),
        curve(50_000, 100_000, 0.4, true, false),
        curve(10_000, 50_000, 1.0, false, true),
    ];
    let wred = Wred { curves, average: None, at_departure: false };
    let rate = Rate::from_gbps(100);
    let mut random = Stream::new(1, 2, "wred");
    let count = 40_000;
    for (colour, length, capable, marked, lost) in [
        (Colour::Green, 150_000, true, 0.05, 0.0),
        (Colour::Green, 150_000, false, 0.0, 0.05),
        (Colour::Green, 100_000, true, 0.0, 0.0),
        (Colour::Yellow, 75_000, true, 0.2, 0.0),
        (Colour::Yellow, 75_000, false, 0.0, 0.0),
        (Colour::Yellow, 100_001, true, 1.0, 0.0),
        // Not marked, so lost, though it could have been.
        (Colour::Red, 30_000, true, 0.0, 0.5),
        (Colour::Red, 30_000, false, 0.0, 0.5),
    ] {
        let (mut marks, mut losses) = (0, 0);
        for _ in 0..count {
            let loses = wred.loses(colour, capable, rate, length, &mut random);
            losses += u32::from(loses);
            marks += u32::from(!loses && capable && wred.marks(colour, rate, length, &mut random));
        }
        for (found, share) in [(marks, marked), (losses, lost)] {
            let (expected, spread) = (share * f64::from(count), (share * (1.0 - share) * f64::from(count)).sqrt());
            assert!((f64::from(found) - expected).abs() <= 4.5 * spread, "{colour:?}, {capable}: {found} {expected}");
        }
    }
}

/// Packets of 1,000 bytes every microsecond, 8 Gbps: how many of each colour.
fn coloured(meter: &Meter, packets: u64) -> [u64; 3] {
    let (mut buckets, mut count) = (Buckets::default(), [0; 3]);
    for number in 1..=packets {
        let colour = buckets.colour(meter, Time::from_us(number), 1_000, Colour::Green);
        count[colour as usize] += 1;
    }
    count
}

/// RFC 2697: of n packets, green are the burst and the committed rate, yellow the excess burst once.
#[test]
fn a_single_rate_meter_colours_by_its_two_bursts() {
    let meter = Meter { committed: (Rate::from_gbps(2), 50_000), peak: None, excess: 30_000 };
    let [green, yellow, red] = coloured(&meter, 4_000);
    // 50 packets and a quarter of all.
    assert!(green.abs_diff(50 + 1_000) <= 1, "{green}");
    assert_eq!((yellow, red), (30, 4_000 - green - 30));
    // The excess fills again only once the committed bucket is full: 50 kB at 2 Gbps take 200 us.
    let mut buckets = Buckets::default();
    for number in 0..200u64 {
        buckets.colour(&meter, Time::from_ns(number), 1_000, Colour::Green);
    }
    let later = |us: u64, buckets: &mut Buckets| {
        (0..100u64).map(|_| buckets.colour(&meter, Time::from_us(us), 1_000, Colour::Green)).collect::<Vec<_>>()
    };
    let mut after = buckets;
    let colours = later(200, &mut after);
    assert_eq!(colours.iter().filter(|colour| **colour == Colour::Yellow).count(), 0);
    let mut after = buckets;
    let colours = later(201 + 80, &mut after);
    assert_eq!(colours.iter().filter(|colour| **colour == Colour::Green).count(), 50);
    assert_eq!(colours.iter().filter(|colour| **colour == Colour::Yellow).count(), 20);
}

/// RFC 2698: green by the committed rate, yellow what the peak rate has beyond, red the rest.
#[test]
fn a_two_rate_meter_colours_by_its_two_rates() {
    let meter = Meter { committed: (Rate::from_gbps(2), 20_000), peak: Some(Rate::from_gbps(6)), excess: 40_000 };
    let [green, yellow, red] = coloured(&meter, 4_000);
    // Green and yellow together: 40 packets and three quarters of all.
    assert!((green + yellow).abs_diff(40 + 3_000) <= 1, "{green} {yellow} {red}");
    assert!(green.abs_diff(20 + 1_000) <= 2, "{green}");
}

#[test]
fn a_meter_never_makes_a_colour_better() {
    for peak in [None, Some(Rate::from_gbps(100))] {
        let meter = Meter { committed: (Rate::from_gbps(100), 1_000_000), peak, excess: 1_000_000 };
        for before in Colour::ALL {
            let mut buckets = Buckets::default();
            assert_eq!(buckets.colour(&meter, Time::from_us(1), 1_000, before), before);
        }
    }
}
