use units::Duration;

use super::*;

#[test]
fn steps_of_a_rank_lie_side_by_side() {
    let mut b = Builder::new(2);
    let one = b.compute(Rank(1), Duration::from_us(1), &[]);
    let zero = b.compute(Rank(0), Duration::from_us(2), &[]);
    let (_, receive) = b.message((Rank(1), Rank(0)), 10, (0, 0), &[one], &[zero]);
    b.compute(Rank(0), Duration::from_us(3), &[receive]);
    let graph = b.build().expect("sound");
    assert_eq!((graph.of(Rank(0)), graph.of(Rank(1))), (0..3, 3..5));
    let message = graph.message(MessageId(0));
    assert_eq!((message.send, message.receive), (StepId(4), StepId(1)));
    assert_eq!(graph.after(StepId(0)), [StepId(1)]);
    assert_eq!(graph.after(StepId(1)), [StepId(2)]);
    assert_eq!((graph.needs(StepId(0)), graph.needs(StepId(1)), graph.needs(StepId(2))), (0, 1, 1));
}

#[test]
fn what_cannot_be_is_refused() {
    let mut b = Builder::new(2);
    let one = b.compute(Rank(1), Duration::from_us(1), &[]);
    b.compute(Rank(0), Duration::from_us(2), &[one]);
    let error = b.build().expect_err("rank 0 cannot see a step of rank 1");
    assert_eq!(error.to_string(), "step 1 of rank 0 waits for step 0 of rank 1; ranks wait for messages alone");

    for (from, to, bytes) in [(0, 0, 5), (0, 2, 5), (0, 1, 0)] {
        let mut b = Builder::new(2);
        b.message((Rank(from), Rank(to)), bytes, (0, 0), &[], &[]);
        assert_eq!(b.build(), Err(GraphError::NoMessage { from, to, bytes, ranks: 2 }));
    }

    // Each sends after it has received.
    let mut b = Builder::new(2);
    b.name("ping");
    let (send, receive) = b.message((Rank(0), Rank(1)), 5, (0, 0), &[], &[]);
    let (back, got) = b.message((Rank(1), Rank(0)), 5, (0, 0), &[receive], &[]);
    b.wait(send, got);
    let _ = back;
    let error = b.build().expect_err("a circle through messages");
    assert_eq!(
        error.to_string(),
        "4 steps wait for each other in a circle, one of them \"ping\" of rank 0; delete a dependency"
    );
}
