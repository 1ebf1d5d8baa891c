use std::cell::Cell;

use node::Marking;
use proptest::prelude::*;

use super::*;
use crate::aq::Position;
use units::LinkId;

const PERIOD: Duration = Duration::from_ms(1);

fn place(link: u32) -> Place {
    Place { link: LinkId(link), position: Position::Egress }
}

thread_local!(static IDS: Cell<u32> = const { Cell::new(1) });

/// Makes a request under a new id.
fn ask(controller: &mut Controller, request: Request) -> Result<AqId, Decline> {
    let id = AqId::from_tag(IDS.replace(IDS.get() + 1)).unwrap();
    controller.request(id, request).map(|()| id)
}

fn link(place: Place, gbps: u64) -> LinkSpec {
    let path = Path::simulated(Duration::from_us(60), Bytes(1_500));
    LinkSpec { place, capacity: Rate::from_gbps(gbps), queue: Bytes(1_000_000), path, sees_queue: true }
}

/// A controller with one link of 10 Gbps and a queue of 1 MB at port 0.
fn controller(limit: Limit, conserving: Option<WorkConserving>) -> Controller {
    let mut controller = Controller::new(limit, conserving).unwrap();
    controller.add_link(link(place(0), 10)).unwrap();
    controller
}

fn plain() -> Controller {
    controller(Limit::Queue, None)
}

fn reallocating() -> Controller {
    controller(Limit::Queue, Some(WorkConserving::Reallocate { period: PERIOD, headroom: 0.25 }))
}

fn absolute(gbps: u64) -> Request {
    Request::new(Share::Absolute(Rate::from_gbps(gbps)), CongestionSignal::Drop, place(0))
}

fn weight(weight: u32) -> Request {
    Request { share: Share::Weight(weight), ..absolute(1) }
}

fn rates(controller: &Controller, ids: &[AqId]) -> Vec<u64> {
    ids.iter().map(|&id| controller.rate(id).unwrap().bps()).collect()
}

fn orders(controller: &mut Controller) -> Vec<Order> {
    std::iter::from_fn(|| controller.poll_order()).collect()
}

fn used(bytes: &[(AqId, u64)]) -> impl Fn(AqId) -> Bytes {
    let bytes: BTreeMap<AqId, Bytes> = bytes.iter().map(|&(id, bytes)| (id, Bytes(bytes))).collect();
    move |id| bytes.get(&id).copied().unwrap_or_default()
}

#[test]
fn absolute_requests_are_granted_while_there_is_room() {
    let mut controller = plain();
    let six = ask(&mut controller, absolute(6)).unwrap();
    let declined = ask(&mut controller, absolute(5)).unwrap_err();
    assert_eq!(declined, Decline::Capacity { asked: Rate::from_gbps(5), left: Rate::from_gbps(4) });
    assert_eq!(declined.to_string(), "5Gbps is more than the 4Gbps that absolute grants leave of the link");
    ask(&mut controller, absolute(4)).unwrap();
    controller.release(six).unwrap();
    ask(&mut controller, absolute(6)).unwrap();
}

#[test]
fn equal_weights_get_one_nth_each_as_entities_come_and_go() {
    // Figure 9: n active entities have 1/n each; five have 2 Gbps.
    let mut controller = plain();
    let mut ids = Vec::new();
    for n in 1..=5u64 {
        ids.push(ask(&mut controller, weight(1)).unwrap());
        assert_eq!(rates(&controller, &ids), vec![10_000_000_000 / n; n as usize]);
    }
    controller.release(ids.remove(2)).unwrap();
    assert_eq!(rates(&controller, &ids), [2_500_000_000; 4]);
}

#[test]
fn weights_share_what_absolute_grants_leave() {
    let mut controller = plain();
    let ids = [weight(1), weight(2)].map(|request| ask(&mut controller, request).unwrap());
    let fixed = ask(&mut controller, absolute(4)).unwrap();
    assert_eq!(rates(&controller, &ids), [2_000_000_000, 4_000_000_000]);
    controller.release(fixed).unwrap();
    assert_eq!(rates(&controller, &ids), [3_333_333_333, 6_666_666_666]);
}

