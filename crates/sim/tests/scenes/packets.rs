//! Packets recorded one by one: each link carries what its counters say, queues are what had come and not left, and
//! what is asked for is what is there.

use std::collections::BTreeMap;

use crate::{RunResult, column, names, run_alone, run_both, table};

/// Three hosts send 60 KB each to a fourth, over two leaves and a spine; switches mark, lose and pause as they are set.
pub fn incast(settings: &str) -> String {
    format!(
        r#"
        {settings}
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 2, spines = 1, spine_rate = "100Gbps" }}
        [[traffic]]
        name = "many"
        sizes.constant = "60KB"
        arrivals = "all_at_once"
        pattern.incast.degree = 3
        receivers = "0"
        flows = 3
        "#
    )
}

#[test]
fn each_link_has_the_packets_that_it_counted() {
    for settings in [
        "transport = \"dcpim\"",
        "transport = \"ndp\"",
        "transport = \"dctcp\"\nswitch.buffer.per_port.bytes = \"15KB\"",
        "transport = \"rdma\"\nflow_control = \"pyrrha\"\nswitch.buffer.shared.bytes = \"60KB\"",
    ] {
        let result = run_both(&incast(&format!("{settings}\nmeasure.packets = {{}}")));
        let (links, packets) = (table(&result, "links"), table(&result, "packets"));
        let mut sent: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let frames = names(packets, "transport").into_iter().map(|name| name == "pyrrha");
        for ((link, bytes), is_frame) in column(packets, "link").iter().zip(column(packets, "bytes")).zip(frames) {
            if *link != u64::MAX && !is_frame {
                let (count, sum) = sent.entry(*link).or_default();
                (*count, *sum) = (*count + 1, *sum + bytes);
            }
        }
        let counted = column(links, "sent_packets").iter().zip(column(links, "sent_bytes"));
        for (link, (count, bytes)) in (0..).zip(counted) {
            assert_eq!(sent.get(&link).copied().unwrap_or_default(), (*count, *bytes), "{settings}: link {link}");
        }
        let lost = names(packets, "lost").into_iter().filter(|why| *why == "no room").count() as u64;
        assert_eq!(lost, column(links, "overflow_packets").iter().sum::<u64>(), "{settings}");
        assert!(settings.contains("dctcp") == (lost > 0), "{settings}: {lost}");
    }
}

#[test]
fn a_queue_is_what_has_come_and_not_left() {
    let result = run_both(&incast("transport = \"udp\"\nmeasure.packets = {}"));
    let packets = table(&result, "packets");
    let [at, bytes] = [column(packets, "time_ps"), column(packets, "bytes")];
    let [link, came, waiting] = ["link", "came_ps", "waiting_bytes"].map(|name| column(packets, name));
    let (nodes, to) = (names(packets, "node"), names(packets, "to_node"));
    // The last hop, which has three times what it carries.
    let here: Vec<usize> = (0..at.len()).filter(|&row| (nodes[row], to[row]) == ("leaf0", "host0")).collect();
    assert!(here.iter().any(|&row| waiting[row] > 20_000));
    for &row in &here {
        let sum = |is_in: &dyn Fn(usize) -> bool| -> u64 {
            here.iter().filter(|&&other| is_in(other)).map(|&other| bytes[other]).sum()
        };
        // Whatever comes at the very instant may have come after it left.
        let least = sum(&|other| came[other] < at[row] && at[other] > at[row]);
        let most = sum(&|other| came[other] <= at[row] && at[other] > at[row]);
        assert!((least..=most).contains(&waiting[row]), "{} at {}", waiting[row], at[row]);
        assert!(link[row] != u64::MAX && came[row] <= at[row]);
    }
}

#[test]
fn what_is_asked_for_is_recorded_and_nothing_else() {
    let result = |packets: &str| run_both(&incast(&format!("transport = \"dcpim\"\nmeasure.packets = {packets}")));
    let all = result("{}");
    let rows = |result: &RunResult, wanted: &dyn Fn(&RunResult, usize) -> bool| {
        (0..table(result, "packets").len()).filter(|&row| wanted(result, row)).count()
    };
    let flow = |result: &RunResult, row: usize| column(table(result, "packets"), "flow")[row];
    let node = |result: &RunResult, row: usize| names(table(result, "packets"), "node")[row].to_owned();
    let at = |result: &RunResult, row: usize| column(table(result, "packets"), "time_ps")[row];
    let of = |text: &str, wanted: &dyn Fn(&RunResult, usize) -> bool| {
        let some = result(text);
        assert_eq!(rows(&some, wanted), rows(&all, wanted), "{text}");
        assert_eq!(rows(&some, wanted), rows(&some, &|_, _| true), "{text}");
        assert!(rows(&some, wanted) > 0 && some.info.digest == all.info.digest, "{text}");
    };
    of("{ flows = [1] }", &|result, row| flow(result, row) == 1);
    of("{ links = [\"leaf0-host0\", \"spine0-leaf0\"], flows = [1, 2] }", &|result, row| {
        let to = names(table(result, "packets"), "to_node")[row].to_owned();
        flow(result, row) != 0 && [("leaf0", "host0"), ("spine0", "leaf0")].contains(&(&*node(result, row), &*to))
    });
    of("{ from = \"5us\", until = \"9us\" }", &|result, row| (5_000_000..9_000_000).contains(&at(result, row)));
    let hosts = |text: &str| rows(&result(text), &|_, _| true);
    assert_eq!(hosts("{ hosts = [\"host0\"] }"), rows(&all, &|_, _| true));
    assert_eq!(hosts("{ classes = [\"many\"] }"), rows(&all, &|_, _| true));
    // Each message of the protocol is there in its own words.
    let said = names(table(&all, "packets"), "says");
    for word in ["Notification class", "Ack", "Data packet", "SenderFinish packets", "ReceiverFinish"] {
        assert!(said.iter().any(|said| said.starts_with(word)), "{word}");
    }
}

#[test]
fn no_more_rows_are_recorded_than_is_said_and_these_are_the_first() {
    let all = run_both(&incast("transport = \"dctcp\"\nmeasure.packets = {}"));
    let few = run_both(&incast("transport = \"dctcp\"\nmeasure.packets.rows_max = 100"));
    assert_eq!(table(&few, "packets").len(), 100);
    for name in ["time_ps", "bytes"] {
        assert_eq!(column(table(&few, "packets"), name), &column(table(&all, "packets"), name)[..100]);
    }
    assert!(few.info.warnings.iter().any(|warning| warning.contains("only the first 100 packets")));
    assert!(all.info.warnings.is_empty(), "{:?}", all.info.warnings);
}

#[test]
fn who_records_nothing_has_no_table() {
    let result = run_alone(&incast("transport = \"dctcp\""));
    assert!(result.tables.iter().all(|table| table.name != "packets"));
}
