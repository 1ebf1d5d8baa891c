use super::*;

fn random() -> Stream {
    Stream::new(7, 0, "credits")
}

/// A rate after a round trip and a half in which so many of 100 packets were marked, and trimmed before the last link
/// and on it.
fn decide(control: &mut RateControl, [marked, before, last]: [u32; 3], random: &mut Stream) -> f64 {
    let now = control.decides_at.unwrap_or(Time::ZERO);
    for packet in 0..100 {
        let trimmed = if packet < before { Some(false) } else { (packet < before + last).then_some(true) };
        control.count(now, packet >= 100 - marked, trimmed, random);
    }
    control.decide(control.decides_at(), random);
    control.rate
}

#[test]
fn the_rate_falls_by_what_was_trimmed_in_the_network_and_by_marks_beyond_a_share() {
    let random = &mut random();
    let mut control = RateControl::new(4.0, Duration::from_us(10));
    assert_eq!(decide(&mut control, [0, 20, 0], random), 0.8);
    // What the last link trims it does not: the rate rises.
    assert_eq!(decide(&mut control, [0, 0, 20], random), 0.81);
    // All is marked, for the first time: half of that is the mean, 0.2 beyond the target, of which half counts.
    let rate = decide(&mut control, [100, 0, 0], random);
    assert!((rate - 0.81 * 0.9).abs() < 1e-9, "{rate}");
    for _ in 0..100 {
        decide(&mut control, [100, 0, 0], random);
    }
    assert_eq!(control.rate, 0.9 / 4.0);
}

#[test]
fn the_rate_rises_faster_and_faster_up_to_the_full_one() {
    let random = &mut random();
    let mut control = RateControl::new(4.0, Duration::from_us(10));
    decide(&mut control, [0, 50, 0], random);
    let rates: Vec<f64> = (0..7).map(|_| decide(&mut control, [0, 0, 0], random)).collect();
    let expected = [0.51, 0.53, 0.57, 0.65, 0.81, 1.0, 1.0];
    assert!(rates.iter().zip(expected).all(|(rate, expected)| (rate - expected).abs() < 1e-9), "{rates:?}");
    // With some marks, below the target, by the least step.
    decide(&mut control, [0, 50, 0], random);
    let rates: Vec<f64> = (0..3).map(|_| decide(&mut control, [10, 0, 0], random)).collect();
    assert!((rates[2] - rates[1] - 0.01).abs() < 1e-9 && (rates[1] - rates[0] - 0.01).abs() < 1e-9, "{rates:?}");
}

#[test]
fn it_decides_once_in_about_one_and_a_half_round_trips_while_anything_comes_in() {
    let random = &mut random();
    let mut control = RateControl::new(4.0, Duration::from_us(10));
    assert_eq!(control.decides_at(), Time::MAX);
    control.count(Time::ZERO, false, None, random);
    for _ in 0..50 {
        let at = control.decides_at();
        control.count(at, false, None, random);
        control.decide(at, random);
        let period = control.decides_at().since(at);
        assert!((11_250_000..=18_750_000).contains(&period.ps()), "{period}");
    }
    control.decide(control.decides_at(), random);
    assert_eq!(control.decides_at(), Time::MAX);
}

#[test]
fn a_pull_that_is_due_now_is_due_after_a_skip() {
    use testing::walks::{NOW, check_moved};

    let period = Duration::from_us(1);
    let pass = |credits: &mut Credits, now| credits.next_at = now + Duration::from_us(1);
    // A flow waits for it.
    let idle = || Credits {
        wanting: [FlowId(3)].into(),
        next_at: NOW,
        ..Credits::new(Rate::from_gbps(100), 1_460, 100_000, None)
    };
    let visit = |credits: &mut Credits, walk: &mut node::Walk| node::State::visit(credits, walk, &());
    check_moved(&[], period, idle, visit, pass, |credits| credits.next_at);
}

#[test]
fn what_was_trimmed_gets_credit_when_the_whole_message_has_had_its_own() {
    let packets = |count: u64| count * 1_460;
    let mut credits = Credits::new(Rate::from_gbps(100), packets(1), packets(100), None);
    let mut account = Account::new(packets(8));
    let whole = account.whole;
    (account.given, account.target) = (whole, whole);
    for resent in 1..=3 {
        credits.trimmed(&mut account);
        credits.ask(FlowId(3), &mut account, whole, true);
        assert!(account.wants, "a pull is due");
        let more = account.whole - whole;
        assert!((resent * packets(1)..(resent + 1) * packets(1)).contains(&(u64::from(more) * CREDIT_UNIT)), "{more}");
        account.wants = false;
    }
}