#[test]
fn an_idle_entitys_share_goes_to_the_active_and_comes_back() {
    let mut controller = plain();
    let [a, b, c] = [weight(1), weight(1), weight(2)].map(|request| ask(&mut controller, request).unwrap());
    controller.measured(place(0), PERIOD, used(&[(a, 1), (b, 1)]));
    // The idle entity would have half if it woke up: 2 of 1 + 1 + 2.
    assert_eq!(rates(&controller, &[a, b, c]), [5_000_000_000; 3]);
    controller.measured(place(0), PERIOD, used(&[(a, 1), (b, 1), (c, 1)]));
    assert_eq!(rates(&controller, &[a, b, c]), [2_500_000_000, 2_500_000_000, 5_000_000_000]);
    controller.measured(place(0), PERIOD, used(&[]));
    controller.release(c).unwrap();
    assert_eq!(rates(&controller, &[a, b]), [10_000_000_000; 2], "each would be alone");
}

#[test]
fn nobody_is_pushed_off_a_link() {
    let mut controller = plain();
    ask(&mut controller, weight(1)).unwrap();
    let all = ask(&mut controller, absolute(10)).unwrap_err();
    assert_eq!(all, Decline::Starves { left: Rate::ZERO, least: Rate::ZERO });
    let crowd = ask(&mut controller, weight(u32::MAX)).unwrap_err();
    assert_eq!(crowd, Decline::Starves { left: Rate::from_gbps(10), least: Rate::from_bps(2) });
    ask(&mut controller, absolute(9)).unwrap();
}

#[test]
fn declines_say_why() {
    let mut controller = plain();
    let mut why = |request| ask(&mut controller, request).unwrap_err();
    assert_eq!(why(Request { place: place(7), ..absolute(1) }), Decline::UnknownLink);
    assert_eq!(why(weight(0)), Decline::NoWeight);
    assert_eq!(why(absolute(0)), Decline::Rate(Rate::ZERO));
    let ramp = Marking::Ramp { min: Bytes(9), max: Bytes(3), probability_max: 0.5, per: None };
    let declined = why(Request { feedback: CongestionSignal::Ecn(ramp), ..absolute(1) });
    assert!(matches!(&declined, Decline::Fields(problem) if problem.key == "feedback.ecn.ramp"), "{declined}");
}

#[test]
fn an_id_has_one_aq_in_a_switch() {
    let mut controller = plain();
    let first = ask(&mut controller, weight(1)).unwrap();
    assert_eq!(controller.request(first, weight(1)), Err(Decline::Taken));
    controller.release(first).unwrap();
    assert_eq!(controller.release(first), Err(NotGranted(first)));
    controller.request(first, weight(1)).unwrap();
}

#[test]
fn shares_that_do_not_change_with_use_are_not_measured() {
    let (mut plain, mut reallocating) = (plain(), reallocating());
    for (controller, absolute_too) in [(&mut plain, false), (&mut reallocating, true)] {
        let [fixed, weighted] = [absolute(1), weight(1)].map(|request| ask(controller, request).unwrap());
        assert_eq!((controller.is_measured(fixed), controller.is_measured(weighted)), (absolute_too, true));
    }
}

#[test]
fn ingress_and_egress_are_different_links() {
    let mut controller = plain();
    let ingress = Place { position: Position::Ingress, ..place(0) };
    controller.add_link(link(ingress, 10)).unwrap();
    let out = ask(&mut controller, Request { place: ingress, ..absolute(10) }).unwrap();
    let into = ask(&mut controller, absolute(10)).unwrap();
    assert_ne!(out, into);
    let places: Vec<Place> = orders(&mut controller)
        .iter()
        .map(|order| match order {
            Order::Deploy { place, .. } | Order::Withdraw { place, .. } => *place,
        })
        .collect();
    assert_eq!(places, [ingress, place(0)]);
}

#[test]
fn orders_are_what_has_changed_and_no_more() {
    let mut controller = plain();
    let a = ask(&mut controller, weight(1)).unwrap();
    let fixed = ask(&mut controller, absolute(2)).unwrap();
    let policy = Policy::new(Bytes(1_000_000), CongestionSignal::Drop).unwrap();
    let deploy =
        |id, gbps| Order::Deploy { place: place(0), id, rate: AqRate::nearest(Rate::from_gbps(gbps)).unwrap(), policy };
    assert_eq!(orders(&mut controller), [deploy(a, 8), deploy(fixed, 2)]);
    let b = ask(&mut controller, weight(1)).unwrap();
    assert_eq!(orders(&mut controller), [deploy(a, 4), deploy(b, 4)], "the absolute one is as it was");
    controller.release(b).unwrap();
    assert_eq!(orders(&mut controller), [Order::Withdraw { place: place(0), id: b }, deploy(a, 8)]);
    controller.measured(place(0), PERIOD, used(&[(a, 1)]));
    assert_eq!(orders(&mut controller), []);
}

