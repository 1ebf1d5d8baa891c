use super::*;

fn parse(text: &str, switches: &[u32], origin: Time) -> Result<Trace, TraceError> {
    HpccTrace { path: "flow.txt".into(), switches: switches.to_vec(), origin }.parse(text)
}

#[test]
fn switches_are_counted_out_and_time_begins_at_the_origin() {
    let text = "2 \n2 1 3 100 200000000 2\n4 1 3 100 1000 2.000000150\nspare";
    let trace = parse(text, &[0, 3], Time::from_ms(2000)).unwrap();
    let read: Vec<_> = trace.flows().iter().map(|f| (f.src.0, f.dst.0, f.bytes, f.start.ps())).collect();
    assert_eq!(read, [(1, 0, 200_000_000, 0), (2, 0, 1000, 150_000)]);
}

#[test]
fn errors_name_line_and_field() {
    let wrong = |text: &str| {
        let error = parse(text, &[0], Time::from_ps(1)).unwrap_err();
        (error.line, error.field)
    };
    assert_eq!(wrong(""), (1, "number of flows".into()));
    assert_eq!(wrong("2\n1 2 3 100 5 2\n"), (1, "number of flows".into()));
    assert_eq!(wrong("1\n1 2 3 100 5\n"), (2, "line".into()));
    assert_eq!(wrong("1\n1 0 3 100 5 2\n"), (2, "dst".into()));
    assert_eq!(wrong("1\n1 2 3 100 5 0\n"), (2, "start".into()));
    assert_eq!(wrong("1\n1 2 3 100 5.5 2\n"), (2, "bytes".into()));
    assert_eq!(wrong("2\n1 2 3 100 5 2\n1 2 1 100 5 2\n"), (3, "pg".into()));
}

#[test]
fn an_error_says_nothing_of_a_file_that_is_no_list_of_flows() {
    let error = parse("root:*:19722:0\n", &[], Time::ZERO).unwrap_err().to_string();
    assert!(!error.contains("root") && error.contains("number of flows"), "{error}");
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "[0-3]\n([0-9 .e\n-]{0,60})", any: String) {
        let _ = parse(&text, &[1, 0, 1], Time::ZERO);
        let _ = parse(&any, &[], Time::ZERO);
    }
}
