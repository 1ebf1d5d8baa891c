//! Rate limiters at hosts in a whole network: what they guarantee, and what they can't.

use crate::aq::{PAYLOAD, application, close, dumbbell, rates};
use crate::{column, names, run_on, table};

const PRL: &str = "sharing = \"rate_limiter\"";
const DRL: &str = "sharing = { elastic_switch = { rate_allocation = \"guarantees_only\", period = \"2ms\" } }";

fn lasting(sharing: &str, end: &str) -> String {
    format!("{sharing}\nmeasure = {{ end = \"{end}\", interval = \"5ms\" }}")
}

/// A host of `hosts` with UDP at line rate, and its request of 5 Gbps or a weight.
fn two(senders: [&str; 2]) -> String {
    let udp = |name, senders| application(name, "\"udp\"", senders, "{ weight = 1 }");
    udp("a", senders[0]) + &udp("b", senders[1])
}

#[test]
fn a_limited_host_sends_its_part_of_the_share_and_no_more() {
    // Half the link for one host, half for four: 1,250 Mbps each.
    for sharing in [PRL, DRL] {
        let result = run_on(1, &dumbbell(&lasting(sharing, "60ms"), &two(["0", "1-4"])));
        let got = rates(&result, 20);
        close(got[0], 5.0 * PAYLOAD, 0.01);
        close(got[1], 5.0 * PAYLOAD, 0.01);
        let links = table(&result, "links");
        let of_host1 = names(links, "from_node").iter().position(|from| *from == "host1").unwrap();
        // Its NIC: 60 ms at 1.25 Gbps and a burst, from which hypervisors' own packets are left out.
        close(column(links, "sent_bytes")[of_host1] as f64, 1.25e9 / 8.0 * 0.06, 0.01);
    }
}

#[test]
fn what_one_host_leaves_is_lost_to_the_entity_s_others() {
    // Figure 6's reason: two hosts, one of which sends at a tenth of its half.
    let tables = application("a", "\"udp\"", "0", "{ weight = 1 }")
        .replace("traffic = [\"a\"]", "traffic = [\"a\", \"b\"]")
        + &application("b", r#"{ udp = { rate = "500Mbps" } }"#, "1", "{ weight = 1 }")
            .split_once("[[traffic]]")
            .map(|(_, traffic)| format!("[[traffic]]{traffic}"))
            .unwrap();
    let of = |sharing: &str| rates(&run_on(1, &dumbbell(&lasting(sharing, "60ms"), &tables)), 20)[0];
    close(of(PRL), 5.5 * PAYLOAD, 0.02);
    close(of("sharing = \"aq\""), 10.0 * PAYLOAD, 0.02);
}

#[test]
fn limiters_outlive_a_failure_and_threads_change_nothing() {
    let failure = "failure = [{ at = \"10ms\", until = \"15ms\", link = [\"left\", \"right\"] }]";
    for sharing in [PRL, DRL, "sharing = \"elastic_switch\""] {
        let scene = dumbbell(
            &format!("{}\n{failure}", lasting(sharing, "80ms")),
            &[
                application("a", "\"cubic\"", "0", "{ weight = 1 }"),
                application("b", "\"newreno\"", "1-3", "{ weight = 1 }"),
            ]
            .concat(),
        );
        let (alone, together) = (run_on(1, &scene), run_on(2, &scene));
        assert_eq!(alone.info.digest, together.info.digest, "{sharing}");
        let got = rates(&alone, 40);
        if sharing == "sharing = \"elastic_switch\"" {
            // Guarantees that fill the link leave no room to probe in: ElasticSwitch wants a tenth of it free.
            assert!(got.iter().sum::<f64>() > 9.0 * PAYLOAD, "{got:?}");
            continue;
        }
        assert!(got.iter().all(|&rate| (4.0..=5.0 * PAYLOAD * 1.001).contains(&rate)), "{sharing}: {got:?}");
    }
}

#[test]
fn a_host_of_two_entities_is_refused() {
    let toml = dumbbell(&lasting(PRL, "1ms"), &two(["0", "0-1"]));
    let problem = clearway_sim::run(&crate::scenario(&toml), 1, |_| false).unwrap_err();
    assert_eq!(problem.key, "entity[1].request[0]");
    assert!(problem.message.contains("host 0 sends for \"a\" too"), "{problem}");
}

#[test]
fn a_share_of_nothing_is_refused_and_divides_by_nothing() {
    for share in ["{ weight = 0 }", "{ absolute = \"0bps\" }"] {
        for sharing in [PRL, DRL] {
            let toml = dumbbell(&lasting(sharing, "1ms"), &application("a", "\"udp\"", "0", share));
            let problem = clearway_sim::run(&crate::scenario(&toml), 1, |_| false).unwrap_err();
            assert_eq!(problem.key, "entity[0].request[0].share", "{sharing} {share}: {problem}");
        }
    }
}
