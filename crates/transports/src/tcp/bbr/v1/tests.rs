use proptest::prelude::*;

use super::super::super::control::{Algorithm, RateSample};
use super::super::testing::*;
use super::*;

/// With the draft's times.
fn start(start: Start) -> V1 {
    let times = Config::default().times(Duration::from_ms(200));
    V1::new(Config::default(), times, start)
}

fn flow() -> V1 {
    start(Start::of(10, MSS))
}

/// A flow in PROBE_BW, and the time by which it is there.
fn steady(seed: u64) -> (V1, u64) {
    let mut flow = start(Start { seed, ..Start::of(10, MSS) });
    let mut at = 10;
    while !matches!(flow.state, State::ProbeBw { .. }) {
        flow.on_ack(&ack(at, 10));
        at += 1;
    }
    (flow, at)
}

proptest! {
    #[test]
    fn the_filter_keeps_the_greatest_of_the_last_rounds(
        samples in proptest::collection::vec((0u64..3, 1u64..50), 1..60),
    ) {
        let (mut filter, mut all, mut round) = (MaxFilter::default(), Vec::new(), 0);
        for (rounds, bps) in samples {
            round += rounds;
            filter.add(round, Rate::from_bps(bps), 10);
            all.push((round, bps));
            let max = all.iter().filter(|sample| sample.0 + 10 > round).map(|sample| sample.1).max().unwrap();
            prop_assert_eq!(filter.max().bps(), max);
        }
    }
}

#[test]
fn startup_ends_after_three_round_trips_without_growth() {
    let mut flow = flow();
    // The initial window in the unloaded round trip (10 us), times the gain.
    assert_eq!(flow.pacing_rate, Rate::from_bps((8e9 * flow.config.high_gain) as u64));
    let mut at = 10;
    let mut rounds = 0;
    while flow.state == State::Startup {
        flow.on_ack(&ack(at, 40));
        rounds += u32::from(flow.round.start);
        at += 1;
    }
    // The first shows the rate, three more that it does not grow.
    assert_eq!((rounds, flow.state), (4, State::Drain));
    let drained = RATE.mul_f64(1.0 / flow.config.high_gain);
    assert!(flow.pacing_rate.bps().abs_diff(drained.bps()) <= 1);
    // Ten segments are the product, and three quanta more may be in flight.
    flow.on_ack(&ack(at, 15));
    assert_eq!(flow.state, State::Drain);
    flow.on_ack(&ack(at + 1, 14));
    assert!(matches!(flow.state, State::ProbeBw { .. }));
    assert_eq!(flow.cwnd, 23 * MSS);
}

#[test]
fn samples_of_a_limited_sender_count_only_if_they_are_greater() {
    let mut flow = flow();
    let sampled = |rate, limited| {
        let sample = RateSample {
            rate,
            limited,
            delivered_bytes: 0,
            delivered_before_bytes: 0,
            in_flight_bytes: MSS,
            lost_bytes: 0,
        };
        Ack { rate: Some(sample), ..Ack::of(MSS) }
    };
    for (gbps, limited, btlbw) in [(4, false, 4), (2, true, 4), (5, true, 5), (3, false, 5)] {
        flow.on_ack(&sampled(Rate::from_gbps(gbps), limited));
        assert_eq!(flow.btlbw.max(), Rate::from_gbps(btlbw));
    }
    for _ in 0..20 {
        flow.on_ack(&sampled(Rate::from_gbps(1), true));
    }
    assert_eq!(flow.btlbw.max(), Rate::from_gbps(5), "rounds pass, and nothing has been learnt");
}

