use super::*;

const MSS: u64 = 1000;

fn flow(segments: u64) -> NewReno {
    NewReno::new(Start::of(segments, MSS), &SlowStart::Standard)
}

#[test]
fn slow_start_counts_bytes_up_to_two_segments_and_one_after_a_timeout() {
    for (phase, acked, grown) in [
        (Phase::Open, 500, 500),
        (Phase::Open, 2_000, 2_000),
        (Phase::Open, 9_000, 2_000),
        (Phase::Loss, 9_000, 1_000),
        (Phase::Recovery, 1_000, 0),
    ] {
        let mut flow = flow(10);
        flow.on_ack(&Ack { phase, ..Ack::of(acked) });
        assert_eq!(flow.window_bytes(), 10 * MSS + grown, "{phase:?} {acked}");
    }
}

#[test]
fn neither_a_mark_nor_a_window_that_was_not_full_opens_the_window() {
    let mut flow = flow(10);
    flow.on_ack(&Ack { marked: true, ..Ack::of(MSS) });
    flow.on_ack(&Ack { limited: false, ..Ack::of(MSS) });
    assert_eq!(flow.window_bytes(), 10 * MSS);
}

#[test]
fn congestion_avoidance_adds_a_segment_a_window() {
    let mut flow = flow(10);
    flow.on_congestion(&Congestion::of(Signal::Loss, 10 * MSS));
    for window in 5..9 {
        assert_eq!(flow.window_bytes(), window * MSS);
        for _ in 0..window {
            flow.on_ack(&Ack::of(MSS));
        }
    }
    assert_eq!(flow.window_bytes(), 9 * MSS);
}

#[test]
fn a_repeated_timeout_holds_the_threshold() {
    let mut flow = flow(40);
    flow.on_congestion(&Congestion::of(Signal::Timeout { again: false }, 40 * MSS));
    flow.on_congestion(&Congestion::of(Signal::Timeout { again: true }, MSS));
    assert_eq!((flow.window, flow.threshold), (MSS, 20 * MSS));
}

#[test]
fn the_threshold_is_two_segments_at_least() {
    let mut flow = flow(3);
    flow.on_congestion(&Congestion::of(Signal::Mark, 3 * MSS));
    assert_eq!(flow.window_bytes(), 2 * MSS);
}
