//! Hosts with several links: what goes by which, and what is left when one is dead.

use catalogue::{LinkControl, Transport};
use clearway_sim::RunResult;

use crate::{column, names, of_link, run_alone, run_both, table};

/// Racks in pairs, two hosts a rack, each host joined to both of its pair; every link 100 Gbps, as many up as down.
fn scene(settings: &str, traffic: &str) -> String {
    format!(
        "measure = {{ interval = '0s', completion = 'delivered', drain = '50ms' }}\n{settings}\n\
         fabric.leaf_spine = {{ racks = 4, hosts_per_rack = 2, homes = 2, spines = 4, spine_rate = '100Gbps' }}\n\
         {traffic}"
    )
}

fn flow(src: u32, dst: u32, start: &str, bytes: &str) -> String {
    format!(
        "[[traffic]]\nname = '{src} to {dst} at {start}'\nsizes.constant = '{bytes}'\narrivals = 'all_at_once'\n\
         senders = '{src}'\nreceivers = '{dst}'\nstart = '{start}'\n"
    )
}

fn fcts(result: &RunResult) -> &[u64] {
    column(table(result, "flows"), "fct_ps")
}

fn completed(result: &RunResult) -> bool {
    names(table(result, "flows"), "status").iter().all(|status| *status == "completed")
}

/// From the last packet's departure from a host to its arrival at one of the same pair of racks: 200 ns and 450 ns to
/// the leaf, a packet's 120 ns, 200 ns.
const ONE_SWITCH_PS: u64 = 970_000;
const PACKET_PS: u64 = 120_000;

#[test]
fn a_sprayed_flow_takes_half_the_time_by_two_links_and_an_eighth_by_eight() {
    // 1,000 full packets, handed in at the rate of all links.
    let fct = |links: u64| 999 * PACKET_PS / links + PACKET_PS + ONE_SWITCH_PS;
    let udp = |balancing: &str| format!("transport = 'udp'\nswitch.balancing = '{balancing}'");
    for (balancing, links) in [("spray", 2), ("round_robin", 2), ("ecmp", 1)] {
        let result = run_both(&scene(&udp(balancing), &flow(0, 3, "0s", "1460KB")));
        assert_eq!(fcts(&result), [fct(links)], "{balancing}");
        let run::Data::F64(slowdown) = &table(&result, "flows").column("slowdown").unwrap().data else { panic!() };
        // Alone in the network is over all that lies side by side, so that a flow that has one of two links is slow.
        assert!((slowdown[0] * links as f64 - 2.0).abs() < 0.02, "{balancing} {slowdown:?}");
    }
    let rails = |balancing: &str| {
        format!(
            "{}\nmeasure = {{ interval = '0s', completion = 'delivered' }}\n\
             fabric.rails = {{ blocks = 1, servers_per_block = 2, rails = 8 }}\n{}",
            udp(balancing),
            flow(0, 1, "0s", "1460KB")
        )
    };
    let result = run_alone(&rails("spray"));
    assert_eq!(fcts(&result), [fct(8)]);
    for rail in 0..8 {
        assert_eq!(of_link(&result, "host0", &format!("rail{rail}"), "sent_packets"), 125);
    }
    assert_eq!(fcts(&run_alone(&rails("ecmp"))), [fct(1)]);
}

