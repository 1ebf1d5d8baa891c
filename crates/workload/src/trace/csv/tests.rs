use units::{HostId, Time};

use super::*;

fn parse(text: &str) -> Result<Trace, TraceError> {
    CsvTrace { path: "flows.csv".into(), class: None }.parse(text)
}

#[test]
fn columns_are_found_by_name() {
    let trace = parse("id,dst,src,start_us,size_bytes,fct_us\n7,22,1,0.20978926,8760,6.1\n8,3,2,1e3,1,2\n").unwrap();
    let [first, second] = trace.flows() else { panic!() };
    assert_eq!((first.src, first.dst, first.bytes), (HostId(1), HostId(22), 8760));
    assert_eq!((first.start, first.line), (Time::from_ps(209_789), 2));
    assert_eq!(second.start, Time::from_ms(1));
}

#[test]
fn sizes_may_be_called_as_in_results() {
    assert_eq!(parse("src,dst,bytes,start_ps\n0,1,5,0\n").unwrap().flows()[0].bytes, 5);
}

#[test]
fn a_class_is_a_selection() {
    let text = "src,dst,size_bytes,start_ps,class\n0,1,5,0,incast\n1,2,5,0,rest\n";
    let trace = CsvTrace { path: "f".into(), class: Some("rest".into()) }.parse(text).unwrap();
    assert_eq!(trace.flows().iter().map(|flow| flow.src).collect::<Vec<_>>(), [HostId(1)]);
}

#[test]
fn errors_name_line_and_field() {
    let error = parse("src,dst,size_bytes,start_ns\n0,1,10,5\n0,1,ten,5\n").unwrap_err();
    assert_eq!((error.line, error.field.as_str(), error.value.as_str()), (3, "size_bytes", "ten"));
    assert!(error.to_string().starts_with("flows.csv, line 3: size_bytes is \"ten\""), "{error}");
    assert_eq!(parse("src,dst,size_bytes,start_ns\n0,1,10,-5\n").unwrap_err().field, "start_ns");
    assert_eq!(parse("src,dst,size_bytes,start_ns\n4,4,10,5\n").unwrap_err().field, "dst");
    assert_eq!(parse("src,dst,size_bytes,start_ns\n0,1,10\n").unwrap_err().value, "3 fields");
    assert!(parse("src,dst,size_bytes\n").unwrap_err().expected.contains("start_us"));
    assert!(parse("src,dst,size_bytes,start_s,start_ns\n").unwrap_err().expected.contains("exactly one"));
    let both = parse("src,dst,size_bytes,bytes,start_s\n").unwrap_err();
    assert!(both.expected.contains("exactly one of size_bytes, bytes"), "{both}");
    assert!(parse("").unwrap_err().expected.contains("src"));
}

#[test]
fn an_error_says_nothing_of_a_file_that_is_no_table_of_flows() {
    let error = parse("root:*:19722:0:99999:7:::\ndaemon:*:19722\n").unwrap_err().to_string();
    assert!(!error.contains("root") && error.contains("without one of the columns"), "{error}");
    assert!(parse("src,dst,secret\n").unwrap_err().to_string().contains("\"src,dst\""));
}

/// Sums of bytes, and of bits, do not wrap: all flows together have a bound.
#[test]
fn flows_of_more_bytes_than_a_sum_holds_are_refused() {
    let rows = "src,dst,size_bytes,start_ps\n0,1,1000,0\n1,2,18446744073709551615,0\n2,3,5,0\n";
    let error = parse(rows).unwrap_err().to_string();
    let right = "less: all flows together have at most 2305843009213693951 bytes";
    assert!(error.ends_with(&format!("line 3: size is \"18446744073709551615\", but should be {right}")), "{error}");
    // Each of them may be, and not all of them.
    let half = 1_500_000_000_000_000_000u64;
    let rows = format!("src,dst,size_bytes,start_ps\n0,1,{half},0\n1,2,{half},0\n");
    assert!(parse(&rows).unwrap_err().to_string().contains("line 3: size"));
    parse(&format!("src,dst,size_bytes,start_ps\n0,1,{half},0\n")).unwrap();
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "(src,dst,size_bytes,start_us\n)?([0-9a,.\"#\n-]{0,40})", any: String) {
        let _ = parse(&text);
        let _ = parse(&any);
    }

    #[test]
    fn what_is_written_is_read(flows in proptest::collection::vec((0u32..9, 10u32..19, 1u64..u64::MAX / 100,
        0u64..u64::MAX / 4), 0..9)) {
        let rows: String = flows.iter().map(|(s, d, b, t)| format!("{s},{d},{b},{t}\n")).collect();
        let trace = parse(&format!("src,dst,size_bytes,start_ps\n{rows}")).unwrap();
        let read: Vec<_> = trace.flows().iter().map(|f| (f.src.0, f.dst.0, f.bytes, f.start.ps())).collect();
        proptest::prop_assert_eq!(read, flows);
    }
}
