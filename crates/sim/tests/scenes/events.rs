//! A log of events has what counters count, in the words of each scheme; a port that is watched has the queue that its
//! packets make; and a node that is captured has all of its links.

use std::collections::BTreeMap;

use ::run::{Data, Table};

use crate::packets::incast;
use crate::{RunResult, column, names, of_links, run_alone, run_both, scenario, table};

/// The events of a kind: the rows of the table.
fn of_kind(result: &RunResult, kind: &str) -> Vec<usize> {
    let events = names(table(result, "events"), "event");
    (0..events.len()).filter(|&row| events[row] == kind).collect()
}

/// A column of small numbers.
fn small<'a>(table: &'a Table, name: &str) -> &'a [u32] {
    let Data::U32(values) = &table.column(name).unwrap_or_else(|| panic!("no column {name}")).data else {
        panic!("{name} is of other numbers")
    };
    values
}

#[test]
fn each_kind_of_event_is_there_as_often_as_it_was_counted() {
    let all = "measure.events = ['link_control', 'drops', 'marks', 'trims']";
    for (settings, kind, counted) in [
        ("transport = 'dctcp'\nswitch.buffer.per_port.bytes = '15KB'", "drops", "overflow_packets"),
        ("transport = 'dctcp'\nswitch.marking.step.threshold = '9KB'", "marks", "marked_packets"),
        (
            "transport = 'dctcp'\nswitch = { marking.step.threshold = '9KB', mark_at = 'departure' }",
            "marks",
            "marked_packets",
        ),
        ("transport = 'ndp'", "trims", "trimmed_packets"),
        (
            "transport = 'rdma'\nflow_control = 'pfc'\nswitch.buffer.shared.bytes = '150KB'",
            "link_control",
            "sent_frames",
        ),
        (
            "transport = 'rdma'\nflow_control = 'pyrrha'\nswitch.buffer.shared.bytes = '60KB'",
            "link_control",
            "sent_frames",
        ),
    ] {
        // Only the last link is too slow, so that no packet is marked twice.
        let incast = |settings: &str| incast(settings).replace("100Gbps", "400Gbps").replace("\"60KB\"", "\"300KB\"");
        let result = run_both(&incast(&format!("{settings}\n{all}")));
        let counted = of_links(&result, counted) as usize;
        assert!(counted > 0, "{settings}");
        assert_eq!(of_kind(&result, kind).len(), counted, "{settings}");
        assert_eq!(result.info.digest, run_alone(&incast(settings)).info.digest, "{settings}");
    }
}

#[test]
fn what_hosts_agree_on_is_there_once_in_the_words_of_the_paper() {
    for (transport, kind, words) in [
        ("dcpim", "matching", &["Request", "Grant", "Accept"][..]),
        ("dcpim", "grants", &["Token"][..]),
        ("homa", "grants", &["Answer"][..]),
        ("phost", "grants", &["Rts", "Token"][..]),
        ("ndp", "grants", &["Pull"][..]),
        ("fastpass", "reservations", &["Request", "Allocation"][..]),
        ("harmony", "reservations", &["Request", "Rsvp", "Complete"][..]),
    ] {
        let all = "measure.packets = {}";
        let settings = format!("transport = '{transport}'\nmeasure.events = ['{kind}', 'control']\n{all}");
        // Long enough for a matching, and with time for it.
        let result = run_both(&incast(&settings).replace("60KB", "2MB"));
        let (events, packets) = (table(&result, "events"), table(&result, "packets"));
        let said = names(events, "says");
        let rows = of_kind(&result, kind);
        for word in words {
            assert!(rows.iter().any(|&row| said[row].starts_with(word)), "{transport}: {word}");
        }
        let known = |said: &str| {
            let refused = transport == "fastpass" && (said.starts_with("Wait") || said.starts_with("Reject"));
            (refused || words.iter().any(|word| said.starts_with(word)))
                && (transport != "homa" || said.contains("of class"))
        };
        assert!(transport == "harmony" || rows.iter().all(|&row| known(said[row])), "{transport}");
        if transport != "harmony" {
            // Each is said where it is said, and not again at each switch.
            let [node, source, says] = ["node", "source", "says"].map(|name| names(packets, name));
            let payload = column(packets, "payload_bytes");
            let rest =
                (0..packets.len()).filter(|&row| node[row] == source[row] && known(says[row]) && payload[row] == 0);
            assert_eq!(rest.count(), rows.len(), "{transport}");
        }
        assert!(of_kind(&result, "control").len() >= rows.len() || transport == "harmony", "{transport}");
    }
}

