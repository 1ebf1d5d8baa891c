use super::*;

fn parse(text: &str) -> Result<Trace, TraceError> {
    HtsimTrace { path: "t.cm".into(), start_unit: StartUnit::Ps, endless: None }.parse(text)
}

#[test]
fn connections_start_by_time_or_by_trigger() {
    let text = "# serial\nNodes 4\nConnections 3\nTriggers 1\n\n0->1 id 1 start 5000 size 100 send_done_trigger 7\n\
                0->2 id 2 trigger 7 size 200\n3->1 start 0.0 size 300\ntrigger id 7 oneshot\n";
    let trace = parse(text).unwrap();
    let read: Vec<_> = trace.flows().iter().map(|f| (f.src.0, f.dst.0, f.bytes, f.start.ps(), f.after)).collect();
    assert_eq!(read, [(0, 1, 100, 5000, None), (0, 2, 200, 0, Some(0)), (3, 1, 300, 0, None)]);
    assert_eq!(trace.order(), [2, 0, 1]);
    let micro = HtsimTrace { path: "t.cm".into(), start_unit: StartUnit::Us, endless: None };
    let trace = micro.parse("Nodes 2\nConnections 1\n0->1 start 1.5 size 1").unwrap();
    assert_eq!(trace.flows()[0].start, Time::from_ns(1500));
}

#[test]
fn connections_of_size_0_send_what_endless_says() {
    let text = "Nodes 2\nConnections 2\n0->1 start 0 size 0\n1->0 start 0 size 5";
    let endless = |bytes| HtsimTrace { path: "t.cm".into(), start_unit: StartUnit::Ps, endless: Some(Bytes(bytes)) };
    let trace = endless(1_000_000).parse(text).unwrap();
    assert_eq!(trace.flows().iter().map(|flow| flow.bytes).collect::<Vec<_>>(), [1_000_000, 5]);
    // A size of 0 is no flow either.
    assert!(endless(0).parse(text).is_err());
    assert!(parse(text).unwrap_err().to_string().contains("endless"));
}

#[test]
fn what_flows_cannot_say_is_refused_by_name() {
    let with = |rest: &str| {
        let connections = rest.matches("->").count();
        let error = parse(&format!("Nodes 9\nConnections {connections}\n{rest}\n")).unwrap_err();
        (error.line, error.field)
    };
    assert_eq!(with("0->1 start 0 size 0"), (3, "size".into()));
    assert_eq!(with("0->1 start 0"), (3, "size".into()));
    assert_eq!(with("0->1 size 5"), (3, "start".into()));
    assert_eq!(with("0->9 start 0 size 5"), (3, "dst".into()));
    assert_eq!(with("0->1 start 0 size 5 prio 3"), (3, "prio".into()));
    assert_eq!(with("0->1 start 0 size 5 recv_done_trigger 3"), (3, "recv_done_trigger".into()));
    assert_eq!(with("0->1 start 0 size 5 colour 3"), (3, "attribute".into()));
    assert_eq!(with("0->1 trigger 1 size 5"), (3, "trigger".into()));
    assert_eq!(with("0->1 trigger 1 size 5\ntrigger id 1 oneshot"), (4, "trigger".into()));
    let others = "0->1 start 0 size 5 send_done_trigger 1\n2->1 trigger 1 size 5\ntrigger id 1 oneshot";
    assert_eq!(with(others), (4, "trigger".into()));
    let barrier = "0->1 start 0 size 5 send_done_trigger 1\n0->2 start 0 size 5 send_done_trigger 1\n0->3 trigger \
                   1 size 5\ntrigger id 1 barrier count 2";
    assert_eq!(with(barrier), (6, "count".into()));
    let circle = "0->1 trigger 1 size 5 send_done_trigger 2\n0->2 trigger 2 size 5 send_done_trigger 1\n\
                  trigger id 1 oneshot\ntrigger id 2 oneshot";
    assert_eq!(with(circle), (3, "after".into()));
    assert_eq!(parse("Nodes 2\nConnections 3\n0->1 start 0 size 5").unwrap_err().line, 2);
    assert_eq!(parse("Nodes 2\nConnections 0\nFailures 2").unwrap_err().field, "Failures");
    assert_eq!(parse("").unwrap_err().field, "Connections");
}

#[test]
fn an_error_says_nothing_of_a_file_that_is_no_connection_matrix() {
    for text in ["root:*:19722:0\n", "secret->x start 0\n"] {
        let error = parse(text).unwrap_err().to_string();
        assert!(!error.contains("root") && !error.contains("secret"), "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics(
        lines in proptest::collection::vec(
            "Nodes [0-9]|Connections [0-3]|[0-3]->[0-3]( start [0-9]| size [0-9]| trigger [12]| send_done_trigger \
             [12]){0,4}|trigger id [12] (oneshot|multishot)|\\PC{0,9}",
            0..7,
        )
    ) {
        let _ = parse(&lines.join("\n"));
    }
}
