use units::Duration;

use super::*;

const PERIOD: u64 = 100;

/// A flow that sends a packet in each period, with a timer that is moved with each and one that is not.
#[derive(Clone, Debug, PartialEq)]
struct Sender {
    now: Time,
    next: u64,
    timer: Time,
    appointment: Time,
    last: Option<Time>,
    reduced: u64,
    window: u64,
    sent: u64,
}

impl Sender {
    fn new() -> Sender {
        let (now, appointment) = (Time::from_ps(1_000), Time::from_ps(50_000));
        let timer = now + Duration::from_ps(7);
        Sender { now, next: 12, timer, appointment, last: Some(now), reduced: 3, window: 10, sent: 400 }
    }

    fn send(&mut self) {
        let period = Duration::from_ps(PERIOD);
        (self.now, self.timer, self.last) = (self.now + period, self.timer + period, self.last.map(|at| at + period));
        self.next += 2;
        self.sent += 5;
    }

    fn visit(&mut self, walk: &mut Walk) {
        walk.part("sender", 4);
        walk.same(self.window);
        walk.sequence(FlowId(1), 1_000, &mut self.next);
        walk.passed(FlowId(1), 1_000, &mut self.reduced, 11);
        walk.time(&mut self.timer);
        walk.time(&mut self.appointment);
        walk.same(self.last.is_some());
        self.last.iter_mut().for_each(|last| walk.past(last));
        walk.count(&mut self.sent);
    }

    fn notes(&mut self) -> Notes {
        let mut walk = Walk::note(self.now, Arc::default());
        self.visit(&mut walk);
        walk.finish().expect("nobody refuses").expect("notes are taken")
    }

    fn found(&mut self, change: impl FnOnce(&mut Sender)) -> Result<Recurrence, Differs> {
        let before = self.notes();
        self.send();
        change(self);
        recurrence(&before, &self.notes())
    }
}

#[test]
fn a_state_that_recurs_moves_as_if_all_periods_had_happened() {
    let mut sender = Sender::new();
    let found = sender.found(|_| {}).expect("it recurs");
    assert_eq!(found.period, Duration::from_ps(PERIOD));
    assert_eq!((found.until, &found.flows[..]), (sender.appointment, &[(FlowId(1), 2_000, 14_000)][..]));
    let mut through = sender.clone();
    (0..30).for_each(|_| through.send());
    let mut walk = Walk::ahead(sender.now, Arc::default(), found.moves, Arc::default(), 30);
    sender.visit(&mut walk);
    assert!(walk.finish().is_ok());
    sender.now = through.now;
    assert_eq!(sender, through);
}

#[test]
fn what_is_not_as_it_was_is_named() {
    let of = |change: fn(&mut Sender)| {
        let differs = Sender::new().found(change).expect_err("it does not recur");
        (differs.part, differs.node, differs.what)
    };
    assert_eq!(of(|sender| sender.window += 1), ("sender", 4, "a value"));
    assert_eq!(of(|sender| sender.timer += Duration::from_ps(1)), ("sender", 4, "a time"));
    assert_eq!(of(|sender| sender.last = None), ("sender", 4, "a value"));
    assert_eq!(of(|sender| sender.reduced = 11), ("sender", 4, "a value"));
    assert_eq!(of(|sender| sender.appointment = Time::from_ps(1_050)), ("sender", 4, "a time"));
    // Two positions of one flow are apart by more than they were.
    let apart = |sender: &mut Sender| {
        let mut walk = Walk::note(sender.now, Arc::default());
        walk.sequence(FlowId(1), 1_000, &mut sender.next);
        walk.sequence(FlowId(1), 1, &mut sender.sent);
        walk.finish().expect("nobody refuses").expect("notes are taken")
    };
    let mut sender = Sender::new();
    let before = apart(&mut sender);
    sender.send();
    assert_eq!(recurrence(&before, &apart(&mut sender)).expect_err("apart").what, "how far a flow has come");
}

#[test]
fn an_appointment_that_has_passed_is_not_one() {
    let mut sender = Sender::new();
    sender.appointment = sender.now + Duration::from_ps(PERIOD / 2);
    assert_eq!(sender.found(|_| {}).expect_err("it is due").what, "an appointment that was not kept");
}

