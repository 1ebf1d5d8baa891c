use std::sync::Arc;

use units::{Duration, Time};

use super::*;
use crate::testing::{mangled, run};
use crate::{Rank, Work};

fn trace() -> GoalTrace {
    GoalTrace { path: "job.goal".to_owned(), unit: Duration::from_ns(1) }
}

fn read(text: &str) -> Result<Graph, TraceError> {
    let graph = trace().parse(text.as_bytes(), &Reading::default())?;
    let (ranks, count) = trace().count(text.as_bytes(), &Reading::default(), u32::MAX).expect("as sound");
    assert_eq!((ranks, count), (graph.ranks(), graph.count()), "counted without building");
    Ok(graph)
}

/// When everything has ended, if a message takes 100 ns.
fn ends(text: &str) -> Duration {
    let graph = read(text).unwrap_or_else(|error| panic!("{error}"));
    run(&Arc::new(graph), Duration::from_ns(100)).0.since(Time::ZERO)
}

const PING_PONG: &str = "// two ranks\nnum_ranks 2\n\nrank 0 {\nl1: calc 50\nl2: send 10b to 1 tag 3 cpu 0 nic 1\n\
    l2 requires l1\nl3: recv 10b from 1 tag 4\nl4: calc 7 cpu 0 nic 0\nl4 requires l3\n}\n\
    rank 1 {\n/* waits\n and answers */\nanswer requires got\ngot: recv 20 b from 0 tag 3 nic 0 cpu 1\n\
    answer: send 10b to 0 tag 4\n}\n";

#[test]
fn ranks_do_what_the_text_says() {
    assert_eq!(ends(PING_PONG), Duration::from_ns(50 + 100 + 100 + 7));
    let graph = read(PING_PONG).expect("sound");
    assert_eq!((graph.ranks(), graph.messages().len()), (2, 2));
    assert_eq!(graph.message(crate::MessageId(0)).bytes, 10, "what is sent, and not what there is room for");
    let names: Vec<&str> = graph.names().iter().map(String::as_str).collect();
    assert!(["l1", "l4", "answer", "got"].iter().all(|name| names.contains(name)));
    // The unit of times, and a schedule in one line with operations without a name.
    let coarse = GoalTrace { unit: Duration::from_us(1), ..trace() };
    let graph = coarse.parse(b"num_ranks 1 rank 0 { calc 5 calc 6 }", &Reading::default()).expect("sound");
    assert_eq!(run(&Arc::new(graph), Duration::ZERO).0, Time::from_us(11));
}

#[test]
fn other_cpus_compute_beside() {
    assert_eq!(ends("num_ranks 1\nrank 0 {\ncalc 30\ncalc 20\n}"), Duration::from_ns(50));
    assert_eq!(ends("num_ranks 1\nrank 0 {\ncalc 30\ncalc 20 cpu 1\n}"), Duration::from_ns(30));
}

#[test]
fn who_irequires_begins_when_the_other_could() {
    // c begins with b, which begins after a.
    let text = "num_ranks 2\nrank 0 {\na: calc 30\nb: send 5b to 1\nb requires a\nc: calc 8\nc irequires b\n\
        d: calc 1 cpu 1\nd irequires c\n}\nrank 1 {\nrecv 5b from 0\n}";
    let graph = Arc::new(read(text).expect("sound"));
    let (_, done) = run(&graph, Duration::from_ns(100));
    let ends: Vec<Time> = done.iter().map(|done| done.end).collect();
    assert_eq!(ends, [Time::from_ns(30), Time::from_ns(38)]);
    // One that waits for nothing can be irequired without a step between.
    let graph = read("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\nb irequires a\n}").expect("sound");
    assert_eq!(graph.steps().len(), 2);
}

