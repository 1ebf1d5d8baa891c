use super::*;

const MSS: u64 = 1000;

#[test]
fn alpha_is_the_average_of_marked_shares_updated_once_a_window() {
    let config = Config { g: 0.25, alpha: 0.0, ..Config::default() };
    let mut flow = config.start(Start::of(8, MSS));
    let (mut una, mut alpha) = (0, 0.0);
    let mut acknowledge = |flow: &mut Dctcp, marked| {
        una += MSS;
        flow.on_ack(&Ack { una, next: una + 7 * MSS, marked, limited: false, ..Ack::of(MSS) });
    };
    // The first acknowledgement is a window of its own; each eighth after it is beyond the last window's end.
    acknowledge(&mut flow, false);
    for marked_of_8 in [4, 8, 0, 2] {
        for segment in 0..8 {
            assert_eq!(flow.alpha, alpha);
            acknowledge(&mut flow, segment < marked_of_8);
        }
        alpha = 0.75 * alpha + 0.25 * f64::from(marked_of_8) / 8.0;
    }
    assert_eq!(flow.alpha, alpha);
}

#[test]
fn a_mark_takes_half_of_alpha_and_a_loss_half_of_the_window() {
    let config = Config { alpha: 0.5, ..Config::default() };
    let start = Start::of(100, MSS);
    for (signal, window) in [(Signal::Mark, 75), (Signal::Loss, 50), (Signal::Timeout { again: false }, 1)] {
        let mut flow = config.start(start);
        flow.on_congestion(&Congestion::of(signal, 100 * MSS));
        assert_eq!(flow.window_bytes(), window * MSS, "{signal:?}");
    }
}
