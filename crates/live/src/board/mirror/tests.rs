use std::sync::Arc;

use units::{Duration, Time};

use super::*;
use crate::board::{Board, Ended, board_lines};

/// Two processes on two machines, with a worker each: boards over lines of their own and over mirrors.
fn two() -> (Vec<Board>, Vec<Vec<Arc<Lines>>>) {
    let (none, delay) = (Duration::from_ps(u64::MAX), Duration::from_us(1));
    let delays = vec![vec![none, delay], vec![delay, none]];
    let lines = |_| (0..2).map(|process| Arc::new(Lines::own(board_lines(process, 2, 2)))).collect::<Vec<_>>();
    let regions: Vec<_> = (0..2).map(lines).collect();
    let boards = (0..2).map(|me| Board::over(regions[me].clone(), me, delays.clone(), false)).collect();
    (boards, regions)
}

fn tell(mirror: &mut Mirror, from: &Lines, to: &Lines) -> usize {
    let mut changes = Vec::new();
    mirror.changes(from, &mut changes);
    mirror.apply(to, &changes).expect("they fit");
    changes.len()
}

#[test]
fn another_machine_sees_promises_rest_and_the_end() {
    let (boards, regions) = two();
    let mut mirrors = [0, 1].map(|process| Mirror::new(board_lines(process, 2, 2), 2));
    let mut both = |boards: &[Board]| {
        let told = tell(&mut mirrors[0], &regions[0][0], &regions[1][0]);
        (boards.len(), told + tell(&mut mirrors[1], &regions[1][1], &regions[0][1]))
    };
    assert_eq!(both(&boards).1, 2, "both move");
    assert_eq!(both(&boards).1, 0, "nothing has changed");
    boards[1].promise(1, Time::from_us(5));
    boards[0].rest(0, Time::from_ms(3), &[0, 1], &[0, 0]);
    boards[1].rest(1, Time::from_ms(2), &[0, 0], &[0, 0]);
    both(&boards);
    assert_eq!(boards[0].limit(0), Time::from_us(6));
    assert_eq!((boards[0].quiet_until(), boards[1].quiet_until()), (None, None), "a packet is under way");
    boards[1].stir(1);
    boards[1].rest(1, Time::from_ms(2), &[0, 0], &[1, 0]);
    assert_eq!(boards[0].quiet_until(), None, "it has not been told");
    both(&boards);
    assert_eq!(boards.iter().map(Board::quiet_until).collect::<Vec<_>>(), [Some(Time::from_ms(2)); 2]);
    boards[0].stop(Ended::Horizon, Time::from_us(9), Duration::from_ns(3));
    assert!(!boards[1].is_over());
    both(&boards);
    assert_eq!((boards[1].is_over(), boards[1].outcome().1), (true, Time::from_us(9)));
}

/// What a worker that moves has in its post may be half of what it will say.
#[test]
fn half_of_what_a_worker_says_is_not_told() {
    let (boards, regions) = two();
    let mut mirror = Mirror::new(board_lines(1, 2, 2), 2);
    boards[1].rest(1, Time::from_ms(7), &[0, 0], &[0, 0]);
    boards[1].stir(1);
    assert_eq!(tell(&mut mirror, &regions[1][1], &regions[0][1]), 1, "that it moves");
    assert_eq!(read(&regions[0][1], WORDS + post::NEXT_AT), 0);
    assert_eq!(boards[0].quiet_until(), None);
}

#[test]
fn a_number_that_is_not_on_the_board_is_refused() {
    let mirror = Mirror::new(board_lines(1, 2, 2), 2);
    let lines = Lines::own(board_lines(1, 2, 2));
    let count = (lines.len() * WORDS) as u32;
    for word in [count, u32::MAX] {
        assert_eq!(mirror.apply(&lines, &[(WORDS as u32, 7), (word, 1)]), Err(()));
    }
    assert_eq!(read(&lines, WORDS), 0, "nothing is written");
    assert_eq!(mirror.apply(&lines, &[(count - 1, 7)]), Ok(()));
}
