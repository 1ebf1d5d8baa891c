use super::*;
use proptest::prelude::*;

const HEADROOM: f64 = 0.25;

fn gbps(guarantee: u64, rate: u64, arrived: u64) -> Usage {
    let [guarantee, rate, arrived] = [guarantee, rate, arrived].map(Rate::from_gbps);
    Usage { guarantee, rate, arrived, capped: false }
}

const PATH: Path = Path::simulated(Duration::from_us(60), Bytes(1_500));

fn reallocated(entities: &[Usage]) -> Vec<f64> {
    reallocate(Rate::from_gbps(10), HEADROOM, entities).iter().map(|r| r.bps() as f64 / 1e9).collect()
}

#[test]
fn limits_of_section_6() {
    let at = |limit: Limit, gbps| limit.bytes(Bytes(1_000_000), Rate::from_gbps(gbps), Rate::from_gbps(10), PATH).get();
    assert_eq!([at(Limit::Queue, 1), at(Limit::Queue, 10)], [1_000_000; 2]);
    let divided = Limit::Divided { min: Some(Bytes(150_000)) };
    assert_eq!([at(divided, 1), at(divided, 2), at(divided, 10)], [150_000, 200_000, 1_000_000]);
    assert_eq!(at(Limit::Fixed { bytes: Bytes(7_000) }, 1), 7_000);
}

#[test]
fn limits_that_no_row_holds_are_refused() {
    let check = |limit: Limit, queue| limit.check(Bytes(queue), PATH.mtu).map_err(|problem| problem.key);
    assert!(check(Limit::Queue, 1_000_000).is_ok());
    assert_eq!(check(Limit::Queue, 64 << 20), Err("queue".into()));
    assert_eq!(check(Limit::Divided { min: Some(Bytes(0)) }, 10_000), Err("divided.min".into()));
    assert!(check(Limit::Fixed { bytes: Bytes(9_000) }, 64 << 20).is_ok());
    // No full packet would ever pass.
    assert_eq!(check(Limit::Fixed { bytes: Bytes(1_499) }, 10_000), Err("fixed.bytes".into()));
}

#[test]
fn derived_limits_follow_rate_round_trip_and_mtu() {
    let least = |bps, rtt_us| Path { rtt: Duration::from_us(rtt_us), ..PATH }.least_limit(Rate::from_bps(bps)).get();
    // Eight packets, and three milliseconds' worth: 12,000 + 75; 12,000 + 37,500; rounded up by a sixteenth at
    // most.
    for (bps, want) in [(200_000, 12_075.0), (100_000_000, 49_500.0)] {
        let got = least(bps, 60) as f64;
        assert!((1.0..1.0 + 1.0 / 16.0).contains(&(got / want)), "{got} for {want}");
    }
    // 10 Gbps over 1 ms: B = 1.25 MB, B^2 / (18 M) = 57.9 MB; over 20 us the timer's 3.75 MB are more.
    assert!((57.8e6..61.6e6).contains(&(least(10_000_000_000, 1_000) as f64)));
    assert!((3.75e6..4.0e6).contains(&(least(10_000_000_000, 20) as f64)));
    // Never more than the queue. A share of the queue that exceeds the derived limit is used.
    let at = |bps, queue| Limit::Derived.bytes(Bytes(queue), Rate::from_bps(bps), Rate::from_gbps(10), PATH).get();
    assert_eq!(at(5_000_000_000, 1_000_000), 1_000_000);
    assert_eq!(at(1_000_000_000, 16_000_000), 1_638_400, "a tenth of the queue, to five bits");
}

#[test]
fn a_derived_threshold_holds_a_window_that_comes_at_once() {
    // 60 us at 10 Gbps are 75 KB, and the deficit 938 KB, more than a limit of 1 MB has: a seventh and two packets
    // on a link of the same rate; nine tenths more on one of 100.
    let limit = Bytes(1_000_000);
    let at = |gbps| PATH.threshold(Rate::from_gbps(10), Rate::from_gbps(gbps), limit).get() as f64;
    for (gbps, want) in [(10, 75e3 / 7.0 + 3e3), (100, 75e3 / 7.0 + 3e3 + 67.5e3)] {
        assert!((1.0..1.0 + 1.0 / 16.0).contains(&(at(gbps) / want)), "{} for {want}", at(gbps));
    }
    // At 5 Gbps it is 234 KB and 38 KB, which fit: three quarters of the limit.
    assert_eq!(PATH.threshold(Rate::from_gbps(5), Rate::from_gbps(10), limit), Bytes(750_000));
    // Never as much as the limit, whatever that is.
    assert_eq!(PATH.threshold(Rate::from_gbps(5), Rate::from_gbps(10), Bytes(8_000)), Bytes(6_000));
}

#[test]
fn silence_is_a_round_trip_through_a_full_queue_and_a_doubled_timer() {
    let wait = Duration::from_us(800);
    assert_eq!(PATH.silence(Rate::from_gbps(1), wait), Duration::from_us(60 + 800 + 2_000));
    // 1,500 B at 200 Kbps are 60 ms.
    assert_eq!(PATH.silence(Rate::from_bps(200_000), wait), Duration::from_us(60 + 800 + 120_000));
}

