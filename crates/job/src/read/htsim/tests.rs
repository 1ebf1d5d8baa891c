use std::sync::Arc;

use units::Time;

use super::*;
use crate::testing::{mangled, run};

fn trace() -> HtsimTrace {
    HtsimTrace { path: "job.cm".to_owned(), start_unit: StartUnit::Ps }
}

fn read(text: &str) -> Result<Graph, TraceError> {
    let graph = trace().parse(text.as_bytes(), &Reading::default())?;
    let (ranks, count) = trace().count(text.as_bytes(), u32::MAX).expect("as sound");
    assert_eq!((ranks, count), (graph.ranks(), graph.count()), "counted without building");
    Ok(graph)
}

/// When everything has arrived, if a message takes 10 ns.
fn ends(text: &str) -> Duration {
    let graph = read(text).unwrap_or_else(|error| panic!("{error}"));
    run(&Arc::new(graph), Duration::from_ns(10)).0.since(Time::ZERO)
}

/// A chain round three nodes, as htsim's all-reduce has it: each trigger starts a connection at the receiver.
const RING: &str = "# a ring\nNodes 3\nConnections 3\nTriggers 2\n0->1 id 1 start 5000 size 100 send_done_trigger 1\n\
    1->2 id 2 trigger 1 size 100 recv_done_trigger 2\n2->0 id 3 trigger 2 size 50\n\
    trigger id 1 oneshot\ntrigger id 2 oneshot\n";

#[test]
fn a_trigger_starts_a_connection_at_either_end_of_the_one_before() {
    assert_eq!(ends(RING), Duration::from_ns(5 + 3 * 10));
    let graph = read(RING).expect("sound");
    let found: Vec<(u32, u32, u64)> = graph.messages().map(|m| (m.from.0, m.to.0, m.bytes)).collect();
    assert_eq!(found, [(0, 1, 100), (1, 2, 100), (2, 0, 50)]);
    let sender = "Nodes 3\nConnections 2\nTriggers 1\n0->1 start 0 size 9 send_done_trigger 4\n0->2 trigger 4 size 9\n\
        trigger id 4 oneshot";
    assert_eq!(ends(sender), Duration::from_ns(20));
    let us = HtsimTrace { start_unit: StartUnit::Us, ..trace() };
    let graph = us.parse(b"Nodes 2\nConnections 1\n0->1 start 1.5 size 9", &Reading::default()).expect("sound");
    assert_eq!(run(&Arc::new(graph), Duration::ZERO).0, Time::from_ns(1_500));
}

#[test]
fn a_barrier_waits_for_all_and_a_multishot_keeps_as_many_under_way() {
    let barrier = "Nodes 4\nConnections 3\nTriggers 1\n0->3 start 0 size 9 recv_done_trigger 1\n\
        1->3 start 70000 size 9 recv_done_trigger 1\n3->2 trigger 1 size 9\ntrigger id 1 barrier count 2\n";
    assert_eq!(ends(barrier), Duration::from_ns(70 + 10 + 10));
    // Two at a time to three destinations each.
    let multishot = "Nodes 4\nConnections 4\nTriggers 1\n0->1 start 0 size 9 send_done_trigger 1\n\
        0->2 start 30000 size 9 send_done_trigger 1\n0->3 trigger 1 size 9\n0->1 trigger 1 size 9\ntrigger id 1 \
            multishot\n";
    assert_eq!(ends(multishot), Duration::from_ns(30 + 10 + 10));
    let graph = read(multishot).expect("sound");
    let waits: Vec<u32> = graph.messages().map(|message| graph.needs(message.send)).collect();
    assert_eq!(waits, [0, 1, 1, 1], "the second waits for its start");
}

