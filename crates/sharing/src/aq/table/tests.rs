use super::*;
use contract::CongestionSignal;
use proptest::prelude::*;
use std::collections::BTreeMap;
use units::Rate;

fn id(tag: u32) -> AqId {
    AqId::from_tag(tag).unwrap()
}

fn rate(gbps: u64) -> AqRate {
    AqRate::nearest(Rate::from_gbps(gbps)).unwrap()
}

fn limit(bytes: u64) -> Policy {
    Policy::new(Bytes(bytes), CongestionSignal::Drop).unwrap()
}

fn random() -> Stream {
    Stream::new(1, 0, "aq")
}

#[test]
fn what_is_lent_yields_to_the_physical_queue_and_counts_all_the_same() {
    let plain = Policy::new(Bytes(100_000), CongestionSignal::Drop).unwrap();
    let lent = |feedback| plain.with_room(Some(Bytes(20_000)), feedback);
    let rate = AqRate::nearest(Rate::from_gbps(10)).unwrap();
    let arrive = |policy: Policy, queued| {
        let mut table = Table::default();
        table.deploy(Time::ZERO, id(1), rate, policy).unwrap();
        let verdict = table.arrive_at(Time::ZERO, id(1), 1_500, queued, false, &mut random());
        (verdict.pass, verdict.told, table.get(Time::ZERO, id(1)).unwrap().1.bytes().get())
    };
    assert_eq!(arrive(plain, u32::MAX), (true, false, 1_500));
    assert_eq!(arrive(lent(CongestionSignal::Drop), 20_000), (true, false, 1_500));
    assert_eq!(arrive(lent(CongestionSignal::Drop), 20_001), (false, false, 1_500));
    assert_eq!(arrive(lent(CongestionSignal::Delay), 10_000), (true, false, 1_500));
    assert_eq!(arrive(lent(CongestionSignal::Delay), 10_001), (true, true, 1_500));
    assert_eq!(arrive(lent(CongestionSignal::Delay), 20_001), (false, false, 1_500));
}

#[test]
fn a_packet_moves_the_gap_of_its_own_aq_alone() {
    let mut table = Table::default();
    for tag in 1..=100 {
        table.deploy(Time::ZERO, id(tag), rate(1), limit(10_000)).unwrap();
    }
    assert!(table.arrive(Time::ZERO, id(7), 1_500, &mut random()).pass);
    for tag in 1..=100 {
        let bytes = if tag == 7 { 1_500 } else { 0 };
        assert_eq!(table.get(Time::ZERO, id(tag)).unwrap().1.bytes(), Bytes(bytes));
    }
    assert_eq!(table.arrive(Time::ZERO, id(101), 60_000, &mut random()), Verdict::UNTOUCHED, "not deployed here");
}

#[test]
fn a_new_rate_leaves_the_delay_and_a_new_limit_the_gap() {
    let mut table = Table::default();
    table.deploy(Time::ZERO, id(1), rate(10), limit(10_000)).unwrap();
    table.arrive(Time::ZERO, id(1), 9_000, &mut random());
    table.deploy(Time::ZERO, id(1), rate(1), limit(20_000)).unwrap();
    let (now, gap) = table.get(Time::ZERO, id(1)).unwrap();
    assert_eq!((now, gap.bytes(), table.len()), (rate(1), Bytes(900), 1));
    assert!(table.arrive(Time::ZERO, id(1), 19_100, &mut random()).pass, "the new limit holds");
    table.deploy(Time::ZERO, id(1), rate(1), limit(30_000)).unwrap();
    assert_eq!(table.get(Time::ZERO, id(1)).unwrap().1.bytes(), Bytes(20_000));
}

#[test]
fn sweeps_keep_long_idle_clocks_unambiguous() {
    let mut table = Table::default();
    table.deploy(Time::ZERO, id(1), rate(10), limit(10_000)).unwrap();
    table.arrive(Time::ZERO, id(1), 10_000, &mut random());
    let wrap = rate(10).wrap();
    assert_eq!(table.sweep_period(), wrap / 2);
    table.sweep(Time::ZERO + wrap / 2);
    table.sweep(Time::ZERO + wrap);
    assert_eq!(table.get(Time::ZERO + wrap, id(1)).unwrap().1.bytes(), Bytes(0));
}

#[test]
fn a_table_of_the_right_size_takes_18_75_bytes_an_aq() {
    let mut table = Table::for_entities(100_000);
    for tag in 1..=100_000 {
        table.deploy(Time::ZERO, id(tag), rate(1), limit(10_000)).unwrap();
    }
    let each = table.memory().get() as f64 / 100_000.0;
    assert!((18.75..18.76).contains(&each), "{each}");
}

#[test]
fn policies_run_out_with_a_reason_and_come_back() {
    let mut table = Table::for_entities(70_000);
    for tag in 1..=65_536 {
        table.deploy(Time::ZERO, id(tag), rate(1), limit(u64::from(tag))).unwrap();
    }
    assert_eq!(table.deploy(Time::ZERO, id(65_537), rate(1), limit(100_000)), Err(DeployError::Policies));
    assert_eq!(table.len(), 65_536);
    table.deploy(Time::ZERO, id(65_537), rate(1), limit(5)).unwrap();
    assert!(table.withdraw(id(9)));
    table.deploy(Time::ZERO, id(65_538), rate(1), limit(100_000)).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn swept_gaps_stay_exact_through_any_pause(
        code in 0u32..1 << 24,
        packets in prop::collection::vec((0u64..40, 0u64..1 << 20, 1u16..9_000), 1..20),
    ) {
        // Pauses of up to ten wraps and a bit; the gap times 2^(19+k) as an exact integer beside it.
        let rate = AqRate::from_code(code);
        let shift = rate.exponent() + 19;
        let mut table = Table::default();
        table.deploy(Time::ZERO, id(1), rate, limit(1_000_000)).unwrap();
        let (mut now, mut swept, mut exact) = (Time::ZERO, Time::ZERO, 0i128);
        for (quarters, ticks, bytes) in packets {
            let pause = rate.wrap() / 4 * quarters + Duration::from_ps(ticks << rate.exponent()) / 3;
            now += pause;
            while now - swept >= table.sweep_period() {
                swept += table.sweep_period();
                table.sweep(swept);
            }
            exact = (exact - i128::from(rate.mantissa()) * i128::from(pause.ps())).max(0);
            prop_assert!(table.arrive(now, id(1), bytes, &mut random()).pass);
            exact += i128::from(bytes) << shift;
            let (_, gap) = table.get(now, id(1)).unwrap();
            let error = (i128::from(gap.bytes) << shift) - exact;
            prop_assert!(error.abs() < 3i128 << shift, "{}", error >> shift);
        }
    }

    #[test]
    fn finds_what_a_map_would(steps in prop::collection::vec((1u32..60, 0u8..4), 1..300)) {
        let (mut table, mut map) = (Table::default(), BTreeMap::new());
        for (step, (tag, what)) in steps.into_iter().enumerate() {
            if what == 0 {
                prop_assert_eq!(table.withdraw(id(tag)), map.remove(&tag).is_some());
            } else {
                let gbps = 1 + step as u64 % 9;
                table.deploy(Time::ZERO, id(tag), rate(gbps), limit(1_000 * u64::from(what))).unwrap();
                map.insert(tag, gbps);
            }
            prop_assert_eq!(table.len(), map.len());
            for tag in 1..60 {
                let found = table.get(Time::ZERO, id(tag)).map(|(rate, _)| rate);
                prop_assert_eq!(found, map.get(&tag).map(|&gbps| rate(gbps)));
            }
        }
    }
}
