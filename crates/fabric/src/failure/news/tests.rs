use units::Rate;

use super::*;
use crate::{FabricSpec, Grid};

const DELAY: Duration = Duration::from_us(50);
const HOP: Duration = Duration::from_us(10);

/// Six switches in a ring.
fn ring() -> Fabric {
    let grid = Grid { dims: vec![6], rate: Rate::from_gbps(100), ..Grid::default() };
    FabricSpec::Torus(grid).build().unwrap()
}

fn cable(fabric: &Fabric, a: u32, b: u32) -> Failures {
    let [a, b] = [a, b].map(|switch| fabric.switch_node(SwitchId(switch)));
    let there = fabric.links_between(a, b).next().unwrap();
    Failures { links: [there, Fabric::reverse(there)].into(), ..Failures::default() }
}

fn us(time: u64) -> Time {
    Time::from_us(time)
}

/// By switch: when it learned something, in microseconds, and how many links it then took to be dead.
fn times(heard: &[NotificationArrival]) -> Vec<(u32, u64, usize)> {
    let mut times: Vec<_> = heard.iter().map(|of| (of.switch.0, of.at.ps() / 1_000_000, of.dead.links.len())).collect();
    times.sort_unstable();
    times
}

#[test]
fn news_goes_around_a_ring_from_both_ends_of_the_dead_link() {
    let fabric = ring();
    let states = [(us(100), cable(&fabric, 0, 1))];
    let heard = spread(&fabric, &states, &states, DELAY, HOP);
    assert_eq!(times(&heard), [(0, 150, 2), (1, 150, 2), (2, 160, 2), (3, 170, 2), (4, 170, 2), (5, 160, 2)]);
}

#[test]
fn who_is_cut_off_learns_what_it_missed_when_a_link_is_back() {
    let fabric = ring();
    // Switch 3 is cut off at 100 us, then 0 - 1 fails; 2 - 3 is repaired at 300 us.
    let both = |one: &Failures, other: &Failures| Failures {
        links: one.links.union(&other.links).copied().collect(),
        ..Failures::default()
    };
    let (left, right, far) = (cable(&fabric, 2, 3), cable(&fabric, 3, 4), cable(&fabric, 0, 1));
    let off = both(&left, &right);
    let states = [(us(100), off.clone()), (us(200), both(&off, &far)), (us(300), both(&right, &far))];
    let heard = spread(&fabric, &states, &states, DELAY, HOP);
    let of_three: Vec<(u64, usize)> =
        heard.iter().filter(|of| of.switch.0 == 3).map(|of| (of.at.ps() / 1_000_000, of.dead.links.len())).collect();
    // Switch 3 detects its own links; it hears of 0 - 1 10 us after it is reconnected.
    assert_eq!(of_three, [(150, 4), (350, 2), (360, 4)]);
    let last: Vec<usize> =
        (0..6).map(|switch| heard.iter().rev().find(|of| of.switch.0 == switch).unwrap().dead.links.len()).collect();
    assert_eq!(last, [6, 4, 4, 4, 6, 6], "0, 4 and 5 are cut off from the others, and can't know that 2 - 3 is back");
}

#[test]
fn neighbours_notice_a_dead_switch_and_it_learns_when_it_is_back() {
    let fabric = ring();
    let dead = Failures { switches: [SwitchId(2)].into(), ..Failures::default() };
    let states = [(us(100), dead.clone()), (us(200), Failures::default())];
    let heard = spread(&fabric, &states, &states, DELAY, HOP);
    let of = |switch: u32| -> Vec<(u64, bool)> {
        let own = heard.iter().filter(|of| of.switch.0 == switch);
        own.map(|of| (of.at.ps() / 1_000_000, of.dead == dead)).collect()
    };
    assert_eq!(of(1), [(150, true), (250, false)]);
    assert_eq!(of(3), of(1));
    assert_eq!(of(0), [(160, true), (260, false)]);
    assert_eq!(of(5), [(170, true), (270, false)]);
    assert!(of(2).is_empty(), "it was dead, and knows nothing else");
}

#[test]
fn news_that_is_silent_about_a_dead_link_does_not_pass_it() {
    let fabric = ring();
    let silent = cable(&fabric, 2, 3);
    let news = cable(&fabric, 0, 1);
    let all = Failures { links: silent.links.union(&news.links).copied().collect(), ..Failures::default() };
    let heard = spread(&fabric, &[(us(0), silent), (us(100), all)], &[(us(100), news)], DELAY, HOP);
    // No switch hears of 2 - 3; switch 3 hears of 0 - 1 over 0, 5 and 4.
    assert_eq!(times(&heard), [(0, 150, 2), (1, 150, 2), (2, 160, 2), (3, 180, 2), (4, 170, 2), (5, 160, 2)]);
}

#[test]
fn late_news_of_the_past_is_ignored() {
    let fabric = ring();
    // Down for 15 us, less than news takes around the ring: each switch hears of both changes, in order.
    let states = [(us(100), cable(&fabric, 0, 1)), (us(115), Failures::default())];
    let heard = spread(&fabric, &states, &states, DELAY, HOP);
    assert_eq!(heard.len(), 12);
    for switch in 0..6 {
        let own: Vec<usize> = heard.iter().filter(|of| of.switch.0 == switch).map(|of| of.dead.links.len()).collect();
        assert_eq!(own, [2, 0], "switch {switch}");
    }
}
