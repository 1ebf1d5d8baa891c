use node::Packet;
use node::pool::{Pool, Transit};
use node::retry::RetryMessage;
use proptest::prelude::*;
use run::{FlowEvent, Plan};
use units::{FlowId, HostId};

use super::*;
use crate::testing;

fn any_packet() -> PacketId {
    let message = RetryMessage::Ack(0);
    Pool::default().insert(Packet::new(FlowId(0), HostId(0), HostId(1), message), Transit::leaving(Time::ZERO))
}

/// Serves packets for one port that come by these links in ties. Returns for each tie the order of the links, and the
/// credits of links at the end.
fn serve(links: usize, ties: &[Vec<usize>]) -> (Vec<Vec<usize>>, Vec<i64>) {
    let mut credits = vec![0; links];
    let id = any_packet();
    let serve = |tie: &Vec<usize>| {
        let of = |&source: &usize| Tied { credit: credits[source], source, id, goal: Goal::Port(0) };
        let mut tied: Vec<Tied> = tie.iter().map(of).collect();
        put_in_order(&mut tied);
        settle(&tied, |source, by| credits[source] += by);
        tied.iter().map(|of| of.source).collect()
    };
    let orders = ties.iter().map(serve).collect();
    (orders, credits)
}

/// How often each link went first, and how often it was due to.
fn firsts(links: usize, orders: &[Vec<usize>]) -> Vec<(f64, f64)> {
    let mut firsts = vec![(0.0, 0.0); links];
    for order in orders {
        firsts[order[0]].0 += 1.0;
        order.iter().for_each(|&link| firsts[link].1 += 1.0 / order.len() as f64);
    }
    firsts
}

#[test]
fn whichever_links_tie_in_turns_each_goes_first_as_often_as_it_is_due() {
    let cases: [&[&[usize]]; 5] = [
        &[&[0, 1]],
        // A pointer that goes round the ports would let 0 and 2 go first always.
        &[&[0, 1], &[2, 3]],
        // Link 0 is in each tie: the longest not gone first would be another in two of three.
        &[&[0, 1], &[0, 2]],
        &[&[0, 1, 2], &[0, 1], &[1, 2, 3, 4]],
        &[&[0, 1, 2, 3, 4, 5, 6]],
    ];
    for case in cases {
        let ties: Vec<Vec<usize>> = case.iter().cycle().take(840 * case.len()).map(|tie| tie.to_vec()).collect();
        let (orders, _) = serve(7, &ties);
        for (link, (first, due)) in firsts(7, &orders).into_iter().enumerate() {
            assert!((first - due).abs() <= 2.0, "{case:?}: link {link} went first {first} times, due {due}");
        }
    }
}

proptest! {
    #[test]
    fn whatever_ties_no_link_goes_first_much_more_often_than_it_is_due(
        ties in prop::collection::vec(prop::collection::btree_set(0_usize..8, 2..=8), 2_000)
    ) {
        let ties: Vec<Vec<usize>> = ties.into_iter().map(|tie| tie.into_iter().collect()).collect();
        let (orders, credits) = serve(8, &ties);
        prop_assert_eq!(credits.iter().sum::<i64>(), 0);
        for (link, (first, due)) in firsts(8, &orders).into_iter().enumerate() {
            // Fagin and Williams bound the debts of a carpool; with eight members no more than a few drives.
            prop_assert!((first - due).abs() <= 4.0, "link {} went first {} times, due {}", link, first, due);
        }
        // Each of a pair goes before the other about as often: six standard deviations of fair coins.
        for (one, other) in (0..8).flat_map(|one| (0..one).map(move |other| (one, other))) {
            let place = |order: &[usize], link| order.iter().position(|&of| of == link);
            let both = orders.iter().filter_map(|order| Some((place(order, one)?, place(order, other)?)));
            let (before, all) = both.fold((0.0, 0.0), |(before, all), (a, b)| (before + f64::from(a < b), all + 1.0));
            let spread = 3.0 * f64::sqrt(all);
            prop_assert!((before - all / 2.0_f64).abs() <= spread, "{} before {}: {} of {}", one, other, before, all);
        }
    }
}

#[test]
fn a_link_that_ties_with_none_that_goes_its_way_gains_and_owes_nothing() {
    let id = any_packet();
    let of = |source, goal| Tied { credit: 0, source, id, goal };
    let mut changes = Vec::new();
    let tied = [of(1, Goal::Port(0)), of(2, Goal::Nothing), of(3, Goal::Port(1)), of(4, Goal::Port(1))];
    settle(&tied, |source, by| changes.push((source, by)));
    assert_eq!(changes, [(4, DUE / 2), (3, -DUE / 2)]);
    // Two packets of one link contend with none.
    settle(&[of(1, Goal::Host), of(1, Goal::Host)], |_, _| unreachable!("they are not rivals"));
}

/// Two equal flows into one port, on any number of parts.
fn two_flows(transport: &str) -> Plan {
    let text = format!(
        r#"
        timing = "ideal"
        transport = "{transport}"
        fabric.star = {{ hosts = 3, rate = "100Gbps", propagation = "500ns", switch_delay = "0ns" }}
        [[traffic]]
        sizes.constant = "32MiB"
        senders = "0-1"
        receivers = "2"
        pattern.incast.degree = 2
        arrivals = "all_at_once"
        "#
    );
    Plan::new(&scenario::read(&text, "scene.toml", &[]).unwrap()).unwrap()
}

#[test]
fn two_equal_flows_that_start_at_once_share_equally() {
    let plan = two_flows("dctcp");
    let parts = testing::run(&plan, 1, || ());
    let ended = |host: usize| {
        let records = &parts[0].hosts[host].host.records;
        records
            .iter()
            .filter(|of| matches!(of.fate, FlowEvent::Completed { .. }))
            .map(|of| of.at)
            .max()
            .expect("it ends")
    };
    let (one, other) = (ended(0).ps() as f64, ended(1).ps() as f64);
    assert!((one / other - 1.0).abs() < 0.05, "{one} ps and {other} ps");
}