#[test]
fn times_that_have_passed_are_all_alike_and_turns_count_by_their_distance() {
    let at = |now: u64, until: u64, turns: [u32; 2]| {
        let (mut until, mut turns) = (Time::from_ps(until), turns);
        let mut walk = Walk::note(Time::from_ps(now), Arc::default());
        walk.part("nic", 0);
        walk.expired(&mut until);
        turns.iter_mut().for_each(|turn| walk.turn("epoch", turn));
        walk.finish().expect("nobody refuses").expect("notes are taken")
    };
    assert!(recurrence(&at(100, 90, [7, 5]), &at(200, 20, [9, 7])).is_ok());
    assert!(recurrence(&at(100, 190, [7, 5]), &at(200, 290, [9, 7])).is_ok());
    assert!(recurrence(&at(100, 190, [7, 5]), &at(200, 150, [9, 7])).is_err());
    assert_eq!(recurrence(&at(100, 90, [7, 5]), &at(200, 20, [9, 6])).expect_err("apart").what, "epoch");
}

#[test]
fn who_refuses_is_asked_why() {
    let mut walk = Walk::note(Time::ZERO, Arc::default());
    walk.refuse_if(false, "no");
    walk.refuse_if(true, "first");
    walk.refuse("second");
    assert_eq!(walk.finish().expect_err("refused"), "first");
}

/// A flow's position when it was observed, in packets of 1,000 bytes, at these times.
fn history(of: impl IntoIterator<Item = (u64, u64)>) -> History {
    let mut history = History::default();
    for (at, packets) in of {
        let mut walk = Walk::note(Time::from_ps(at), Arc::default());
        walk.sequence(FlowId(1), 1_000, &mut { packets });
        history.add(&walk.finish().expect("nobody refuses").expect("notes are taken"));
    }
    history
}

/// A rate that does not change is trusted for the longer the longer it was observed: until it may have moved by 2%, if
/// it has moved by less than a packet in each half.
#[test]
fn what_is_steady_for_longer_is_trusted_for_longer() {
    let trusted = |steps: u64| {
        let steady = history((0..=4).map(|step| (step * steps * 10, step * steps))).steady().expect("it is steady");
        steady.trusted().ps() as f64 / (4 * steps * 10) as f64
    };
    // 2% of half the time, divided by a packet in each half.
    for steps in [500, 5_000] {
        let times = 0.02 * (4 * steps) as f64 / 4.0;
        assert!((trusted(steps) / times - 1.0).abs() < 0.01, "{} instead of {times}", trusted(steps));
    }
}

/// A rate that moves by 1% from half to half is trusted for as long as it takes to move by 2%, in all.
#[test]
fn what_was_skipped_while_a_rate_moves_counts_once() {
    let mut history = history([(0, 0), (1_000, 1_000), (2_000, 2_000), (3_000, 3_010), (4_000, 4_020)]);
    let mut steady = history.steady().expect("it is steady");
    let trusted = steady.trusted().ps();
    assert!((3_900..=4_100).contains(&trusted), "{trusted}");
    history.moved(&steady.next(Duration::from_ps(trusted - 100)));
    let again = history.steady().expect("what was moved along is as steady").trusted().ps();
    assert!((90..=110).contains(&again), "{again}");
}

/// A flow that is as fast as ever, with a timer that is `due` and the next step of its control, each by the number of
/// the observation.
fn history_with(due: impl Fn(u64) -> u64, step: impl Fn(u64) -> f64) -> History {
    let mut history = History::default();
    for number in 0..=4 {
        let mut walk = Walk::note(Time::from_ps(1_000 * number), Arc::default());
        walk.part("host", 0);
        walk.sequence(FlowId(1), 1_000, &mut { 1_000 * number });
        walk.time(&mut Time::from_ps(due(number)));
        walk.next_step(2.0, 2.0 * step(number));
        history.add(&walk.finish().expect("nobody refuses").expect("notes are taken"));
    }
    history
}

