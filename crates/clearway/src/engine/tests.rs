use std::io::Read as _;

use serde_json::{Value, json};

use super::*;

const TEXT: &str = "
transport = 'udp'
[fabric.star]
hosts = 4
[[traffic]]
sizes = { constant = '100KB' }
arrivals = 'all_at_once'
flows = 8
";

/// Both ends; ours does not wait for ever.
fn pair() -> (UnixStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    ours.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    (ours, theirs)
}

#[expect(clippy::disallowed_methods, reason = "it stands for a program")]
fn served(theirs: UnixStream, problem: Option<Problem>) -> std::thread::JoinHandle<std::io::Result<()>> {
    std::thread::spawn(move || serve(theirs, problem, &Panics::default()))
}

/// What is answered to a request, and what follows the last line.
fn asked_of(request: &str, problem: Option<Problem>) -> (Vec<Value>, Vec<u8>) {
    let (mut ours, theirs) = pair();
    let program = served(theirs, problem);
    ours.write_all(request.as_bytes()).expect("it listens");
    let (mut from, mut lines) = (BufReader::new(ours), Vec::new());
    let mut line = String::new();
    while from.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        let said: Value = serde_json::from_str(&line).expect("JSON");
        line.clear();
        let is_last = said.get("engine").is_none() && said.get("at").is_none();
        lines.push(said);
        if is_last {
            break;
        }
    }
    let mut rest = Vec::new();
    from.read_to_end(&mut rest).expect("it ends");
    program.join().expect("no panic").expect("nothing is in its way");
    (lines, rest)
}

fn asked(text: &str, what: &Value) -> (Value, Vec<u8>) {
    let scenario = json!({ "text": text, "name": "x", "folder": ".", "sets": [["seed", "2"]], "crates": {} });
    let request = json!({ "scenario": scenario, "asked": what });
    let (mut lines, rest) = asked_of(&format!("{request}\n"), None);
    let first = lines.remove(0);
    assert_eq!((&first["engine"]["protocol"], &first["engine"]["source"]), (&json!(PROTOCOL), &json!(sim::SOURCE)));
    (lines.pop().expect("an answer"), rest)
}

#[test]
fn a_result_is_a_line_and_the_bytes_that_it_names() {
    let how = |threads: usize| {
        json!({ "simulate": { "threads": threads, "parts": 2, "memory_bytes_max": null,
        "pcap": [{ "host0": "a" }, 10] } })
    };
    let ((one, values), (two, _)) = (asked(TEXT, &how(1)), asked(TEXT, &how(2)));
    let result = &one["result"];
    assert_eq!(result["info"]["digest"], two["result"]["info"]["digest"]);
    assert_eq!((&result["info"]["seed"], &result["info"]["flows_completed"]), (&json!(2), &json!(8)));
    let columns =
        result["tables"].as_array().expect("tables").iter().flat_map(|table| table[1].as_array().expect("columns"));
    let bytes: u64 = columns.map(|column| column["bytes"].as_u64().expect("a count")).sum();
    let captured = result["captured"][0][0].as_u64().expect("a count");
    assert_eq!(bytes + captured, values.len() as u64);
    assert_eq!(&values[bytes as usize..][..4], &0x0A0D_0D0A_u32.to_le_bytes());
}

#[test]
fn other_questions_have_their_answers() {
    let check = json!({ "check": { "memory_bytes_max": null } });
    assert_eq!(asked(TEXT, &check).0, json!({ "check": { "hosts": 4, "flows": 8 } }));
    let read = &asked(TEXT, &json!("read")).0["read"];
    assert_eq!(read["transports"], json!(["udp"]));
    assert!(read["toml"].as_str().is_some_and(|toml| toml.contains("seed = 2")));
    let foreseen = asked(TEXT, &json!({ "foresee": { "probe_cpu_s": 0.0, "memory_bytes_max": null } })).0;
    assert_eq!(foreseen["foreseen"]["fits"], json!(null), "{foreseen}");
    // A run that needs more memory than there is gets an error before its plan is built.
    let refused = asked(TEXT, &json!({ "foresee": { "probe_cpu_s": 0.0, "memory_bytes_max": 1 } })).0;
    assert!(refused["error"]["message"].as_str().is_some_and(|why| why.contains("memory")), "{refused}");
    assert_eq!(asked(TEXT, &json!({ "estimate": { "memory_bytes_max": null } })).0["result"]["info"]["level"], "flow");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let wrong = asked(&TEXT.replace("'udp'", "{ udp = { rat = 3 } }"), &json!("read")).0;
    assert_eq!((&wrong["error"]["line"], &wrong["error"]["key"]), (&json!(2), &json!("transport.udp.rat")));
    let plan = asked(&TEXT.replace("hosts = 4", "hosts = 1"), &json!({ "check": { "memory_bytes_max": null } })).0;
    assert_eq!(plan["error"]["file"], "x");
    let (lines, _) = asked_of("what?\n", None);
    assert!(lines[1]["error"]["message"].as_str().is_some_and(|why| why.contains("does not know")));
    let (lines, _) = asked_of("\n", Some(Problem::new("dcpim", "is taken")));
    assert_eq!(lines[1]["error"]["message"], "its transport dcpim: is taken");
}

#[test]
fn a_run_ends_with_its_results_when_nobody_asks_any_more() {
    let long = TEXT.replace("flows = 8", "flows = 10000");
    let scenario = json!({ "text": long, "name": "x", "folder": ".", "sets": [], "crates": {} });
    let how = json!({ "threads": 1, "parts": null, "memory_bytes_max": null, "pcap": null });
    let (mut ours, theirs) = pair();
    let program = served(theirs, None);
    writeln!(ours, "{}", json!({ "scenario": scenario, "asked": { "simulate": how } })).expect("it listens");
    ours.shutdown(Shutdown::Write).expect("it is open");
    let mut said = Vec::new();
    ours.read_to_end(&mut said).expect("it ends");
    program.join().expect("no panic").expect("nothing is in its way");
    assert!(String::from_utf8_lossy(&said).contains(r#""ended":"interrupted""#));
}
