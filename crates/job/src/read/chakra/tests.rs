use std::io;
use std::sync::Arc;

use prost::Message as _;
use units::{Duration, Time};

use super::schema::{IoInfo, kind};
use super::*;
use crate::testing::{mangled, run};
use crate::{MessageId, Work};

fn trace() -> ChakraTrace {
    ChakraTrace { path: "job".to_owned(), ranks: None, groups: None, teraflops: None }
}

fn node(id: u64, kind: i32, attr: Vec<Attribute>) -> Node {
    Node { id, name: format!("node {id}"), kind, attr, ..Node::default() }
}

fn file(nodes: &[Node]) -> Vec<u8> {
    let mut file = GlobalMetadata { version: "0.0.4".to_owned() }.encode_length_delimited_to_vec();
    nodes.iter().for_each(|node| file.extend(node.encode_length_delimited_to_vec()));
    file
}

/// A collective as ASTRA-sim's microbenchmarks have it.
fn collective(comm_type: i64, comm_size: i64) -> Node {
    let attr = vec![
        Attribute::bool("is_cpu_op", false),
        Attribute::int64("comm_type", comm_type),
        Attribute::int64("comm_size", comm_size),
    ];
    node(0, kind::COLLECTIVE, attr)
}

fn of_group(mut node: Node, group: &str) -> Node {
    let name = Attribute { name: "pg_name".into(), string_val: Some(group.into()), ..Attribute::default() };
    node.attr.push(name);
    node
}

fn message(id: u64, kind: i32, other: i32, size: i64, tag: i32) -> Node {
    let end = if kind == kind::SEND { "comm_dst" } else { "comm_src" };
    let attr =
        vec![Attribute::int32(end, other), Attribute::int64("comm_size", size), Attribute::int32("comm_tag", tag)];
    node(id, kind, attr)
}

fn computation(id: u64, micros: u64, after: &[u64]) -> Node {
    Node { duration_micros: micros, data_deps: after.to_vec(), ..node(id, kind::COMP, Vec::new()) }
}

fn read(ranks: &[Vec<Node>]) -> Result<Graph, TraceError> {
    let files: Vec<Vec<u8>> = ranks.iter().map(|nodes| file(nodes)).collect();
    let graph = trace().parse(&files, None, &Reading::default())?;
    let counted = trace().read(&files, None, &Reading::default(), |ops| ops.count(u32::MAX)).expect("as sound");
    assert_eq!(counted, graph.count(), "counted without building");
    Ok(graph)
}

fn sent(graph: &Graph) -> Vec<u64> {
    let mut sent = vec![0; graph.ranks() as usize];
    graph.messages().for_each(|message| sent[message.from.index()] += message.bytes);
    sent
}

#[test]
fn the_microbenchmarks_of_astra_sim_become_collectives() {
    const MB: u64 = 1 << 20;
    // A file begins as theirs do: the version, then a node without an id, which is 0.
    let begin = file(&[collective(0, 1 << 20)]);
    assert!(begin.starts_with(b"\x07\x0a\x050.0.4") && begin[9] == 0x12, "{}", begin.escape_ascii());
    for n in [4u64, 8, 16] {
        for (comm_type, name, bytes) in [
            (0, "all_reduce", 2 * (n - 1) * MB / n),
            // Each begins with a megabyte.
            (2, "all_gather", (n - 1) * MB),
            (6, "all_to_all", (n - 1) * MB / n),
            (7, "reduce_scatter", (n - 1) * MB / n),
        ] {
            let graph = read(&vec![vec![collective(comm_type, 1 << 20)]; n as usize]).expect("sound");
            assert_eq!((graph.collectives().len(), graph.collectives()[0].kind), (1, name));
            assert_eq!(sent(&graph), vec![bytes; n as usize], "{name} of {n}");
        }
    }
    let barrier = read(&vec![vec![collective(9, 0)]; 4]).expect("sound");
    assert_eq!(sent(&barrier), [6; 4], "a byte of each, to all");
}