#[test]
fn no_more_events_are_there_than_is_said_and_these_are_the_first() {
    let settings = "transport = 'dctcp'\nmeasure.events = ['control']\nmeasure.interval = '0s'";
    let all = run_both(&incast(settings));
    let few = run_both(&incast(&format!("{settings}\nmeasure.rows_max = 50")));
    assert_eq!(table(&few, "events").len(), 50);
    assert_eq!(column(table(&few, "events"), "time_ps"), &column(table(&all, "events"), "time_ps")[..50]);
    assert!(few.info.warnings.iter().any(|warning| warning.starts_with("measure.events: only the first 50 ")));
    assert!(all.info.warnings.is_empty(), "{:?}", all.info.warnings);
}

#[test]
fn a_watched_port_has_the_queue_and_the_bytes_that_its_packets_make() {
    let both = "measure.packets.links = ['leaf0-host0', 'host1-leaf0']\nmeasure.ports = ['leaf0:0', 'host1-leaf0']";
    for settings in
        ["transport = 'udp'", "transport = 'rdma'\nflow_control = 'pyrrha'\nswitch.buffer.shared.bytes = '60KB'"]
    {
        let result = run_both(&incast(&format!("{settings}\n{both}")));
        let (ports, packets) = (table(&result, "ports"), table(&result, "packets"));
        let port = small(ports, "link");
        let [at, queue] = ["time_ps", "queue_bytes"].map(|name| column(ports, name));
        let [most, sent, free] = ["queue_bytes_max", "sent_bytes", "free_ps"].map(|name| column(ports, name));
        let [link, left, last] = ["link", "time_ps", "last_ps"].map(|name| column(packets, name));
        let [bytes, waiting] = ["bytes", "waiting_bytes"].map(|name| column(packets, name));
        let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
        let mut longest = 0;
        for row in (0..packets.len()).filter(|&row| link[row] != u64::MAX) {
            let sum = sums.entry(link[row]).or_default();
            *sum += bytes[row];
            let here = (0..ports.len()).find(|&place| (u64::from(port[place]), at[place]) == (link[row], left[row]));
            let place = here.expect("a packet that leaves changes its port");
            assert_eq!((sent[place], free[place]), (*sum, last[row]), "{settings}");
            // What has come at the same instant, and not left, waits too.
            assert!(queue[place] >= waiting[row] && most[place] >= queue[place], "{settings}");
            longest = longest.max(waiting[row]);
        }
        assert_eq!(sums.len(), 2, "{settings}: both ports send");
        assert!(longest > 20_000 && *most.iter().max().expect("rows") >= longest, "{settings}");
        assert_eq!(result.info.digest, run_alone(&incast(settings)).info.digest, "{settings}");
    }
}