/// Nobody has seen what comes of a timer that was set before, or for longer than flows were observed.
#[test]
fn timers_end_skips_unless_their_ends_were_seen() {
    let until = |due: fn(u64) -> u64| history_with(due, |_| 1.0).steady().expect("it is steady").until();
    assert_eq!(until(|_| 5_000), Time::from_ps(5_000));
    assert_eq!(until(|number| if number < 2 { 2_000 } else { 7_000 }), Time::from_ps(7_000));
    // It was set at most as far ahead as flows were observed, or it is put off again and again, or it was due.
    assert_eq!(until(|number| if number < 2 { 2_000 } else { 5_500 }), Time::MAX);
    assert_eq!(until(|number| 1_000 * number + 50_000), Time::MAX);
    assert_eq!(until(|_| 3_000), Time::MAX);
}

/// What stays does not move, and who wakes for it wakes at it or before.
#[test]
fn appointments_stay_where_they_are() {
    let mut history = history_with(|_| 5_000, |_| 1.0);
    let amounts = history.steady().expect("it is steady").next(Duration::from_ps(900));
    let mut times = [5_000, 4_500, 4_050, 7_000].map(Time::from_ps);
    let mut walk = Walk::shift(Time::from_ps(4_000), Arc::default(), amounts.clone());
    walk.time(&mut times[0]);
    walk.wakes(&mut times[1]);
    walk.wakes(&mut times[2]);
    walk.time(&mut times[3]);
    assert!(walk.finish().is_ok());
    assert_eq!(times, [5_000, 5_000, 4_950, 7_900].map(Time::from_ps));
    history.moved(&amounts);
    assert_eq!(history.steady().expect("it is steady").until(), Time::from_ps(5_000));
}

#[test]
fn who_is_about_to_change_a_rate_is_not_steady() {
    let of = |step: fn(u64) -> f64| history_with(|_| 0, step).steady().map(|_| ());
    assert_eq!(of(|number| if number < 4 { 1.5 } else { 1.04 }), Ok(()));
    assert_eq!(of(|number| if number < 4 { 1.0 } else { 1.06 }), Err(Unsteady::Unsteady));
    assert_eq!(of(|number| if number < 4 { 1.0 } else { 0.94 }), Err(Unsteady::Unsteady));
}

#[test]
fn what_changes_is_not_steady() {
    let of = |steps: [u64; 4]| {
        let mut at = 0;
        let later = steps.into_iter().enumerate().map(|(step, by)| {
            at += by;
            (1_000 * (step as u64 + 1), at)
        });
        history([(0, 0)].into_iter().chain(later)).steady().map(|_| ())
    };
    assert_eq!(of([600, 600, 600, 600]), Ok(()));
    assert_eq!(of([600, 600, 600, 720]), Err(Unsteady::Unsteady));
    // All within 5%, but the last one has left the mean by more than 2%: something has just begun.
    assert_eq!(of([1_000, 1_000, 1_000, 1_025]), Ok(()));
    assert_eq!(of([1_000, 1_000, 1_000, 1_035]), Err(Unsteady::Unsteady));
    assert_eq!(of([1_000, 1_035, 1_000, 1_000]), Ok(()));
    assert_eq!(of([600, 600, 600, 100]), Err(Unsteady::Slow));
    assert_eq!(history([(0, 0), (1_000, 600)]).steady().map(|_| ()), Err(Unsteady::Slow));
}

/// When there are many observations, every other one is forgotten, but neither the first nor the last.
#[test]
fn observations_reach_back_to_the_first() {
    let history = history((0..1_000).map(|step| (step * 1_000, step * 600)));
    let observed = history.steady().expect("it is steady").observed();
    assert!(observed >= Duration::from_ps(900_000), "{observed:?}");
}