#[test]
fn computations_and_messages_wait_for_what_they_depend_on() {
    let mut send = message(9, kind::SEND, 1, 100, 5);
    send.ctrl_deps = vec![7];
    let mut beside = computation(8, 30, &[]);
    beside.attr.push(Attribute::bool("is_cpu_op", true));
    let zero = vec![computation(7, 5, &[]), beside, send];
    let one = vec![message(1, kind::RECV, 0, 100, 5), computation(2, 6, &[1])];
    let graph = Arc::new(read(&[zero, one]).expect("sound"));
    let (end, done) = run(&graph, Duration::from_us(1));
    assert_eq!(done.iter().map(|done| done.end).collect::<Vec<_>>(), [Time::from_us(5), Time::from_us(12)]);
    assert_eq!(end, Time::from_us(30));
    assert_eq!(graph.message(MessageId(0)).bytes, 100);
    // The exact time counts where there is one, and operations where there is none.
    let mut exact = computation(1, 6, &[]);
    exact.attr.push(Attribute::uint64(DURATION_PS, 5_432_101));
    let mut flops = computation(2, 0, &[]);
    flops.attr.push(Attribute::int64("num_ops", 3_000_000));
    let with = ChakraTrace { teraflops: Some(2.0), ..trace() };
    let graph = with.parse(&[file(&[exact, flops.clone()])], None, &Reading::default()).expect("sound");
    let times: Vec<Work> = graph.steps().map(|step| step.work).collect();
    assert_eq!(times, [5_432_101, 1_500_000].map(|ps| Work::Compute(Duration::from_ps(ps))));
    let error = read(&[vec![flops]]).expect_err("how fast?");
    assert_eq!(
        error.to_string(),
        "job.0.et, node 2 of rank 0: duration_micros is \"0\", but should be above 0, or `teraflops` beside the path, \
         for the time of its num_ops"
    );
}

#[test]
fn collectives_are_among_process_groups() {
    let groups = br#"{"1": [2, 0], "2": [1, 3], "0": [0, 1, 2, 3]}"#;
    let ranks = |rank: u32| vec![of_group(collective(0, 1_000), if rank.is_multiple_of(2) { "1" } else { "2" })];
    let files: Vec<Vec<u8>> = (0..4).map(|rank| file(&ranks(rank))).collect();
    let graph = trace().parse(&files, Some(("groups.json", groups)), &Reading::default()).expect("sound");
    assert_eq!(graph.collectives().len(), 2);
    assert!(graph.messages().all(|message| message.from.0 % 2 == message.to.0 % 2));
    let error = trace().parse(&files, None, &Reading::default()).expect_err("no groups");
    assert_eq!(
        error.to_string(),
        "job.0.et, node 0 of rank 0: pg_name is \"1\", but should be a process group of `groups`, or of a node \
            before this one"
    );
    for (groups, said) in [
        ("{\"1\": [0, 9]}", "groups.json: 1 is \"rank 9\", but should be ranks of the job's 4"),
        ("{\"1\": [0, 0]}", "groups.json: 1 is \"rank 0, twice\", but should be ranks that differ"),
        (
            "{\"1\": 7}",
            "groups.json, line 1: groups is \"invalid type: integer `7`, expected a sequence at line 1 column 7\", \
            but should be process groups, such as {\"1\": [0, 1, 2]}",
        ),
    ] {
        let error = trace().parse(&files, Some(("groups.json", groups.as_bytes())), &Reading::default());
        assert_eq!(error.expect_err("wrong").to_string(), said);
    }
    // PyTorch's own, in the inputs of a node.
    let values = r#"['[{"pg_name": "5", "pg_desc": "pairs", "ranks": [0, 1]}, {"pg_name": "6", "ranks": []}]']"#;
    let inputs = Some(IoInfo { values: values.to_owned() });
    let known = Node { name: "## process_group:init ##".into(), inputs, ..node(100, kind::METADATA, Vec::new()) };
    let own = |rank: u32| {
        let mut nodes = vec![known.clone(), of_group(collective(6, 900), "6")];
        if rank < 2 {
            nodes.push(of_group(Node { id: 1, ..collective(0, 500) }, "5"));
        }
        nodes
    };
    let graph = read(&[own(0), own(1), own(2)]).expect("sound");
    let sizes: Vec<(u32, u64)> = graph.collectives().iter().map(|of| (of.ranks, of.bytes)).collect();
    assert_eq!(sizes, [(2, 500), (3, 900)]);
}