#[test]
fn a_divided_limit_follows_the_rate() {
    let mut controller = controller(Limit::Divided { min: Some(Bytes(300_000)) }, None);
    let mut limits = Vec::new();
    for _ in 0..4 {
        ask(&mut controller, weight(1)).unwrap();
        let Some(Order::Deploy { policy, .. }) = orders(&mut controller).pop() else { panic!("nothing to deploy") };
        limits.push(policy.limit().get());
    }
    assert_eq!(limits, [1_000_000, 500_000, 333_333, 300_000]);
}

#[test]
fn reallocation_lends_what_is_not_used_and_gives_it_back() {
    let mut controller = reallocating();
    let [a, b] = [weight(1), weight(1)].map(|request| ask(&mut controller, request).unwrap());
    // 5 Gbps are 625,000 bytes in a period. b is idle, and three quarters of its guarantee are lent. Still it has all
    // of its guarantee when it sends again.
    controller.measured(place(0), PERIOD, used(&[(a, 625_000)]));
    assert_eq!(rates(&controller, &[a, b]), [8_750_000_000, 5_000_000_000]);
    // Low use takes back little: 156,250 bytes are 1.25 Gbps, and with a quarter more 1.56.
    controller.measured(place(0), PERIOD, used(&[(a, 1_093_750), (b, 156_250)]));
    assert_eq!(rates(&controller, &[a, b]), [8_437_500_000, 5_000_000_000]);
    controller.measured(place(0), PERIOD, used(&[(a, 1_054_688), (b, 625_000)]));
    assert_eq!(rates(&controller, &[a, b]), [5_000_000_000; 2]);
    controller.measured(place(0), PERIOD, used(&[(a, 625_000)]));
    let c = ask(&mut controller, weight(2)).unwrap();
    assert_eq!(rates(&controller, &[a, b, c]), [2_500_000_000, 2_500_000_000, 5_000_000_000], "guarantees anew");
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let headroom = WorkConserving::Reallocate { period: PERIOD, headroom: 0.0 };
    assert_eq!(Controller::new(Limit::Queue, Some(headroom)).unwrap_err().key, "work_conserving.reallocate.headroom");
    let mut controller = plain();
    let deep = controller.add_link(LinkSpec { queue: Bytes(64_000_000), ..link(place(1), 10) }).unwrap_err();
    assert_eq!(deep.key, "limit.queue");
    let fast = controller.add_link(link(place(1), 16_000)).unwrap_err();
    assert_eq!(fast.key, "capacity");
    let again = controller.add_link(link(place(0), 10)).unwrap_err();
    assert_eq!(again.key, "place");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn grants_never_exceed_the_link(steps in prop::collection::vec((0u8..4, 1u32..50, any::<u64>()), 1..60)) {
        for mut controller in [plain(), reallocating()] {
            let mut ids: Vec<AqId> = Vec::new();
            for &(what, size, bits) in &steps {
                let request = match what {
                    0 => absolute(u64::from(size) / 5),
                    1 => weight(size),
                    _ => weight(1),
                };
                match what {
                    0 | 1 => ids.extend(ask(&mut controller, request).ok()),
                    2 if !ids.is_empty() => {
                        let id = ids.swap_remove(size as usize % ids.len());
                        controller.release(id).unwrap();
                    }
                    _ => {
                        let active = ids.iter().enumerate().filter(|(i, _)| bits >> (i % 64) & 1 == 1);
                        let arrived: Vec<_> = active.map(|(_, &id)| (id, u64::from(size) * 50_000)).collect();
                        controller.measured(place(0), PERIOD, used(&arrived));
                    }
                }
                let link = &controller.links[&place(0)];
                // On a re-allocating link, the rates by lending. No rate is below its guarantee.
                let awake = link.grants.iter().filter(|(_, grant)| grant.active);
                let had = |(&id, grant): (&AqId, &Grant)| grant.reallocated.or(controller.rate(id)).unwrap().bps();
                prop_assert!(awake.map(had).sum::<u64>() <= 10_000_000_000);
                prop_assert!(link.grants.values().all(|grant| link.rate(grant, true) >= link.guarantee(grant, true)));
                prop_assert!(ids.iter().all(|&id| controller.rate(id).unwrap().bps() >= AqRate::BPS_MIN));
                orders(&mut controller); // none panics
            }
        }
    }
}
