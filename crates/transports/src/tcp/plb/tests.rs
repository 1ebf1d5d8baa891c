use super::*;

const PLB: Plb = Plb { marked_share: 0.5, rounds: 3, quiet_after_timeout: Duration::from_us(100) };

/// Rounds of four packets of which so many were marked, from `una` on: the labels after each.
fn rounds(path: &mut Path, una: &mut u64, now: Time, marked: &[u64]) -> Vec<u32> {
    let mut after = Vec::new();
    for &marked in marked {
        for packet in 0..4 {
            *una += 1;
            path.on_ack(&PLB, now, 1, packet < marked, *una, *una + 3);
        }
        after.push(path.label);
    }
    after
}

#[test]
fn the_path_changes_after_so_many_congested_rounds_in_a_row() {
    let (mut path, mut una) = (Path::default(), 0);
    // The first acknowledgement is a round of its own, and ends unmarked.
    path.on_ack(&PLB, Time::ZERO, 1, false, 1, 4);
    una += 1;
    assert_eq!(rounds(&mut path, &mut una, Time::ZERO, &[2, 4, 1, 2, 2, 3, 4, 4, 2]), [0, 0, 0, 0, 0, 1, 1, 1, 2]);
}

#[test]
fn a_timeout_changes_it_at_once_and_then_nothing_does_for_a_while() {
    let (mut path, mut una) = (Path::default(), 0);
    path.on_timeout(&PLB, Time::ZERO);
    assert_eq!(path.label, 1);
    let early = Time::ZERO + Duration::from_us(99);
    assert_eq!(rounds(&mut path, &mut una, early, &[4; 5]), [1; 5]);
    let late = Time::ZERO + Duration::from_us(100);
    assert_eq!(rounds(&mut path, &mut una, late, &[4, 4]), [2, 2]);
}

#[test]
fn labels_never_come_back_to_none() {
    let mut path = Path { label: u32::MAX, ..Path::default() };
    path.on_timeout(&PLB, Time::ZERO);
    assert_eq!(path.label, 1);
}