#[test]
fn grains_are_few_and_never_less() {
    let mut seen: Vec<u64> = (1..100_000).map(|bytes| grain(Bytes(bytes)).get()).collect();
    assert!((1u64..).zip(&seen).all(|(bytes, &grain)| grain >= bytes && grain * 16 <= bytes * 17));
    seen.dedup();
    assert!(seen.len() < 16 * 17, "{}", seen.len());
}

#[test]
fn a_capped_entity_never_gets_more_than_its_guarantee() {
    let capped = Usage { capped: true, ..gbps(4, 4, 9) };
    assert_eq!(reallocated(&[capped, gbps(6, 6, 1)]), [4.0, 6.0]);
    assert_eq!(reallocated(&[capped, gbps(6, 6, 9)]), [4.0, 6.0]);
    // Its own rest goes to others all the same.
    assert_eq!(reallocated(&[Usage { arrived: Rate::from_gbps(1), ..capped }, gbps(6, 6, 9)]), [1.25, 8.75]);
    assert_eq!(reallocated(&[capped]), [4.0]);
}

#[test]
fn bypass_is_for_an_empty_queue_and_only_if_asked() {
    let periodic = WorkConserving::Reallocate { period: Duration::from_ms(1), headroom: HEADROOM };
    assert!(WorkConserving::Bypass.bypasses(Bytes(0)) && !WorkConserving::Bypass.bypasses(Bytes(1)));
    assert!(!periodic.bypasses(Bytes(0)));
    assert!(periodic.check().is_ok());
    assert!(WorkConserving::Reallocate { period: Duration::ZERO, headroom: HEADROOM }.check().is_err());
    assert!(WorkConserving::Reallocate { period: Duration::from_ms(1), headroom: f64::NAN }.check().is_err());
}

#[test]
fn whoever_wants_more_gets_what_others_leave() {
    // The idle entity keeps a quarter of its 5 for waking up: 1.25.
    assert_eq!(reallocated(&[gbps(5, 5, 5), gbps(5, 5, 0)]), [8.75, 1.25]);
    // One uses 2 of 5 and keeps 2.5.
    assert_eq!(reallocated(&[gbps(5, 5, 5), gbps(5, 5, 2)]), [7.5, 2.5]);
    // Both want all: each its guarantee.
    assert_eq!(reallocated(&[gbps(6, 9, 9), gbps(4, 1, 1)]), [6.0, 4.0]);
}

#[test]
fn a_steady_entity_keeps_its_rate() {
    // It uses 2 of 5, then of the 2.5 that it keeps. A quarter more than its use is what it already has, so it gets
    // no more.
    assert_eq!(reallocated(&[gbps(5, 5, 5), gbps(5, 5, 2)]), [7.5, 2.5]);
    let steady = Usage { rate: Rate::from_bps(2_500_000_000), ..gbps(5, 5, 2) };
    assert_eq!(reallocated(&[Usage { rate: Rate::from_bps(7_500_000_000), ..gbps(5, 5, 9) }, steady]), [7.5, 2.5]);
    // At nine tenths of its rate it wants more.
    let more = Usage { arrived: Rate::from_bps(2_250_000_000), ..steady };
    assert_eq!(reallocated(&[gbps(5, 7, 9), more]), [5.0, 5.0]);
}

#[test]
fn a_guarantee_is_back_after_one_period() {
    assert_eq!(reallocated(&[gbps(5, 9, 9), gbps(5, 1, 3)]), [5.0, 5.0]);
}

#[test]
fn what_nobody_wants_is_divided_by_guarantee() {
    // They want 1.5 and 0.5 (a quarter of 2 is the least). 8 are left and divided 3:1.
    assert_eq!(reallocated(&[gbps(6, 6, 0), gbps(2, 2, 0)]), [7.5, 2.5]);
}

proptest! {
    #[test]
    fn fills_the_link_and_starves_nobody(
        uses in prop::collection::vec((1_000_000u64..1_000_000_000, 1u64..4_000_000_000, 0u64..8_000_000_000),
            1..10)
    ) {
        let capacity = 10_000_000_000;
        let entities: Vec<Usage> = uses
            .iter()
            .map(|&(guarantee, rate, arrived)| Usage {
                guarantee: Rate::from_bps(guarantee),
                rate: Rate::from_bps(rate),
                arrived: Rate::from_bps(arrived),
                capped: false,
            })
            .collect();
        let rates = reallocate(Rate::from_bps(capacity), HEADROOM, &entities);
        let sum: u64 = rates.iter().map(|r| r.bps()).sum();
        prop_assert!(sum <= capacity && sum + 2 * rates.len() as u64 >= capacity);
        for (entity, rate) in entities.iter().zip(&rates) {
            prop_assert!(*rate >= entity.guarantee.min(entity.arrived));
        }
    }
}