#[test]
fn messages_match_in_order_by_source_and_tag() {
    let text = "num_ranks 2\nrank 0 {\nsend 1b to 1 tag 7\nsend 2b to 1 tag 8\nsend 3b to 1 tag 7\n}\n\
        rank 1 {\nrecv 9b from 0 tag 8\nrecv 9b from 0 tag 7\nrecv 9b from 0 tag 7\n}";
    let graph = read(text).expect("sound");
    let received: Vec<u64> = graph
        .of(Rank(1))
        .map(|step| match graph.step(crate::StepId(step)).work {
            Work::Receive(id) => graph.message(id).bytes,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(received, [2, 1, 3]);
    // To itself: no message, but what waits for it waits.
    let text = "num_ranks 1\nrank 0 {\na: calc 5\nb: send 0b to 0\nb requires a\nc: recv 0b from 0\nd: calc 1\n\
        d requires c\n}";
    assert_eq!(ends(text), Duration::from_ns(6));
    assert_eq!(read(text).expect("sound").messages().len(), 0);
}

/// The content of the file, and the error about it.
const WRONG: &[(&str, &str)] = &[
    ("rank 0 {", "job.goal, line 1: rank is \"the first line\", but should be num_ranks and how many there are"),
    ("root:x:0:0", "job.goal, line 1: line is \"something else\", but should be num_ranks 8, once, or rank 0 { ... }"),
    ("", "job.goal: num_ranks is \"missing\", but should be the first line"),
    ("num_ranks 2000000", "job.goal, line 1: num_ranks is \"2000000\", but should be a whole number from 0 to 1048576"),
    (
        "num_ranks 3\nrank 0 { }\nrank 2 { }",
        "job.goal: rank is \"1, missing\", but should be given: num_ranks says that there are 3",
    ),
    (
        "num_ranks 2\nrank 0 { }\nrank 0 { }",
        "job.goal, line 3: rank is \"0\", but should be one that has not been given before",
    ),
    ("num_ranks 1\nrank 0 {\ncalc 5\n", "job.goal, line 4: } is \"missing\", but should be the end of rank 0"),
    (
        "num_ranks 1\nrank 0 {\ncalc x\n}",
        "job.goal, line 3: calc is \"x\", but should be a whole number from 0 to 18446744073709551615",
    ),
    (
        "num_ranks 1\nrank 0 {\nl1: calc 18446744073709551615\n}",
        "job.goal, line 3: calc is \"18446744073709551615\", but should be less than 100 days",
    ),
    (
        "num_ranks 1\nrank 0 {\nl1: calc 9300000000000000\n}",
        "job.goal, line 3 of rank 0: time is \"9300000s\", but should be less: all times of all ranks may be 100 days",
    ),
    (
        "num_ranks 1\nrank 0 {\nl1: jump 5\n}",
        "job.goal, line 3: operation is \"jump\", but should be send, recv or calc",
    ),
    (
        "num_ranks 1\nrank 0 {\nl1: calc 5\nl1: calc 5\n}",
        "job.goal, line 4: label is \"l1\", but should be a label that rank 0 has not used before",
    ),
    (
        "num_ranks 1\nrank 0 {\nl1: calc 5\nl1 requires l2\n}",
        "job.goal, line 4: label is \"l2\", but should be a label of rank 0",
    ),
    (
        "num_ranks 1\nrank 0 {\nl1: calc 5\nl1 needs l2\n}",
        "job.goal, line 4: l1 is \"needs\", but should be followed by : and an operation, by requires or by \
                irequires",
    ),
    (
        "num_ranks 2\nrank 0 {\nl1: recv 5b from -1\n}\nrank 1 { }",
        "job.goal, line 3: from is \"-1\", but should be a number: who any source or any tag (-1) is depends on \
                the network",
    ),
    (
        "num_ranks 2\nrank 0 {\nsend 5 to 1\n}\nrank 1 { }",
        "job.goal, line 3: size is \"to\", but should be followed by b",
    ),
    (
        "num_ranks 2\nrank 0 {\nsend 5b to 1 cpu 300\n}\nrank 1 { }",
        "job.goal, line 3: cpu is \"300\", but should be a whole number from 0 to 255",
    ),
    (
        "num_ranks 2\nrank 0 {\nsend 5b to 1 tag 1 tag 2\n}\nrank 1 { }",
        "job.goal, line 3: tag is \"2\", but should be given once",
    ),
    (
        "num_ranks 2\nrank 0 {\nsend 5b to 7\n}\nrank 1 { }",
        "job.goal, line 3 of rank 0: rank is \"7\", but should be one of the 2 ranks, from 0",
    ),
    (
        "num_ranks 2\nrank 0 {\nsend 5b to 1 tag 3\nsend 5b to 1 tag 3\n}\nrank 1 {\nrecv 5b from 0 tag 3\n}",
        "job.goal, line 4 of rank 0: send is \"to rank 1 with tag 3\", but should be matched: \
             with tag 3 rank 0 sends 2 to rank 1, which receives 1",
    ),
    (
        "num_ranks 2\nrank 0 {\nsend 5b to 1 tag 3\n}\nrank 1 {\nrecv 5b from 0 tag 2\n}",
        "job.goal, line 6 of rank 1: receive is \"from rank 0 with tag 2\", but should be matched: \
             with tag 2 rank 0 sends 0 to rank 1, which receives 1",
    ),
    (
        "num_ranks 2\nrank 0 {\nsend 5b to 1\n}\nrank 1 {\nrecv 4b from 0\n}",
        "job.goal, line 6 of rank 1: size is \"4\", but should be at least 5, the size of the message that it \
                receives, of line 3 of rank 0",
    ),
    (
        "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}",
        "job.goal, rank 0: step is \"a\", but should be a step that can begin: 2 steps wait for each other in a \
                circle",
    ),
    (
        "num_ranks 2\nrank 0 {\nsend 9999999999999999b to 1\n}\nrank 1 {\nrecv 9999999999999999b from 0\n}",
        "job.goal, line 3 of rank 0: size is \"9999999999999999\", but should be at most 1 PiB, 2^50 bytes",
    ),
];

#[test]
fn what_is_wrong_is_named() {
    for &(text, said) in WRONG {
        assert_eq!(read(text).expect_err(text).to_string(), said);
    }
    let error = read("num_ranks 0").expect_err("nobody");
    assert_eq!(error.to_string(), "job.goal: number of ranks is \"0\", but should be at least 1");
    let error = trace().parse(b"num_ranks 1\n\xff", &Reading::default()).expect_err("no text");
    assert_eq!(error.to_string(), "job.goal, line 2: text is \"byte 0xff\", but should be UTF-8");
    let small = Reading { steps_max: 2, ..Reading::default() };
    let error = trace().parse(b"num_ranks 1 rank 0 { calc 1 calc 1 calc 1 }", &small).expect_err("too many");
    assert_eq!(error.to_string(), "job.goal: number of steps is \"3\", but should be at most 2");
}

/// A node of the binary form: kind, other rank, size, tag, cpu.
type Node = (u8, u32, u64, u32, u8);

/// The binary form, by the layout in the essay: of each rank nodes, and pairs of a node and one that waits for its end,
/// or its begin.
#[allow(clippy::type_complexity)]
fn binary(ranks: &[(Vec<Node>, Vec<(u32, u32)>, Vec<(u32, u32)>)]) -> Vec<u8> {
    let (mut table, mut data) = (Vec::new(), Vec::new());
    let head = 4 + 1 + 1 + 16 * ranks.len();
    for (nodes, ends, begins) in ranks {
        table.extend(((head + data.len()) as u64).to_le_bytes());
        let waits = |node: u32| ends.iter().chain(begins).filter(|pair| pair.1 == node).count() as u32;
        let roots: Vec<u32> = (0..nodes.len() as u32).filter(|&node| waits(node) == 0).collect();
        data.extend((nodes.len() as u32).to_le_bytes());
        data.extend((roots.len() as u32).to_le_bytes());
        roots.iter().for_each(|root| data.extend(root.to_le_bytes()));
        let mut list: Vec<u8> = Vec::new();
        for (at, (kind, other, size, tag, cpu)) in (0u32..).zip(nodes) {
            data.extend(waits(at).to_le_bytes());
            data.push(*kind);
            data.extend(other.to_le_bytes());
            data.extend(size.to_le_bytes());
            data.extend(tag.to_le_bytes());
            data.extend([*cpu, 0]);
            for pairs in [ends, begins] {
                let own = pairs.iter().filter(|pair| pair.0 == at);
                data.extend((own.clone().count() as u32).to_le_bytes());
                data.extend((list.len() as u32 / 4).to_le_bytes());
                own.for_each(|pair| list.extend(pair.1.to_le_bytes()));
            }
        }
        data.extend(list);
        table.extend(((head + data.len()) as u64).to_le_bytes());
    }
    let count = ranks.len() as u32;
    [&4223u64.to_le_bytes()[..], &count.to_le_bytes(), &[1, 0], &table, &data].concat()
}

fn ping_pong() -> Vec<u8> {
    let zero = (
        vec![(3, 0, 50, 0, 0), (1, 1, 10, 3, 0), (2, 1, 10, 4, 0), (3, 0, 7, 0, 0), (3, 0, 9, 0, 1)],
        vec![(0, 1), (2, 3)],
        vec![(3, 4)],
    );
    let one = (vec![(2, 0, 20, 3, 0), (1, 0, 10, 4, 0)], vec![(0, 1)], Vec::new());
    binary(&[zero, one])
}

#[test]
fn the_binary_form_says_the_same() {
    let graph = trace().parse(&ping_pong(), &Reading::default()).unwrap_or_else(|error| panic!("{error}"));
    let (end, done) = run(&Arc::new(graph), Duration::from_ns(100));
    // The last node begins with the one before it, and is time that passes beside.
    assert_eq!(end, Time::from_ns(50 + 100 + 100 + 9));
    assert_eq!(done.last().map(|done| done.end), Some(Time::from_ns(257)));
}

#[test]
fn a_broken_binary_file_is_named() {
    let whole = ping_pong();
    let error = |content: &[u8]| trace().parse(content, &Reading::default()).expect_err("broken").to_string();
    let changed = |at: usize, byte: u8| {
        let mut content = whole.clone();
        content[at] = byte;
        content
    };
    assert_eq!(
        error(&whole[..20]),
        "job.goal: file is \"20 B\", but should be longer: the table of ranks has 32 bytes from 14"
    );
    let used = changed(0, 38);
    let used = [&2342u64.to_le_bytes()[..], &used[8..]].concat();
    assert!(error(&used).starts_with("job.goal: first bytes is \"2342\""));
    assert_eq!(error(&changed(11, 255)), "job.goal: number of ranks is \"4278190082\", but should be at most 1048576");
    // Rank 0 begins at 8 + 38: counts, 2 first nodes, then nodes of 39 bytes.
    let first = 8 + 38 + 8 + 4 * 2;
    assert_eq!(
        error(&changed(first + 4, 9)),
        "job.goal, node 0 of rank 0: type is \"9\", but should be 1 (send), 2 (receive) or 3 (calculation)"
    );
    assert_eq!(
        error(&changed(first, 1)),
        "job.goal, node 0 of rank 0: number of nodes before is \"1\", but should be 0, as the lists of others say"
    );
    assert!(error(&changed(8 + 38 + 3, 200)).starts_with("job.goal, rank 0: nodes is \"3355443205, 2 of them first\""));
    let mut any = whole.clone();
    any[first + 39 + 5..first + 39 + 9].fill(255);
    assert_eq!(
        error(&any),
        "job.goal, node 1 of rank 0: rank is \"4294967295\", but should be known: who any source or any tag is \
            depends on the network"
    );
}

#[test]
fn no_bytes_make_it_panic() {
    let small = Reading { steps_max: 10_000, ..Reading::default() };
    let seeds = [PING_PONG.as_bytes().to_vec(), ping_pong()];
    let mut accepted = 0;
    mangled(&seeds, 4_000, |bytes| match trace().parse(bytes, &small) {
        Ok(_) => accepted += 1,
        Err(error) => assert!(error.to_string().len() < 2_000),
    });
    assert!(accepted > 0);
}