/// A counter that was not there a period ago moves by all that it has counted.
#[test]
fn counters_may_be_new() {
    let walk_all = |walk: &mut Walk, counts: &mut [(u64, u64)]| {
        walk.part("waits", 0);
        for (name, count) in counts {
            walk.tallied(*name, count);
        }
    };
    let notes = |now: u64, counts: &mut [(u64, u64)]| {
        let mut walk = Walk::note(Time::from_ps(now), Arc::default());
        walk_all(&mut walk, counts);
        walk.finish().expect("nobody refuses").expect("notes are taken")
    };
    let mut after = [(3, 4), (5, 9), (7, 1)];
    let found = recurrence(&notes(0, &mut [(3, 4), (7, 0)]), &notes(100, &mut after)).expect("nothing differs");
    let mut walk = Walk::ahead(Time::from_ps(100), Arc::default(), found.moves, Arc::default(), 10);
    walk_all(&mut walk, &mut after);
    assert!(walk.finish().is_ok());
    assert_eq!(after, [(3, 4), (5, 99), (7, 11)]);
}

/// Notes of parts of a state, each with a value that must be the same, one that moves, and a stream if it draws.
fn of_parts<'a>(now: u64, parts: impl IntoIterator<Item = &'a (&'static str, u32, u64, u64)>) -> Notes {
    let mut walk = Walk::note(Time::from_ps(now), Arc::default());
    for &(part, node, same, turn) in parts {
        walk.part(part, node);
        walk.same(same);
        walk.turn_at(0, "an epoch", &mut { turn });
    }
    walk.finish().expect("nobody refuses").expect("notes are taken")
}

/// Parts of a network go over their states one after the other, and how it is divided depends on the threads.
#[test]
fn the_reason_does_not_depend_on_the_order_of_parts() {
    let all = [("agenda", 0, 1, 1), ("host", 1, 1, 1), ("link", 4, 1, 1), ("switch", 0, 1, 1), ("link", 2, 1, 1)];
    let reason = |change: fn(usize) -> (u64, u64), order: [usize; 5]| {
        let before = order.map(|at| all[at]);
        let after = order.map(|at| (all[at].0, all[at].1, all[at].2 + change(at).0, all[at].3 + change(at).1));
        recurrence(&of_parts(0, &before), &of_parts(100, &after)).expect_err("it differs").to_string()
    };
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]] {
        assert_eq!(reason(|_| (1, 0), order), "link 2: a value differs");
        assert_eq!(reason(|at| (u64::from(at < 4), 0), order), "link 4: a value differs");
        assert_eq!(reason(|at| (u64::from(at == 0 || at == 1), 0), order), "host 1: a value differs");
        assert_eq!(reason(|at| (u64::from(at == 0), 0), order), "agenda 0: a value differs");
        // What moves is measured by the first link.
        assert_eq!(reason(|at| (0, u64::from(at == 4)), order), "link 4: an epoch differs");
        assert_eq!(reason(|at| (0, u64::from(at == 3)), order), "switch 0: an epoch differs");
    }
}

#[test]
fn who_refuses_first_does_not_depend_on_the_order_of_parts() {
    let refused = |parts: &[(&'static str, u32, &str)]| {
        let mut walk = Walk::note(Time::ZERO, Arc::default());
        for &(part, node, why) in parts {
            walk.part(part, node);
            walk.refuse(why);
        }
        walk.finish().expect_err("refused")
    };
    let [all, link, host] = [("agenda", 0, "all"), ("link", 7, "a link"), ("host", 2, "a host")];
    assert_eq!((refused(&[link, host]), refused(&[host, link])), ("a link".to_owned(), "a link".to_owned()));
    assert_eq!((refused(&[all, link]), refused(&[host, all])), ("all".to_owned(), "all".to_owned()));
    assert_eq!(refused(&[host, ("host", 1, "another")]), "another");
}

/// The number of threads decides in which order parts are visited. The first reported difference stays the same.
#[test]
fn what_differs_first_is_the_same_in_any_order() {
    let notes = |values: [u64; 3], streams: &[(u32, Stream)], order: [usize; 3]| {
        let mut walk = Walk::note(Time::from_ps(0), Arc::default());
        for (host, stream) in order.map(|of| &streams[of]) {
            walk.part("host", *host);
            walk.same(values[*host as usize / 4]);
            walk.random(&mut stream.clone());
        }
        walk.finish().expect("nobody refuses").expect("notes are taken")
    };
    let before = [9, 3, 5].map(|host: u32| (host, Stream::new(1, host.into(), "test")));
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let differs = |values, streams: &[(u32, Stream)]| {
            let of = recurrence(&notes([7, 7, 7], &before, order), &notes(values, streams, order));
            of.map(|_| ()).map_err(|differs| differs.to_string())
        };
        assert_eq!(differs([7, 8, 8], &before), Err("host 5: a value differs".to_owned()), "{order:?}");
        let mut drawn = before.clone();
        assert_eq!(drawn[0].1.below(1), 0);
        assert_eq!(differs([7, 7, 7], &drawn), Ok(()), "{order:?}");
        assert!(drawn[2].1.unit() < 1.0 && drawn[0].1.unit() < 1.0);
        assert_eq!(differs([7, 7, 7], &drawn), Err("host 5: a random stream differs".to_owned()), "{order:?}");
        assert_eq!(differs([8, 7, 7], &drawn), Err("host 3: a value differs".to_owned()), "{order:?}");
    }
}

