use super::*;

/// Three queue pairs wait. The second has just sent when a fourth starts. Returns the order from there.
fn order(turns: Turns) -> Vec<u32> {
    let mut waiting = Waiting::new(turns);
    (1..=3).for_each(|number| waiting.push(number as u32, number));
    for number in 1..=2 {
        assert_eq!(waiting.pop(), Some(number as u32));
        waiting.sent(number);
        waiting.push(number as u32, number);
    }
    waiting.push(4, 4);
    std::iter::from_fn(|| waiting.pop().inspect(|&slot| waiting.sent(u64::from(slot)))).collect()
}

#[test]
fn a_new_queue_pair_goes_behind_all_in_line_and_before_those_that_have_sent_by_age() {
    assert_eq!(order(Turns::InLine), [3, 1, 2, 4]);
    assert_eq!(order(Turns::ByAge), [3, 4, 1, 2]);
}

#[test]
fn who_ends_waits_no_more() {
    for turns in [Turns::InLine, Turns::ByAge] {
        let mut waiting = Waiting::new(turns);
        (1..=2).for_each(|number| waiting.push(number as u32, number));
        waiting.remove(1, 1);
        assert_eq!((waiting.pop(), waiting.pop(), waiting.is_empty()), (Some(2), None, true));
    }
}
