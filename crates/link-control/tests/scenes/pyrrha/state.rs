use clearway_link_control::pyrrha::{Change, State};

/// Figure 6, arrow by arrow; where it has none, the state stays. Beyond it: a root that nominates itself again while
/// its old queue still drains pauses that queue.
#[test]
fn every_pair_of_state_and_change_is_as_figure_6_has_it() {
    use Change::*;
    use State::*;
    let after = [
        // PAUSE, RESUME, MERGE, empty and a leaf
        (Unassigned, [Paused, Unassigned, Unassigned, Unassigned]),
        (Paused, [Paused, Resumed, SoftMerging, Paused]),
        (Resumed, [Paused, Resumed, SoftMerging, Unassigned]),
        (SoftMerging, [Paused, SoftMerging, SoftMerging, Unassigned]),
    ];
    for (state, next) in after {
        assert_eq!([Pause, Resume, Merge, Clear].map(|change| state.after(change)), next, "{state:?}");
    }
    // "Only when an IQ is in a resumed or soft-merging state can its packet be dequeued" (section 4.3).
    assert_eq!([Unassigned, Paused, Resumed, SoftMerging].map(State::open), [false, false, true, true]);
    assert_eq!(State::default(), Unassigned);
}
