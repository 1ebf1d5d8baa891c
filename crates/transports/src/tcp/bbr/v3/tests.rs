use proptest::prelude::*;

use super::super::super::control::Control;
use super::super::testing::*;
use super::super::{Config, Version};
use super::*;
use crate::tcp::control::Algorithm;

fn flow() -> super::super::Bbr {
    Config { version: Version::V3, ..Config::default() }.start(Start { seed: 1, ..Start::of(10, MSS) })
}

fn inner(flow: &mut super::super::Bbr) -> &mut V3 {
    let super::super::Bbr::V3(of) = flow else { panic!("version 3") };
    of
}

/// A flow that probes for bandwidth, and the time.
fn probing() -> (super::super::Bbr, u64) {
    let (mut flow, mut at) = (flow(), 10);
    while inner(&mut flow).state != State::Up {
        flow.on_ack(&ack(at, 10));
        at += 1;
        assert!(at < 10_000);
    }
    (flow, at)
}

#[test]
fn losses_beyond_2_percent_while_it_probes_bound_what_is_in_flight() {
    let lost = |since: u64| Lost {
        first: 0,
        bytes: MSS,
        in_flight_bytes: 100 * MSS,
        since_bytes: since * MSS,
        limited: false,
    };
    let (mut flow, at) = probing();
    // 2 of 100 is no more than the threshold.
    flow.on_lost(&lost(2));
    assert_eq!((inner(&mut flow).inflight_longterm, inner(&mut flow).state), (u64::MAX, State::Up));
    flow.on_lost(&lost(3));
    // InflightAtLoss(): 99 before, of which 2 were lost, are beyond it without any of this one.
    assert_eq!(inner(&mut flow).inflight_longterm, 99 * MSS);
    assert_eq!(inner(&mut flow).state, State::Down);
    // It answers once a probe.
    flow.on_lost(&Lost { in_flight_bytes: 20 * MSS, ..lost(9) });
    assert_eq!(inner(&mut flow).inflight_longterm, 99 * MSS);
    // Headroom: 15% less while it cruises.
    assert_eq!(inner(&mut flow).inflight_with_headroom(), 84_150);
    let mut at = at;
    while inner(&mut flow).state != State::Cruise {
        flow.on_ack(&ack(at, 5));
        at += 1;
    }
    assert!(flow.window_bytes() <= 84_150);
}

#[test]
fn losses_while_it_cruises_bound_rate_and_window_until_it_probes() {
    let (mut flow, mut at) = probing();
    while inner(&mut flow).state != State::Cruise {
        flow.on_ack(&ack(at, 9));
        at += 1;
    }
    let slow = |at| {
        let rate = RateSample { rate: RATE.mul_f64(0.5), ..sample(at, 9) };
        Ack { rate: Some(RateSample { delivered_before_bytes: (at - 6) * MSS, ..rate }), ..ack(at, 9) }
    };
    (0..14).for_each(|_| {
        flow.on_ack(&slow(at));
        at += 1;
    });
    let before = flow.window_bytes();
    flow.on_lost(&Lost { first: 0, bytes: MSS, in_flight_bytes: 9 * MSS, since_bytes: MSS, limited: false });
    (0..8).for_each(|_| {
        flow.on_ack(&slow(at));
        at += 1;
    });
    // LossLowerBounds(): beta at most in a round trip, or what arrives.
    assert_eq!(inner(&mut flow).bw_shortterm, Some(RATE.mul_f64(0.7)));
    assert_eq!(inner(&mut flow).inflight_shortterm, (before as f64 * 0.7) as u64);
    while inner(&mut flow).state != State::Refill {
        flow.on_ack(&ack(at, 9));
        at += 1;
    }
    assert_eq!((inner(&mut flow).bw_shortterm, inner(&mut flow).inflight_shortterm), (None, u64::MAX));
}

proptest! {
    /// Whatever comes, the window is at least the least one but in a timeout, and at most what its bounds allow.
    #[test]
    fn the_window_keeps_its_bounds(
        acks in proptest::collection::vec((1u64..30, 1u64..40, 0u64..4, 1u64..16), 1..400),
    ) {
        let (mut flow, mut at) = (flow(), 20u64);
        for (gap, in_flight, lost, gbps) in acks {
            at += gap;
            for n in 0..lost {
                let (first, since_bytes, in_flight_bytes) = (at * MSS + n * MSS, (n + 1) * MSS, in_flight * MSS);
                flow.on_lost(&Lost { first, bytes: MSS, in_flight_bytes, since_bytes, limited: false });
            }
            let rate = RateSample { rate: Rate::from_gbps(gbps), lost_bytes: lost * MSS, ..sample(at, in_flight) };
            flow.on_ack(&Ack { rate: Some(rate), lost_bytes: lost * MSS, ..ack(at, in_flight) });
            let window = flow.window_bytes();
            let of = inner(&mut flow);
            prop_assert!(window >= of.min_pipe);
            prop_assert!(window <= of.inflight_shortterm.max(of.min_pipe));
            if of.is_in_probe_bw() {
                prop_assert!(window <= of.inflight_longterm.max(of.min_pipe));
            }
            prop_assert!(of.bw <= of.max_bw.max());
        }
    }
}
