use super::*;

#[test]
fn the_period_of_arrivals_is_the_shortest_after_which_all_repeat() {
    let of = |gaps: &[u64]| period_of(&gaps.iter().map(|&gap| (gap, gap % 7)).collect::<Vec<_>>());
    assert_eq!(of(&[3, 120, 3, 120, 3, 120]), Some(123));
    assert_eq!(of(&[5, 5, 5, 5]), Some(5));
    assert_eq!(of(&[5, 5, 6, 5, 5, 6]), Some(16));
    // Once is no repetition, and what came before does not count if it was otherwise.
    assert_eq!(of(&[5, 5, 6, 5, 5]), None);
    assert_eq!(of(&[9, 5, 5, 5, 5]), None);
    assert_eq!(of(&[4]), None);
    // Other packets at the same times do not repeat.
    assert_eq!(period_of(&[(5, 1), (5, 2), (5, 1), (5, 3)]), None);
}

/// As of a group of which nobody knows how long it has settled.
#[test]
fn the_last_arrivals_may_repeat_whatever_came_before() {
    let of = |gaps: &[u64]| last_period_of(&gaps.iter().map(|&gap| (gap, gap % 7)).collect::<Vec<_>>());
    assert_eq!(of(&[9, 8, 17, 5, 5, 6, 5, 5, 6]), Some(16));
    // Packets of a window follow each other at once: within it they seem to repeat after each.
    assert_eq!(of(&[9, 5, 5, 5, 40, 5, 5, 5, 40, 5, 5, 5]), Some(55));
    assert_eq!(of(&[9, 8, 17, 5, 5, 5]), Some(5));
    assert_eq!((of(&[1, 2, 3, 4]), of(&[4]), of(&[])), (None, None, None));
    let nodes = [vec![(9, 0), (3, 0), (3, 0)], vec![(6, 0), (6, 0)]];
    assert_eq!(last_period_of_all(nodes.into_iter(), 20), Ok(6));
}

#[test]
fn periods_of_nodes_have_their_least_common_multiple() {
    assert_eq!(lcm(12, 18), Some(36));
    assert_eq!(lcm(1, 7), Some(7));
    assert_eq!(lcm(u64::MAX, u64::MAX - 1), None);
}

/// Which node comes first depends on how the network is divided among threads.
#[test]
fn why_there_is_no_period_does_not_depend_on_the_order_of_nodes() {
    let [short, long, none] = [&[3, 3, 3, 3][..], &[7, 7, 7, 7], &[1, 2, 3, 4]];
    let of = |nodes: &[&[u64]]| period_of_all(nodes.iter().map(|gaps| gaps.iter().map(|&gap| (gap, 0)).collect()), 20);
    assert_eq!((of(&[short, short]), of(&[])), (Ok(3), Ok(1)));
    for nodes in [[short, long, none], [none, short, long], [long, none, short]] {
        assert_eq!(of(&nodes), Err("no period was found in what comes to nodes"));
    }
    assert_eq!(of(&[short, long]), Err("nodes have periods without a short common multiple"));
}
