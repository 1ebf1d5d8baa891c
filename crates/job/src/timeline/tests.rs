use std::sync::Arc;

use proptest::prelude::*;
use units::{Duration, HostId, Rate};

use super::*;
use crate::collective::{Terms, all_reduce, all_to_all};
use crate::testing::carry;
use crate::{Builder, Placement, Rank};

fn us(time: u64) -> Duration {
    Duration::from_us(time)
}

fn placement(ranks: u32, a_host: u32) -> Arc<Placement> {
    let host_of = (0..ranks).map(|rank| HostId(rank / a_host)).collect();
    Arc::new(Placement { host_of, rate: Rate::from_gbps(80), delay: us(1) })
}

#[test]
fn the_critical_path_goes_through_what_was_waited_for() {
    let mut b = Builder::new(2);
    b.name("slow");
    let slow = b.compute(Rank(0), us(9), &[]);
    b.name("fast");
    let fast = b.compute(Rank(1), us(2), &[]);
    let (_, got) = b.message((Rank(0), Rank(1)), 100, (0, 0), &[slow], &[fast]);
    b.name("last");
    b.compute(Rank(1), us(3), &[got]);
    let graph = Arc::new(b.build().expect("sound"));
    let placement = placement(2, 1);
    let ran = carry(&graph, &placement, |_| (us(4), us(1)));
    let line = Timeline::new(&graph, Time::ZERO, ran.done.into_iter(), |message| ran.carried[message.index()]);
    let all = (0..graph.steps().len() as u32).map(StepId);
    let (last, end) = line.last(all).expect("it ended");
    assert_eq!(end, Time::ZERO + us(16));
    let path: Vec<_> = line.critical_path(last).iter().map(|of| (of.part, (of.end - of.begin).us_f64())).collect();
    assert_eq!(path, [(PathPart::Compute, 9.0), (PathPart::Message, 4.0), (PathPart::Compute, 3.0)]);
    let computations: Vec<_> = line.computations().map(|(begin, end)| (begin.us_f64(), end.us_f64())).collect();
    assert_eq!(computations, [(0.0, 9.0), (0.0, 2.0), (13.0, 16.0)]);
}

#[test]
fn what_never_ended_has_no_times() {
    let mut b = Builder::new(2);
    let (sent, got) = b.message((Rank(0), Rank(1)), 100, (0, 0), &[], &[]);
    let after = b.compute(Rank(1), us(3), &[got]);
    let later = b.delay(Rank(1), us(3), &[after]);
    let graph = b.build().expect("sound");
    let started = |_| Carried { started: Some(Time::ZERO), ..Carried::default() };
    let line = Timeline::new(&graph, Time::ZERO, std::iter::empty(), started);
    assert_eq!((line.begin(sent), line.end(sent)), (Some(Time::ZERO), None));
    assert_eq!([got, after, later].map(|step| line.end(step)), [None; 3]);
    assert_eq!(line.begin(later), None);
}

proptest! {
    /// Whatever the network does, the parts of the critical path follow each other without a gap from the job's begin
    /// to its end.
    #[test]
    fn the_parts_of_a_job_sum_exactly_to_its_time(
        ranks in 2u32..9, a_host in 1u32..4, bytes in 100u64..50_000, slots in 1u32..4, all: bool,
        times in prop::collection::vec((1u64..30, 0u64..20), 16), compute in prop::collection::vec(0u64..40, 9)
    ) {
        let mut b = Builder::new(ranks);
        let everybody: Vec<Rank> = (0..ranks).map(Rank).collect();
        let terms = Terms { slots, chunk: 3_000, latency: Duration::from_ns(300), ..Terms::default() };
        let enter = |(&rank, &time): (&Rank, &u64)| vec![b.compute(rank, us(time), &[]), b.compute(rank, us(1), &[])];
        let entry: Vec<_> = everybody.iter().zip(&compute).map(enter).collect();
        let ends = match all {
            true => all_to_all(&mut b, &everybody, bytes, &terms, &entry),
            false => all_reduce(&mut b, &everybody, bytes, &terms, &entry),
        };
        everybody.iter().zip(ends).for_each(|(&rank, end)| { b.compute(rank, us(2), &[end]); });
        let graph = Arc::new(b.build().expect("sound"));
        let placement = placement(ranks, a_host);
        let takes = |message: MessageId| {
            let (there, back) = times[message.index() % times.len()];
            (us(there), us(back))
        };
        let ran = carry(&graph, &placement, takes);
        prop_assert_eq!(ran.left, 0);
        let line = Timeline::new(&graph, Time::ZERO, ran.done.into_iter(), |message| ran.carried[message.index()]);
        let (last, end) = line.last((0..graph.steps().len() as u32).map(StepId)).expect("it ended");
        let path = line.critical_path(last);
        prop_assert_eq!(path.first().map(|first| first.begin), Some(Time::ZERO));
        prop_assert_eq!(path.last().map(|last| last.end), Some(end));
        prop_assert!(path.windows(2).all(|pair| pair[0].end == pair[1].begin), "{:?}", path);
    }
}