#[test]
fn measures_of_a_flow_move_alike_and_numbers_stay_below_their_limits() {
    let of = |now: u64, flow: u32, measures: [u64; 2], number: u64| {
        let (mut measures, mut number) = (measures, number);
        let mut walk = Walk::note(Time::from_ps(now), Arc::default());
        measures.iter_mut().for_each(|measure| walk.measured(FlowId(flow), "credit", measure));
        walk.below(1_000, &mut number);
        walk.finish().expect("nobody refuses").expect("notes are taken")
    };
    let found = |flow, measures, number| {
        let found = recurrence(&of(0, 1, [70, 50], 100), &of(100, flow, measures, number));
        found.map(|found| found.most).map_err(|differs| differs.what)
    };
    // From 300 by 200 to 900 at most: 1,000 is too much.
    assert_eq!(found(1, [90, 70], 300), Ok(3));
    assert_eq!((found(1, [90, 70], 100), found(1, [90, 71], 100)), (Ok(u64::MAX), Err("credit")));
    assert_eq!((found(2, [70, 50], 100), found(2, [90, 70], 100)), (Ok(u64::MAX), Err("credit")));
    assert_eq!(found(1, [90, 70], 99), Err("a number that has a limit"));
    assert_eq!(found(1, [90, 70], 999), Ok(0));
    // Each moves by as much as it did.
    let mut after = [90, 70];
    let moves = recurrence(&of(0, 1, [70, 50], 100), &of(100, 1, after, 300)).expect("it recurs").moves;
    let (mut walk, mut number) = (Walk::ahead(Time::from_ps(100), Arc::default(), moves, Arc::default(), 3), 300u64);
    after.iter_mut().for_each(|measure| walk.measured(FlowId(1), "credit", measure));
    walk.below(1_000, &mut number);
    assert!(walk.finish().is_ok());
    assert_eq!((after, number), ([150, 130], 900));
}

/// A transport's header, which is neither link-level retry's nor a rate limiter's.
#[derive(Clone, Copy, Debug, crate::State)]
struct Position(#[state(sequence(1))] u64);

impl Header for Position {
    type Packed = u64;

    fn pack(self) -> u64 {
        self.0 | 1
    }

    fn unpack(packed: u64) -> Position {
        Position(packed)
    }

    fn emit(self, _: &mut crate::wire::Writer<'_>) {}

    fn parse(_: &mut crate::wire::Reader<'_>) -> Result<Position, crate::wire::Malformed> {
        Ok(Position(0))
    }
}

#[test]
fn packets_of_a_rate_limiter_and_of_link_level_retry_are_not_read_as_others() {
    let headers: Arc<[HeaderWalk]> = [visit_header::<Position> as HeaderWalk; 2].into();
    let mut limiters = Packet::new(FlowId(1), HostId(0), HostId(1), RetryMessage::Nack(6));
    limiters.transport = 1;
    for before in [RetryMessage::Ack(6).packet(), limiters] {
        let mut walk = Walk::note(Time::ZERO, headers.clone());
        let mut packet = before;
        walk.packet(&mut packet);
        let notes = walk.finish().expect("nobody refuses").expect("notes are taken");
        assert_eq!((packet, &notes.same[notes.same.len() - 4..]), (before, &before.words()[..]));
    }
}
