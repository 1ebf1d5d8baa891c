use super::*;

fn two() -> Board {
    let (none, delay) = (Duration::from_ps(u64::MAX), Duration::from_us(1));
    Board::new(vec![vec![none, delay], vec![delay, none]], false)
}

#[test]
fn a_worker_may_go_a_delay_further_than_others_have_promised() {
    let board = two();
    assert_eq!(board.limit(0), Time::from_us(1));
    board.promise(1, Time::from_us(5));
    assert_eq!((board.limit(0), board.limit(1)), (Time::from_us(6), Time::from_us(1)));
}

#[test]
fn nothing_is_quiet_while_one_moves_or_a_packet_is_under_way() {
    let board = two();
    board.rest(0, Time::from_ms(3), &[0, 1], &[0, 0]);
    assert_eq!(board.quiet_until(), None, "the other moves");
    board.rest(1, Time::from_ms(7), &[0, 0], &[0, 0]);
    assert_eq!(board.quiet_until(), None, "a packet has not been taken");
    board.stir(1);
    board.rest(1, Time::from_ms(2), &[0, 0], &[1, 0]);
    assert_eq!(board.quiet_until(), Some(Time::from_ms(2)));
    assert_eq!(board.heard(0, Time::from_ms(2)), Time::from_ms(2) + Duration::from_us(1));
    board.stir(0);
    assert_eq!(board.quiet_until(), None);
}

#[test]
fn the_first_reason_to_stop_is_the_reason() {
    let board = two();
    assert!(!board.is_over());
    board.stop(Ended::Goal, Time::from_us(4), Duration::from_ns(5));
    board.stop(Ended::Interrupted, Time::from_us(9), Duration::ZERO);
    assert_eq!(board.outcome(), (Ended::Goal, Time::from_us(4), Duration::from_ns(5)));
}

/// A process says what it likes of itself: that binds nobody but itself.
#[test]
fn a_process_that_lies_ends_nothing_and_a_lost_one_holds_nothing_up() {
    let (none, delay) = (Duration::from_ps(u64::MAX), Duration::from_us(1));
    let delays = vec![vec![none, delay], vec![delay, none]];
    let regions: Vec<Arc<Lines>> = (0..2).map(|process| Arc::new(Lines::own(board_lines(process, 2, 2)))).collect();
    let boards: Vec<Board> = (0..2).map(|me| Board::over(regions.clone(), me, delays.clone(), false)).collect();
    boards[1].stop(Ended::Goal, Time::ZERO, Duration::ZERO);
    for word in regions[1].iter().flat_map(|line| &line.0) {
        word.store(u64::MAX - 1, Ordering::SeqCst);
    }
    assert!(!boards[0].is_over());
    assert_eq!((boards[0].limit(0), boards[0].ended_flows()), (Time::MAX, u64::MAX - 1));
    boards[0].rest(0, Time::from_us(3), &[0, 5], &[0, 0]);
    assert_eq!(boards[0].quiet_until(), None, "the other has not taken what it was sent");
    boards[0].bury(1);
    assert_eq!((boards[0].dead(), boards[0].quiet_until()), (2, Some(Time::from_us(3))));
    boards[0].stop(Ended::Horizon, Time::from_us(9), Duration::ZERO);
    assert!(boards[1].is_over() && boards[1].outcome().1 == Time::from_us(9));
}