#[test]
fn the_cycle_begins_anywhere_but_below_one() {
    let begins: std::collections::BTreeSet<usize> = (0..200)
        .map(|seed| match steady(seed).0.state {
            State::ProbeBw { cycle_index, .. } => cycle_index,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(begins.into_iter().collect::<Vec<_>>(), [0, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn in_recovery_what_arrives_makes_room_for_as_much_then_the_window_comes_back() {
    let (mut flow, mut at) = steady(1);
    for _ in 0..20 {
        flow.on_ack(&ack(at, 13));
        at += 1;
    }
    let before = flow.cwnd;
    assert_eq!(before, 23 * MSS);
    flow.on_ack(&Ack { lost_bytes: 3 * MSS, in_flight_bytes: 9 * MSS, ..ack(at, 13) });
    flow.on_congestion(&Congestion::of(Signal::Loss, 13 * MSS));
    assert_eq!(flow.cwnd, 10 * MSS, "in flight, and what has just arrived");
    for passed in 1..10 {
        flow.on_ack(&Ack { phase: Phase::Recovery, ..ack(at + passed, 10) });
        assert_eq!((flow.cwnd, flow.packet_conservation), (10 * MSS, true), "{passed}");
    }
    // A round trip later it grows again by what arrives, and shrinks by what is lost.
    flow.on_ack(&Ack { phase: Phase::Recovery, ..ack(at + 10, 10) });
    assert_eq!((flow.cwnd, flow.packet_conservation), (11 * MSS, false));
    flow.on_ack(&Ack { phase: Phase::Recovery, lost_bytes: 2 * MSS, ..ack(at + 11, 10) });
    assert_eq!(flow.cwnd, 10 * MSS);
    flow.on_ack(&ack(at + 12, 10));
    assert_eq!(flow.cwnd, before);
    assert_eq!(flow.btlbw.max(), RATE);

    flow.on_congestion(&Congestion::of(Signal::Timeout { again: false }, 10 * MSS));
    assert_eq!(flow.cwnd, MSS);
    flow.on_ack(&Ack { phase: Phase::Loss, ..ack(at + 13, 1) });
    assert_eq!(flow.cwnd, 4 * MSS, "BBRMinPipeCwnd");
    flow.on_ack(&ack(at + 14, 4));
    assert_eq!(flow.cwnd, before);
}

#[test]
fn probe_rtt_counts_from_when_the_pipe_is_all_but_empty() {
    let (mut flow, at) = steady(1);
    let late = at + 10_000_001;
    flow.on_ack(&Ack { rtt: Some(RTT * 2), ..ack(late, 13) });
    assert!(flow.is_probing_rtt() && flow.cwnd == 4 * MSS, "{:?}", flow.state);
    flow.on_ack(&Ack { rtt: Some(RTT * 2), ..ack(late + 5, 5) });
    // 200 ms from then on, and a round trip.
    flow.on_ack(&Ack { rtt: Some(RTT), ..ack(late + 200_005, 4) });
    assert!(flow.is_probing_rtt());
    flow.on_ack(&ack(late + 200_006, 4));
    assert!(!flow.is_probing_rtt());
    assert_eq!(flow.rtprop, Some((RTT, Time::from_us(late + 200_006))));
    assert_eq!(flow.cwnd, 23 * MSS);
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    let (good, long) = (Config::default(), Some(Duration::from_ms(10_000)));
    for (config, key) in [
        (Config { high_gain: 1.0, ..good.clone() }, "high_gain"),
        (Config { cwnd_gain: 0.9, ..good.clone() }, "cwnd_gain"),
        (Config { btlbw_filter_len: 0, ..good.clone() }, "btlbw_filter_len"),
        (Config { min_pipe_cwnd: 0, ..good.clone() }, "min_pipe_cwnd"),
        (
            Config { probe_rtt_duration: Some(Duration::from_ms(10_000)), rtprop_filter_len: long, ..good.clone() },
            "probe_rtt_duration",
        ),
    ] {
        assert_eq!(config.check().unwrap_err().key, key);
    }
}

#[test]
fn a_handshake_gives_the_first_round_trip() {
    let mut flow = flow();
    let before = flow.pacing_rate;
    flow.on_opened(Time::from_us(20), RTT * 2);
    assert_eq!(flow.rtprop, Some((RTT * 2, Time::from_us(20))));
    assert!(flow.pacing_rate.bps().abs_diff(before.bps() / 2) <= 1);
}