/// The change, and the error about it.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "# a ring\nNodes 3",
        "secret",
        "line 1: line is \"something else\", but should be Nodes N, Connections N, Triggers N, \
            a connection src->dst or a trigger",
    ),
    ("Nodes 3", "Nodes 9999999", "line 2: Nodes is \"9999999\", but should be a whole number from 0 to 1048576"),
    ("Nodes 3", "", "line 5: Nodes is \"missing\", but should be a line such as Nodes 16 before the first connection"),
    ("Connections 3", "Connections 4", "line 3: Connections is \"4\", but should be 3, the number that follows"),
    ("Connections 3", "", ": Connections is \"missing\", but should be a line such as Connections 16"),
    ("Triggers 2", "Triggers 3", "line 4: Triggers is \"3\", but should be 2, the number that follows"),
    ("Triggers 2", "Failures 2", "line 4: Failures is \"2\", but should be 0; failures belong to the fabric"),
    ("0->1", "0->3", "line 5: destination is \"3\", but should be a whole number from 0 to 2"),
    ("0->1", "1->1", "line 5: destination is \"1\", but should be another node than the source"),
    ("start 5000", "start -1", "line 5: start is \"-1\", but should be a number from 0, less than 50 days"),
    ("start 5000", "start nan", "line 5: start is \"nan\", but should be a number from 0, less than 50 days"),
    ("start 5000", "", "line 5: start is \"missing\", but should be a time, unless a trigger starts the connection"),
    ("start 5000", "start 1 start 2", "line 5: start is \"a second one\", but should be given once"),
    (
        "start 5000",
        "start 1 prio 2",
        "line 5: prio is \"2\", but should be left out: messages have no priority of their own",
    ),
    ("size 50", "size 0", "line 7: size is \"0\", but should be at least 1: a message that never ends can end no job"),
    ("size 50", "", "line 7: size is \"missing\", but should be a number of bytes"),
    ("size 50", "size", "line 7: size is \"\", but should be a word with a value after it"),
    (
        "id 3 trigger 2",
        "id 3 start 1 trigger 2",
        "line 7: start is \"given beside a trigger\", but should be the only one \
            of the two",
    ),
    ("id 3", "id 2", "line 7: id is \"2\", but should be different from those before; line 6 has it already"),
    (
        "id 3",
        "ip 3",
        "line 7: attribute is \"ip\", but should be one of id, start, size, trigger, send_done_trigger, \
            recv_done_trigger",
    ),
    (
        "2->0",
        "0->2",
        "line 7: trigger is \"2\", but should be fired by a connection from or to its source, 0: that of line \
            6 is 1->2",
    ),
    (
        "trigger id 2 oneshot",
        "trigger id 1 oneshot",
        "line 9: id is \"1\", but should be different from those before; line \
            8 has it already",
    ),
    (
        "trigger id 2 oneshot",
        "trigger id 2 barrier",
        "line 9: count is \"missing\", but should be how many connections a \
            barrier waits for",
    ),
    (
        "trigger id 2 oneshot",
        "trigger id 2 barrier count 2",
        "line 9: trigger is \"2\", but should be fired by 2 \
            connections, as its count says, and not by 1",
    ),
    (
        "trigger id 2 oneshot",
        "trigger id 2",
        "line 9: trigger is \"without a kind\", but should be oneshot, multishot or \
            barrier",
    ),
    (
        "trigger id 2 oneshot",
        "trigger id 3 oneshot",
        "line 7: trigger is \"2\", but should be declared by a line such as \
            trigger id 1 oneshot",
    ),
    ("recv_done_trigger 2", "", "line 9: trigger is \"2\", but should be fired by one connection, and not by 0"),
    (
        "start 5000",
        "trigger 2",
        "line 5: trigger is \"of this connection\", but should be one that can start: 6 steps wait \
            for each other in a circle",
    ),
];

#[test]
fn what_is_wrong_is_named_by_line_and_field() {
    for &(from, to, said) in WRONG {
        let mut text = RING.replacen(from, to, 1);
        assert_ne!(text, RING, "{from}");
        if said.contains("in a circle") {
            text = text
                .replace("trigger id 2 oneshot", "trigger id 3 oneshot")
                .replace("recv_done_trigger 2", "recv_done_trigger 3");
            text = text.replace("id 3 trigger 2 size 50", "id 3 trigger 3 size 50 send_done_trigger 2");
            text = text.replace("Triggers 2", "Triggers 3") + "trigger id 2 oneshot\n";
        }
        let place = if said.starts_with(':') { "job.cm" } else { "job.cm, " };
        assert_eq!(read(&text).expect_err(said).to_string(), format!("{place}{said}"));
    }
    for (text, said) in [
        ("Nodes 0", "job.cm, line 1: Nodes is \"0\", but should be at least 1"),
        ("", "job.cm: Nodes is \"missing\", but should be a line such as Nodes 16"),
    ] {
        assert_eq!(read(text).expect_err(said).to_string(), said);
    }
    let small = Reading { steps_max: 8, ..Reading::default() };
    let error = trace().parse(RING.as_bytes(), &small).expect_err("too large");
    assert_eq!(error.to_string(), "job.cm: connections is \"9 steps\", but should be at most 8 steps in this job");
}

#[test]
fn no_bytes_make_it_panic() {
    let small = Reading { steps_max: 10_000, ..Reading::default() };
    let mut accepted = 0;
    mangled(&[RING.as_bytes().to_vec()], 4_000, |bytes| match trace().parse(bytes, &small) {
        Ok(_) => accepted += 1,
        Err(error) => assert!(error.to_string().len() < 2_000),
    });
    assert!(accepted > 0);
}