#[test]
fn a_port_without_room_keeps_its_longest_queue_and_its_bytes() {
    let settings = "transport = 'udp'\nmeasure.ports = ['leaf0:0', 'leaf1-spine0']\nmeasure.interval = '0s'";
    let all = run_both(&incast(settings));
    let few = run_both(&incast(&format!("{settings}\nmeasure.rows_max = 40")));
    let rows = |result: &RunResult, link: u32| -> Vec<(u64, u64)> {
        let ports = table(result, "ports");
        let of = small(ports, "link").iter().zip(column(ports, "queue_bytes_max")).zip(column(ports, "sent_bytes"));
        of.filter(|((of, _), _)| **of == link).map(|((_, most), sent)| (*most, *sent)).collect()
    };
    let links = small(table(&all, "ports"), "link");
    for link in [links[0], *links.last().expect("two ports")] {
        let (of_all, of_few) = (rows(&all, link), rows(&few, link));
        assert!(of_all.len() > 40 && (10..=20).contains(&of_few.len()), "{} and {}", of_all.len(), of_few.len());
        assert_eq!(of_all.iter().map(|row| row.0).max(), of_few.iter().map(|row| row.0).max());
        assert_eq!(of_all.last().map(|row| row.1), of_few.last().map(|row| row.1));
    }
}

#[test]
fn a_wrong_name_of_a_port_says_what_there_is() {
    for (setting, says) in [
        ("measure.ports = ['leaf0:9']", "measure.ports[0]: leaf0 has no port \"9\"; its ports are 0 to 2"),
        ("measure.ports = ['leaf0:0', 'leav0:0']", "measure.ports[1]: there is no node \"leav0\""),
        ("measure.ports = ['leaf0']", "measure.ports[0]: there is no link \"leaf0\""),
        ("measure.events = ['marks', 'drops', 'marks']", "measure.events[2]: \"marks\" is there already"),
        ("measure = { interval = '0s', rows_max = 0, events = ['marks'] }", "measure.rows_max: at least 1"),
        ("measure = { interval = '0s', rows_max = 9, ports = ['leaf0:0'] }", "measure.rows_max: at least 16"),
    ] {
        let problem = run::Plan::new(&scenario(&incast(&format!("transport = 'udp'\n{setting}")))).err();
        let problem = problem.expect("it is refused").to_string();
        assert!(problem.starts_with(says), "{setting}: {problem}");
    }
}

#[test]
fn a_captured_node_has_all_of_its_links_and_a_link_may_be_in_two_files() {
    let plan = run::Plan::new(&scenario(&incast("transport = 'dctcp'"))).expect("a plan");
    let places = ["host0", "leaf0-host0"].map(|name| (name.to_owned(), format!("{name}.pcapng")));
    let capture = |parts, most| {
        let wanted =
            clearway_sim::capture::wanted(&plan, &BTreeMap::from(places.clone()), "pcap").expect("they are there");
        let links = clearway_sim::Capturing::new(&plan, wanted, most);
        let how = clearway_sim::Execution { threads: 2, parts: Some(parts) };
        let result = clearway_sim::run_captured(&plan, how, Some(&links), |_| false);
        (result, links.contents(&plan).expect("the default network"))
    };
    let (result, files) = capture(1, 1 << 20);
    let sent = column(table(&result, "links"), "sent_packets");
    let (down, up) = (plan.fabric.find_links("leaf0-host0"), plan.fabric.find_links("host0-leaf0"));
    let of = |links: Result<Vec<units::LinkId>, _>| sent[links.expect("it is there")[0].index()] as usize;
    let (down, up) = (of(down), of(up));
    assert!(down > 100 && up > 50);
    // A section, its interfaces, its packets.
    assert_eq!([blocks(&files[0].blocks), blocks(&files[1].blocks)], [1 + 2 + down + up, 1 + 1 + down]);
    for most in [1 << 20, 77] {
        let (one, many) = (capture(1, most).1, capture(usize::MAX, most).1);
        assert!(one.iter().zip(&many).all(|(one, many)| one.blocks == many.blocks), "{most}");
        assert!(most > 77 || (blocks(&one[0].blocks) == 1 + 2 + 77 && one[0].is_cut_off));
    }
}

/// How many blocks a pcapng file has.
fn blocks(mut bytes: &[u8]) -> usize {
    let mut blocks = 0;
    while let Some(length) = bytes.get(4..8) {
        bytes = &bytes[u32::from_le_bytes(length.try_into().expect("four bytes")) as usize..];
        blocks += 1;
    }
    blocks
}
