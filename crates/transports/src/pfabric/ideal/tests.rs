use proptest::prelude::*;

use super::*;

fn flow(src: u32, dst: u32, start_us: u64, work_us: u64) -> Flow {
    let (start, work) = (Time::from_us(start_us), Duration::from_us(work_us));
    Flow { src: HostId(src), dst: HostId(dst), start, work }
}

#[test]
fn the_least_remaining_goes_first_and_what_is_free_is_used() {
    // Two to one receiver, of which the second has less and preempts; for so long the first's sender has time for a
    // third.
    let flows = [flow(0, 2, 0, 100), flow(1, 2, 10, 30), flow(0, 3, 10, 200)];
    assert_eq!(ideal(&flows), [130, 40, 300].map(Time::from_us));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..Default::default() })]

    /// None is done before it could be alone; and one link is never idle while it has something to do.
    #[test]
    fn is_a_schedule(flows in proptest::collection::vec((0u32..4, 0u32..4, 0u64..50, 1u64..50), 1..30)) {
        let all: Vec<Flow> = flows.iter().map(|&(src, dst, start, work)| flow(src, 4 + dst, start, work)).collect();
        for (done, flow) in ideal(&all).into_iter().zip(&all) {
            prop_assert!(done >= flow.start + flow.work);
        }
        let one: Vec<Flow> = all.iter().map(|flow| Flow { src: HostId(0), dst: HostId(1), ..*flow }).collect();
        let mut busy_until = Time::ZERO;
        let mut sorted = one.clone();
        sorted.sort_by_key(|flow| flow.start);
        sorted.iter().for_each(|flow| busy_until = busy_until.max(flow.start) + flow.work);
        prop_assert_eq!(ideal(&one).into_iter().max(), Some(busy_until));
    }
}
