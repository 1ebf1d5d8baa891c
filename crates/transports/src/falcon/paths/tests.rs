use testing::walks::{NOW, check_moved, check_told_apart};
use units::Duration;

use super::*;

/// A packet left long ago and is still in the network; the label of one path has changed since, another before.
const OLDEST: Duration = Duration::from_us(20);

fn paths() -> Paths {
    let mut paths = Paths::new(&mut Stream::new(1, 0, "paths"));
    paths.credits = [1, 2, 3, 4];
    (paths.turn, paths.changed_at) = (2, [NOW - OLDEST / 2, NOW - OLDEST * 2, Time::ZERO, Time::ZERO]);
    paths
}

fn walk(paths: &mut Paths, walk: &mut Walk) {
    paths.walk(walk, walk.now() - OLDEST);
}

#[test]
fn its_walk_names_all_that_chooses_a_path() {
    check_told_apart(
        &[],
        paths,
        walk,
        &[
            ("a label", |paths| paths.labels[3] += 4),
            ("what a path may still have in this round", |paths| paths.credits[1] -= 1),
            ("whose turn it is", |paths| paths.turn += 1),
            ("that a label has changed", |paths| paths.changed_at[1] = NOW - OLDEST / 4),
            ("when a label has changed", |paths| paths.changed_at[0] += Duration::from_ns(1)),
        ],
        &[],
    );
}

#[test]
fn its_walk_moves_when_a_label_has_changed() {
    let pass = |paths: &mut Paths, _| paths.changed_at[0] += Duration::from_us(3);
    check_moved(&[], Duration::from_us(3), paths, walk, pass, |paths| paths.changed_at[0]);
}
