use node::Walk;
use testing::walks::{NOW, check_moved};
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

fn visit_all(paths: &mut Paths, walk: &mut Walk) {
    let oldest = walk.now() - OLDEST;
    node::State::visit(paths, walk, &oldest);
}

#[test]
fn its_walk_moves_when_a_label_has_changed() {
    let pass = |paths: &mut Paths, _| paths.changed_at[0] += Duration::from_us(3);
    check_moved(&[], Duration::from_us(3), paths, visit_all, pass, |paths| paths.changed_at[0]);
}