#[test]
fn older_schemas_are_read_too() {
    use super::older::{OlderAttribute, OlderNode};
    let int = |name: &str, value| OlderAttribute { name: name.into(), i: Some(value), ..OlderAttribute::default() };
    let node = |id, kind, parent: &[u64], attribute| {
        let name = format!("node {id}");
        OlderNode { id, name, kind, parent: parent.to_vec(), attribute }.encode_length_delimited_to_vec()
    };
    let dims = |ints: &[i64]| OlderAttribute { name: "involved_dim".into(), ints: ints.to_vec(), ..Default::default() };
    let file = |of_dims: &[i64]| {
        let sum = vec![int("comm_type", 1), int("comm_size", 4_000), dims(of_dims)];
        // Their id was always written, 0 too.
        let runtime = OlderNode { attribute: vec![int("runtime", 9)], ..OlderNode::default() }.encode_to_vec();
        let mut first = [&b"\x08\x00\x12\x01a\x18\x04"[..], &runtime].concat();
        first.insert(0, first.len() as u8);
        [first, node(1, kind::COLLECTIVE, &[0], sum)].concat()
    };
    let graph = trace().parse(&vec![file(&[1, 1]); 4], None, &Reading::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((graph.collectives()[0].kind, sent(&graph)), ("all_to_all", vec![3_000; 4]));
    let (end, _) = run(&Arc::new(graph), Duration::ZERO);
    assert_eq!(end, Time::from_us(9));
    // The same after empty metadata, as of August 2023.
    let with = [&[0][..], &file(&[1])].concat();
    let graph = trace().parse(&vec![with; 4], None, &Reading::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(sent(&graph), [3_000; 4]);
    let error = trace().parse(&vec![file(&[1, 0]); 4], None, &Reading::default()).expect_err("among some");
    assert_eq!(
        error.to_string(),
        "job.0.et, node 1 of rank 0: involved_dim is \"some dimensions\", but should be all: write a process group for \
         those of some dimensions"
    );
}

#[test]
fn a_broadcast_begins_at_its_root() {
    let mut node = collective(5, 1_000);
    node.attr.push(Attribute::int64("root_rank", 2));
    let graph = read(&vec![vec![node.clone()]; 3]).expect("sound");
    let path: Vec<(u32, u32)> = graph.messages().map(|message| (message.from.0, message.to.0)).collect();
    assert_eq!(path, [(2, 0), (0, 1)]);
    node.attr.last_mut().expect("one").int64_val = Some(3);
    let error = read(&vec![vec![node]; 3]).expect_err("no such rank");
    assert_eq!(error.to_string(), "job.0.et, node 0 of rank 0: root_rank is \"3\", but should be a rank of the group");
}

#[test]
fn files_are_read_until_there_is_none() {
    let content = file(&[collective(0, 64)]);
    let mut asked = Vec::new();
    let mut with = |trace: &ChakraTrace, there: u32| {
        trace.load(&Reading::default(), &mut |path| {
            asked.push(path.to_owned());
            let found = (0..there).any(|rank| path == format!("job.{rank}.et"));
            if found { Ok(content.clone()) } else { Err(io::Error::new(io::ErrorKind::NotFound, "not there")) }
        })
    };
    assert_eq!(with(&trace(), 3).expect("sound").ranks(), 3);
    let some = ChakraTrace { ranks: Some(2), ..trace() };
    assert_eq!(with(&some, 3).expect("sound").ranks(), 2);
    let more = ChakraTrace { ranks: Some(4), ..trace() };
    let error = with(&more, 3).expect_err("one is missing").to_string();
    assert_eq!(error, "job.3.et: file is \"not there\", but should be one that can be read");
    assert_eq!(with(&trace(), 0).expect_err("none").file, "job.0.et");
    assert_eq!(asked.first().map(String::as_str), Some("job.0.et"));
}

#[test]
fn what_is_wrong_is_named_by_file_node_and_field() {
    let with = |node: &Node, name: &str, value: i64| {
        let mut node = node.clone();
        node.attr.retain(|attribute| attribute.name != name);
        node.attr.push(Attribute::int64(name, value));
        node
    };
    let without = |node: &Node, name: &str| {
        let mut node = node.clone();
        node.attr.retain(|attribute| attribute.name != name);
        node
    };
    let (send, receive) = (message(4, kind::SEND, 1, 100, 5), message(6, kind::RECV, 0, 100, 5));
    let mut depends = send.clone();
    depends.data_deps = vec![99];
    let odd = Attribute { name: "comm_size".into(), double_val: Some(1.5), ..Attribute::default() };
    let mut fraction = without(&send, "comm_size");
    fraction.attr.push(odd);
    for (zero, one, said) in [
        (
            vec![without(&send, "comm_dst")],
            vec![],
            "job.0.et, node 4 of rank 0: comm_dst is \"missing\", but should be an \
            attribute with a whole number",
        ),
        (
            vec![with(&send, "comm_tag", -1)],
            vec![],
            "job.0.et, node 4 of rank 0: comm_tag is \"-1\", but should be a whole \
            number from 0 to 4294967295",
        ),
        (
            vec![fraction],
            vec![],
            "job.0.et, node 4 of rank 0: comm_size is \"1.5\", but should be a whole number from 0 to \
            1125899906842624",
        ),
        (
            vec![with(&send, "comm_src", 1)],
            vec![],
            "job.0.et, node 4 of rank 0: comm_src is \"1\", but should be 0, the rank \
            of this file",
        ),
        (
            vec![depends],
            vec![],
            "job.0.et, node 4 of rank 0: data_deps is \"99\", but should be the id of a node of this file",
        ),
        (
            vec![send.clone(), send.clone()],
            vec![],
            "job.0.et, node 4 of rank 0: id is \"4\", but should be one that no node \
            before has",
        ),
        (
            vec![send.clone()],
            vec![],
            "job.0.et, node 4 of rank 0: send is \"to rank 1 with tag 5\", but should be matched: \
            with tag 5 rank 0 sends 1 to rank 1, which receives 0",
        ),
        (
            vec![],
            vec![receive.clone()],
            "job.1.et, node 6 of rank 1: receive is \"from rank 0 with tag 5\", but should be \
            matched: with tag 5 rank 0 sends 0 to rank 1, which receives 1",
        ),
        (
            vec![send],
            vec![with(&receive, "comm_size", 99)],
            "job.1.et, node 6 of rank 1: size is \"99\", but should be at \
            least 100, the size of the message that it receives, of node 4 of rank 0",
        ),
    ] {
        assert_eq!(read(&[zero, one]).expect_err(said).to_string(), said);
    }
}

#[test]
fn nodes_that_say_nothing_sound_are_named() {
    for (zero, one, said) in [
        (
            vec![node(3, 12, vec![])],
            vec![],
            "job.0.et, node 3 of rank 0: type is \"12\", but should be 1 (metadata), 2 or 3 \
            (memory), 4 (computation), 5 (send), 6 (receive) or 7 (collective)",
        ),
        (
            vec![node(3, kind::MEM_LOAD, vec![])],
            vec![],
            "job.0.et, node 3 of rank 0: duration_micros is \"0\", but should be \
            above 0: memory has no model here",
        ),
        (
            vec![collective(1, 5)],
            vec![],
            "job.0.et, node 0 of rank 0: comm_type is \"1\", but should be 0 (all-reduce), 2 \
            (all-gather), 5 (broadcast), 6 (all-to-all), 7 (reduce-scatter) or 9 (barrier)",
        ),
        (
            vec![collective(0, 5)],
            vec![collective(0, 6)],
            "job.1.et, node 0 of rank 1: collective is \"all_reduce of 6 B\", \
            but should be all_reduce of 5 B, as node 0 of rank 0 says of the same collective",
        ),
        (
            vec![collective(0, 5)],
            vec![],
            "job.0.et, node 0 of rank 0: collective is \"number 1 of a group of 2\", but should \
            be one that all ranks of the group have: rank 0 has 1 and rank 1 has 0",
        ),
        (
            vec![Node { data_deps: vec![0], ..computation(0, 1, &[]) }],
            vec![],
            "job.0.et, rank 0: step is \"node 0\", but \
            should be a step that can begin: 1 steps wait for each other in a circle",
        ),
    ] {
        assert_eq!(read(&[zero, one]).expect_err(said).to_string(), said);
    }
}

#[test]
fn a_broken_file_is_named() {
    let whole = file(&[collective(0, 64)]);
    let error = |content: &[u8]| {
        let error = trace().parse(&[content.to_vec()], None, &Reading::default());
        error.expect_err("broken").to_string()
    };
    assert_eq!(error(b""), "job.0.et: file is \"empty\", but should be metadata and nodes");
    assert_eq!(
        error(&whole[..whole.len() - 3]),
        "job.0.et, record 1, at byte 8: length is \"56\", but should be at most the 53 bytes that follow"
    );
    assert_eq!(error(&[0x1f, 0x8b, 8]), "job.0.et: file is \"compressed by gzip\", but should be unpacked; use gunzip");
    let varint = [&whole[..8], &[0xff; 11]].concat();
    assert!(error(&varint).starts_with("job.0.et, record 1, at byte 8: length is "), "{}", error(&varint));
    let wrong = [&whole[..8], &[2, 0x0a, 0x00]].concat();
    assert!(error(&wrong).contains("record 1: content is \"failed to decode Protobuf message"), "{}", error(&wrong));
    let many = Reading { steps_max: 50, ..Reading::default() };
    let error = trace().parse(&vec![whole; 32], None, &many).expect_err("a ring of 32 has 1,984 steps");
    assert_eq!(
        error.to_string(),
        "job.0.et, node 0 of rank 0: steps is \"up to 4000 more\", but should be at most 18 more in this job"
    );
}

#[test]
fn no_bytes_make_it_panic() {
    let small = Reading { steps_max: 10_000, ..Reading::default() };
    let zero = vec![computation(7, 5, &[]), collective(0, 64), message(9, kind::SEND, 1, 100, 5)];
    let one = vec![message(1, kind::RECV, 0, 100, 5), collective(0, 64), computation(2, 6, &[1])];
    let other = file(&one);
    let mut accepted = 0;
    mangled(&[file(&zero)], 6_000, |bytes| {
        let files = [bytes.to_vec(), other.clone()];
        match trace().parse(&files, Some(("groups", bytes)), &small).or_else(|_| trace().parse(&files, None, &small)) {
            Ok(_) => accepted += 1,
            Err(error) => assert!(error.to_string().len() < 2_000),
        }
    });
    assert!(accepted > 0);
}
