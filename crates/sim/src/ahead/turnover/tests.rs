use super::*;

fn of(gaps: &[u64]) -> Option<u64> {
    let mut at = Time::ZERO;
    let mut started = vec![(at, 9)];
    for &gap in gaps {
        at += Duration::from_ps(gap);
        started.push((at, gap % 7));
    }
    period_of_starts(&started).map(Duration::ps)
}

#[test]
fn the_period_of_starts_is_the_one_that_has_lasted_longest_up_to_now() {
    assert_eq!(of(&[1, 50, 3, 120, 3, 120, 3, 120]), Some(123));
    // A ring in each iteration: its steps repeat, but not across the end of it.
    let ring = [40, 5, 5, 5, 5, 5, 5];
    assert_eq!(of(&[ring, ring, ring].concat()), Some(70));
    assert_eq!(of(&[&ring[..], &[5; 20]].concat()), Some(5));
    // Once is no repetition.
    assert_eq!(of(&[5, 6, 7, 5, 6]), None);
    assert_eq!(of(&[]), None);
}

#[test]
fn matches_are_those_of_the_definition() {
    for of in [&b"aabaabaaab"[..], b"abcabcabd", b"aaaaa", b"", b"ab"] {
        let like = |at: usize| of[at..].iter().zip(of).take_while(|pair| pair.0 == pair.1).count();
        let wanted: Vec<usize> = (0..of.len()).map(|at| if at == 0 { 0 } else { like(at) }).collect();
        assert_eq!(matches(of), wanted);
    }
}
