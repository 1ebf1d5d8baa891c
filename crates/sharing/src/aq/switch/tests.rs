use super::*;
use crate::aq::derive::Path;
use crate::aq::{Ids, Request};
use contract::CongestionSignal;
use units::{LinkId, Rate};

#[test]
fn more_limits_than_a_table_can_hold_are_refused_beforehand() {
    let place = Place { link: LinkId(0), position: Position::Ingress };
    let request = Request::new(Share::Weight(1), CongestionSignal::Drop, place);
    let mut ids = Ids::default();
    let steps: Vec<_> = (0..=POLICIES).map(|_| (Time::ZERO, Step::Request(ids.next_id().unwrap(), request))).collect();
    let reallocate = WorkConserving::Reallocate { period: Duration::from_ms(1), headroom: 0.1 };
    let config = |limit| Config { limit, work_conserving: Some(reallocate), ..Config::default() };
    let path = Path::simulated(Duration::from_us(60), Bytes(1_500));
    let links = [LinkSpec { place, capacity: Rate::from_gbps(10), queue: Bytes(1_000_000), path, sees_queue: true }];
    let part = |limit, steps: &[_]| {
        SwitchPart::new(&config(limit), &links, steps.to_vec(), Stream::new(1, 0, "aq")).map(|part| part.deployed())
    };
    let divided = Limit::Divided { min: Some(Bytes(3_000)) };
    let Err(SwitchError::Setting(problem)) = part(divided, &steps) else { panic!("it would run out of policies") };
    assert_eq!(problem.key, "limit.divided");
    assert_eq!(part(divided, &steps[1..]), Ok(POLICIES));
    assert_eq!(part(Limit::Queue, &steps), Ok(POLICIES + 1));
    assert_eq!(part(Limit::Derived, &steps), Ok(POLICIES + 1));
}