#[test]
fn hashed_flows_have_a_link_each_or_share_one() {
    let mut seen = [0, 0];
    for seed in 0..8 {
        let settings = format!("seed = {seed}\ntransport = 'udp'\nswitch.balancing = 'ecmp'");
        let result = run_alone(&scene(
            &settings,
            &(flow(0, 3, "0s", "1460KB") + &flow(0, 3, "0s", "1460KB").replace("'0 to", "'again 0 to")),
        ));
        let by_first = of_link(&result, "host0", "leaf0", "sent_packets");
        assert_eq!(by_first + of_link(&result, "host0", "leaf1", "sent_packets"), 2_000);
        let mut fcts = fcts(&result).to_vec();
        fcts.sort_unstable();
        match by_first {
            // Each at full rate: no flow waits for one that has another port.
            1_000 => assert_eq!(fcts, [1_000 * PACKET_PS + ONE_SWITCH_PS; 2]),
            // In turns, so that the one ends shortly before the other.
            0 | 2_000 => {
                assert_eq!(fcts[1], 2_000 * PACKET_PS + ONE_SWITCH_PS);
                assert!(fcts[0] > 1_990 * PACKET_PS);
            }
            other => panic!("{other} packets of flows that have one port each"),
        }
        seen[usize::from(by_first == 1_000)] += 1;
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

#[test]
fn when_a_link_dies_the_other_carries_on() {
    // From 24.1 us on, when 2 x 201 packets have left; the last two are still on the cables.
    let failure = "reroute_delay = '10us'\nfailure = [{ at = '24.1us', link = ['host0', 'leaf0'] }]";
    for balancing in ["spray", "ecmp"] {
        let udp = format!("transport = 'udp'\nswitch.balancing = '{balancing}'\n{failure}");
        let result = run_both(&scene(&udp, &flow(0, 7, "0s", "1460KB")));
        let sent = ["leaf0", "leaf1"].map(|leaf| of_link(&result, "host0", leaf, "sent_packets"));
        let lost = of_link(&result, "host0", "leaf0", "dead_packets");
        assert_eq!(sent[0] + sent[1], 1_000);
        match balancing {
            // 200 ns of cable and 450 ns of switch hold 5 packets, and one was leaving; nothing was given to a dead
            // link.
            "spray" => assert_eq!((sent, lost), ([201, 799], 6)),
            _ => assert!([[0, 1_000], [201, 799]].contains(&sent), "{sent:?}"),
        }
    }
    // What recovers is complete, and the dead link is avoided in both directions once routes have changed.
    let later = flow(6, 0, "50us", "1460KB");
    let failed =
        |transport: &str, flows: &str| run_both(&scene(&format!("transport = '{transport}'\n{failure}"), flows));
    for transport in ["dctcp", "dcpim", "homa"] {
        assert!(completed(&failed(transport, &(flow(0, 7, "0s", "1460KB") + &later))), "{transport}");
        let result = failed(transport, &later);
        assert!(completed(&result), "{transport}");
        assert_eq!(
            ["leaf0", "spine0"].map(|from| of_link(
                &result,
                from,
                if from == "leaf0" { "host0" } else { "leaf0" },
                "sent_packets"
            )),
            [0, 0]
        );
    }
}

#[test]
fn when_a_leaf_dies_its_hosts_are_reached_by_the_other() {
    let failure = "reroute_delay = '10us'\nfailure = [{ at = '20us', until = '400us', switch = 'leaf1' }]";
    let flows = flow(4, 1, "0s", "1460KB") + &flow(1, 5, "0s", "1460KB") + &flow(2, 3, "0s", "146KB");
    // Packets for leaf1 are lost until routes change, 10 us later.
    let udp = format!("transport = 'udp'\nswitch.balancing = 'spray'\n{failure}");
    let after = flow(5, 2, "31us", "146KB") + &flow(2, 3, "31us", "146KB") + &flow(3, 7, "60us", "146KB");
    let result = run_both(&scene(&udp, &(flows.clone() + &after)));
    let status = names(table(&result, "flows"), "status");
    assert_eq!(status[3..], ["completed"; 3]);
    assert!(status[0] == "failed", "{status:?}");
    // Hosts see their own dead links at once.
    for host in ["host1", "host2", "host3"] {
        assert!(of_link(&result, host, "leaf1", "dead_packets") <= 7, "{host}");
    }
    for transport in ["dctcp", "dcpim", "rdma"] {
        let result = run_both(&scene(&format!("transport = '{transport}'\n{failure}"), &flows));
        assert!(completed(&result), "{transport}");
    }
}

/// What refuses hosts with several links, and what it says.
const REFUSED: &[(&str, &str)] = &[
    ("harmony", "divides each host's only link into slots"),
    ("rsvp", "divides each host's only link into slots"),
    ("fastpass", "assigns each host's only link to one packet at a time"),
    ("r2c2", "treats a host and its switch as one node"),
    ("ndp", "paths = \"switches\""),
];

#[test]
fn every_transport_runs_or_says_why_not() {
    for name in Transport::NAMES {
        let text = |transport: &str| {
            let traffic = "[[traffic]]\nname = 'mix'\nsizes = 'google_rpc'\narrivals.poisson.load = 0.5\nflows = 150\n\
                           [[traffic]]\nname = 'incast'\nsizes.constant = '60KB'\narrivals = 'all_at_once'\n\
                           receivers = '1'\n\
                           pattern.incast.degree = 7\nflows = 7\n";
            scene(&format!("transport = {transport}"), traffic)
        };
        let transport = match REFUSED.iter().find(|refused| refused.0 == *name) {
            None => format!("'{name}'"),
            Some((_, why)) => {
                let problem = run::Plan::new(&crate::scenario(&text(&format!("'{name}'")))).err().expect("refused");
                assert!(problem.message.contains(why) && problem.message.contains("host0 has 2 links"), "{problem}");
                assert!(problem.key.starts_with("transport"), "{problem}");
                if *name != "ndp" {
                    continue;
                }
                "{ ndp = { paths = 'switches' } }".to_owned()
            }
        };
        let result = run_both(&text(&transport));
        // Both last hops of the incast's host have carried their part of it.
        let down = ["leaf0", "leaf1"].map(|leaf| of_link(&result, leaf, "host1", "sent_bytes"));
        assert!(down.iter().all(|bytes| *bytes > 60_000), "{name} {down:?}");
        if *name != "udp" {
            assert!(completed(&result), "{name}");
        }
    }
}

#[test]
fn every_flow_control_runs_under_every_balancing() {
    for name in LinkControl::NAMES {
        for transport in ["udp", "dctcp", "rdma", "dcpim"] {
            for balancing in ["ecmp", "spray"] {
                let traffic = "[[traffic]]\nname = 'incast'\nsizes.constant = '300KB'\narrivals = 'all_at_once'\n\
                               receivers = '1'\n\
                               pattern.incast.degree = 7\nflows = 14\n\
                               [[traffic]]\nname = 'others'\nsizes.uniform = { min = '1B', max = '60KB' }\n\
                               arrivals.poisson.load = 0.4\nflows = 60\n";
                let settings = format!(
                    "transport = '{transport}'\nflow_control = '{name}'\n\
                     switch = {{ balancing = '{balancing}', buffer.shared.bytes = '4MB' }}"
                );
                let result = run_both(&scene(&settings, traffic));
                assert!(completed(&result) || (*name, transport) == ("none", "udp"), "{name} {transport} {balancing}");
            }
        }
    }
}

#[test]
fn an_incast_takes_both_last_hops() {
    // 14 messages of 100 packets each from other racks: 700 or so by each of the last hops, as leaves are drawn.
    for balancing in ["spray", "ecmp"] {
        let settings =
            format!("transport = 'udp'\nswitch = {{ balancing = '{balancing}', buffer.per_port.bytes = '60KB' }}");
        let traffic = "[[traffic]]\nsizes.constant = '146KB'\narrivals = 'all_at_once'\nreceivers = '1'\n\
                       senders = '4-7'\nflows = 40\n";
        let result = run_both(&scene(&settings, traffic));
        let of = |what: &str| ["leaf0", "leaf1"].map(|leaf| of_link(&result, leaf, "host1", what));
        let (sent, lost) = (of("sent_packets"), of("overflow_packets"));
        let came = [sent[0] + lost[0], sent[1] + lost[1]];
        assert!(lost.iter().all(|lost| *lost > 0), "{balancing}: the queues are too short for it: {lost:?}");
        let spread = came[0].abs_diff(came[1]) as f64 / (came[0] + came[1]) as f64;
        assert!(spread < if balancing == "spray" { 0.05 } else { 0.5 }, "{balancing} {came:?}");
    }
}

#[test]
fn a_switch_pauses_the_ports_of_hosts_one_by_one() {
    // Six hosts send to one through little memory: leaf0 and leaf1 each pause the ports that lead to them, and nothing
    // is lost.
    let settings =
        "transport = 'udp'\nflow_control = 'pfc'\nswitch = { balancing = 'ecmp', buffer.shared.bytes = '1MB' }";
    let traffic =
        "[[traffic]]\nsizes.constant = '1MB'\narrivals = 'all_at_once'\nreceivers = '1'\nsenders = '2-7'\nflows = 24\n";
    let result = run_both(&scene(settings, traffic));
    assert!(completed(&result));
    let links = table(&result, "links");
    let by_host =
        names(links, "from_node").into_iter().zip(column(links, "pauses")).filter(|(from, _)| from.starts_with("host"));
    assert!(by_host.map(|(_, pauses)| pauses).sum::<u64>() > 0);
}
