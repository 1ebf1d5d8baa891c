//! The messages about mistakes in a scenario: the line, the key, the value, and what would be right.

use clearway_run::Plan;
use proptest::prelude::*;
use proptest::sample::select;
use scenario::{ScenarioError, Source, read};

const GOOD: &str = r#"name = "good"
transport = "udp"
reroute_delay = "1ms"

[measure]
drain = "10ms"

[fabric.leaf_spine]
racks = 2
hosts_per_rack = 2
host_rate = "100Gbps"
propagation = "200ns"

[switch]
buffer = { per_port = { bytes = "500KB" } }

[[failure]]
at = "1us"
link = ["leaf0", "spine1"]

[[traffic]]
name = "web"
sizes = "websearch"
arrivals = { poisson = { load = 0.6 } }
flows = 5

[[traffic]]
name = "burst"
flows = 4

[traffic.sizes]
constant = "64KB"

[traffic.arrivals.periodic]
every = "10us"

[traffic.pattern.incast]
degree = 2
"#;

fn source(text: &str, sets: &[(&str, &str)]) -> Source {
    let sets = sets.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Source {
        name: "x.toml".to_owned(),
        text: text.to_owned(),
        sets,
        folder: "".into(),
        programs: Default::default(),
        crates: Default::default(),
    }
}

/// The fault of a scenario, found by reading or by planning it.
fn problem(text: &str, sets: &[(&str, &str)]) -> ScenarioError {
    let source = source(text, sets);
    let scenario = match source.read() {
        Ok(scenario) => scenario,
        Err(error) => return error,
    };
    let Err(problem) = Plan::new(&scenario) else { panic!("nothing is wrong with\n{text}\n{sets:?}") };
    source.locate(problem)
}

/// Replaces one piece of [`GOOD`], and checks the error's place, key and words.
#[track_caller]
fn refused(right: &str, wrong: &str, line: usize, key: &str, words: &[&str]) {
    assert!(GOOD.contains(right), "{right}");
    let error = problem(&GOOD.replacen(right, wrong, 1), &[]);
    assert_eq!((error.line, error.key.as_str()), (Some(line), key), "{error}");
    assert!(error.to_string().starts_with(&format!("x.toml:{line}: {key}: ")), "{error}");
    for word in words {
        assert!(error.message.contains(word), "{word} is not in\n{error}");
    }
}

/// Checks that a scenario runs, and that its advice has this key and says these words.
#[track_caller]
fn idle(text: &str, sets: &[(&str, &str)], key: &str, words: &str) {
    let scenario = source(text, sets).read().unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::new(&scenario).unwrap_or_else(|problem| panic!("{problem}"));
    let said = plan.warnings();
    assert!(said.iter().any(|one| one.key == key && one.message.contains(words)), "{key}: {words}: {said:?}");
}

/// The same of [`GOOD`] with one piece replaced.
#[track_caller]
fn idle_in(right: &str, wrong: &str, key: &str, words: &str) {
    assert!(GOOD.contains(right), "{right}");
    idle(&GOOD.replacen(right, wrong, 1), &[], key, words);
}

#[test]
fn the_good_one_is_good() {
    let scenario = read(GOOD, "x.toml", &[]).unwrap();
    assert_eq!(Plan::new(&scenario).unwrap().flows.len(), 9);
    // Written out with every default, it reads back as the same.
    assert_eq!(read(&scenario.to_toml(), "x.toml", &[]).unwrap(), scenario);
}

#[test]
fn unknown_names_come_with_the_nearest_known_one() {
    let meant = |name: &str| format!("did you mean \"{name}\"?");
    let unknown = |right, wrong, line, key, name: &str| refused(right, wrong, line, key, &[&meant(name)]);
    unknown("name = \"good\"", "nam = \"good\"", 1, "nam", "name");
    unknown("drain = \"10ms\"", "dran = \"10ms\"", 6, "measure.dran", "drain");
    unknown("[measure]", "[mesure]", 5, "mesure", "measure");
    unknown("hosts_per_rack = 2", "host_per_rack = 2", 10, "fabric.leaf_spine.host_per_rack", "hosts_per_rack");
    unknown("[fabric.leaf_spine]", "[fabric.leaf_spin]", 8, "fabric.leaf_spin", "leaf_spine");
    unknown("per_port", "per_prt", 15, "switch.buffer.per_prt", "per_port");
    unknown("bytes = \"500KB\"", "byts = \"500KB\"", 15, "switch.buffer.per_port.byts", "bytes");
    unknown("transport = \"udp\"", "transport = \"upd\"", 2, "transport", "udp");
    unknown("transport = \"udp\"", "transport = \"DCTCP\"", 2, "transport", "dctcp");
    unknown("transport = \"udp\"", "transport = { udp = { clas = 1 } }", 2, "transport.udp.clas", "class");
    unknown("\"leaf0\", \"spine1\"", "\"leaf0\", \"spin1\"", 19, "failure[0].link", "spine1");
    unknown("sizes = \"websearch\"", "sizes = \"webserch\"", 23, "traffic[0].sizes", "websearch");
    // In the first of the classes, in a table of its own in the second.
    unknown("load = 0.6", "lod = 0.6", 24, "traffic[0].arrivals.poisson.lod", "load");
    unknown("every = \"10us\"", "evry = \"10us\"", 35, "traffic[1].arrivals.periodic.evry", "every");
    unknown("degree = 2", "degre = 2", 38, "traffic[1].pattern.incast.degre", "degree");
    refused(
        "name = \"good\"",
        "colour = \"red\"",
        1,
        "colour",
        &["\"colour\" is not a known key here. Known: name, seed,"],
    );
}

#[test]
fn quantities_have_units() {
    let host_rate = |wrong: &str, words: &[&str]| {
        refused("host_rate = \"100Gbps\"", &format!("host_rate = {wrong}"), 11, "fabric.leaf_spine.host_rate", words);
    };
    host_rate("\"100Gbbs\"", &["\"Gbbs\"", "Tbps, Gbps, Mbps", "like \"100Gbps\""]);
    host_rate("\"100\"", &["no unit"]);
    host_rate("\"Gbps\"", &["does not begin with a number"]);
    host_rate("100", &["the number 100", "like \"100Gbps\""]);
    host_rate("\"0bps\"", &["0bps", "a link needs a rate"]);
    refused("\"200ns\"", "\"200nm\"", 12, "fabric.leaf_spine.propagation", &["nm", "\"200ns\""]);
    refused("\"64KB\"", "\"64kb\"", 32, "traffic[1].sizes.constant", &["kb", "KB"]);
}

#[test]
fn values_are_possible() {
    let racks = |wrong: &str, key: &str, line, words: &[&str]| {
        refused("racks = 2", &format!("racks = {wrong}"), line, key, words);
    };
    racks("0", "fabric.leaf_spine.racks", 9, &["is 0", "at least 1"]);
    racks("-1", "fabric.leaf_spine.racks", 9, &["-1", "a whole number"]);
    racks("\"two\"", "fabric.leaf_spine.racks", 9, &["two", "a whole number"]);
    racks("4000000000", "fabric.leaf_spine", 8, &["too many"]);
    refused("\"500KB\"", "\"5KB\"", 15, "switch.buffer.per_port.bytes", &["5KB", "10KB"]);
    refused(
        "\"leaf0\", \"spine1\"",
        "\"leaf0\", \"leaf1\"",
        19,
        "failure[0].link",
        &["joined to host0, host1, spine0"],
    );
    refused("at = \"1us\"", "at = \"1us\"\nuntil = \"1us\"", 19, "failure[0].until", &["later than", "1us"]);
    refused("load = 0.6", "load = -0.6", 24, "traffic[0].arrivals.poisson.load", &["-0.6", "such as 0.6"]);
    refused("load = 0.6", "load = nan", 24, "traffic[0].arrivals.poisson.load", &["NaN"]);
    refused("degree = 2", "degree = 20", 38, "traffic[1].pattern.incast.degree", &["20", "between 1 and 3"]);
    refused("\"64KB\"", "\"0B\"", 32, "traffic[1].sizes.constant", &["at least 1B"]);
    let fits =
        ["a message of 64KB", "window of 1us: the link of host 0 at 100Gbps carries 12.5KB", "write more than 5.12us"];
    refused("flows = 4\n", "flows = 4\nadmissible = \"1us\"\n", 30, "traffic[1].admissible", &fits);
    refused("flows = 4", "flows = 4\nsenders = \"0-99\"", 30, "traffic[1].senders", &["no host 99", "has 4"]);
    refused("flows = 4", "flows = 4\nsenders = \"leaf0\"", 30, "traffic[1].senders", &["switches send and receive no"]);
    refused("flows = 4", "flows = 4\nsenders = \"host1\"", 30, "traffic[1].senders", &["host3 is \"3\""]);
    refused("flows = 4", "flows = 4\nsenders = \"3-1\"", 30, "traffic[1].senders", &["3-1", "backwards"]);
    refused("name = \"burst\"", "name = \"web\"", 28, "traffic[1].name", &["web", "give each a different name"]);
    refused(
        "[switch]",
        "host.mtu = \"20KB\"\n[switch]",
        14,
        "fabric.leaf_spine.host",
        &["\"host\" is not a known key here"],
    );
    refused("[switch]", "[host]\nmtu = \"20KB\"\n[switch]", 15, "host.mtu", &["20KB", "9216B"]);
    refused("[switch]", "[host]\nheader = \"0B\"\n[switch]", 15, "host.header", &["0B", "1B and 1000B"]);
    refused("[switch]", "[host]\ndelay = \"2s\"\n[switch]", 15, "host.delay", &["2s", "at most 1s"]);
    refused(
        "reroute_delay = \"1ms\"",
        "transport = \"udp\"",
        3,
        "transport",
        &["line 2 has transport already", "delete one of the two"],
    );
    let rows = |most: u64| format!("drain = \"10ms\"\nrows_max = {most}");
    refused("drain = \"10ms\"", &rows(0), 7, "measure.rows_max", &["0 is less than", "At least 18", "0s"]);
    refused("drain = \"10ms\"", &rows(17), 7, "measure.rows_max", &["17", "9 rows each", "At least 18"]);
    let fits = |more: &str| read(&GOOD.replacen("drain = \"10ms\"", more, 1), "x.toml", &[]).unwrap();
    assert!(Plan::new(&fits(&rows(18))).is_ok());
    assert!(Plan::new(&fits("rows_max = 0\ninterval = \"0s\"")).is_ok());
}

#[test]
fn failures_are_possible() {
    let noisy = |rate: &str, words: &[&str]| {
        refused(
            "at = \"1us\"",
            &format!("at = \"1us\"\nbit_error_rate = {rate}"),
            19,
            "failure[0].bit_error_rate",
            words,
        );
    };
    noisy("0.0", &["0 is not a bit error rate", "above 0", "such as 1e-9"]);
    noisy("-1e-9", &["-0.000000001"]);
    noisy("0.6", &["0.6", "up to 0.5"]);
    noisy("nan", &["NaN"]);
    noisy("\"1e-9\"", &["1e-9"]);
    refused(
        "link = [\"leaf0\", \"spine1\"]",
        "switch = \"spine1\"\nbit_error_rate = 1e-9",
        20,
        "failure[0].bit_error_rate",
        &["needs a link"],
    );
    let failing = |more: &str, line, key: &str, words: &[&str]| {
        refused("at = \"1us\"", &format!("at = \"1us\"\n{more}"), line, &format!("failure[0].{key}"), words);
    };
    failing("loss = 0.0", 19, "loss", &["0 is not a loss rate", "up to 1", "such as 1e-3"]);
    failing("loss = 1.1", 19, "loss", &["1.1", "up to 1"]);
    failing("loss = nan", 19, "loss", &["NaN"]);
    failing("rate = \"400Gbps\"", 19, "rate", &["400Gbps is not below the link's normal rate, 400Gbps"]);
    failing("rate = \"0bps\"", 19, "rate", &["0bps", "1Mbps", "leave rate out"]);
    failing("rate = 0.1", 19, "rate", &["0.1", "like \"100Gbps\""]);
    let flapping = |down: &str, every: &str, key: &str, words: &[&str]| {
        let flap = format!("until = \"1ms\"\nflap = {{ down = \"{down}\", every = \"{every}\" }}");
        failing(&flap, 20, key, words);
    };
    flapping("0s", "10us", "flap.down", &["0ps is not between 0 and every = \"10us\""]);
    flapping("10us", "10us", "flap.down", &["10us is not between"]);
    flapping("1ms", "2ms", "flap.down", &["1ms is longer than the 999us", "never fail"]);
    flapping("1ns", "1us", "flap.down", &["at least 650ns"]);
    flapping("50ns", "99ns", "flap", &["it fails 10091 times", "10000 times", "longer intervals"]);
    failing("flap = { down = \"1us\", every = \"2us\" }", 19, "flap", &["needs an end", "until"]);
    failing("flap = { down = \"1us\" }", 19, "flap", &["missing", "every"]);
}

#[test]
fn what_is_missing_is_said_where_it_belongs() {
    refused("sizes = \"websearch\"\n", "", 21, "traffic[0].sizes", &["missing", "sizes = \"websearch\""]);
    refused("flows = 5\n", "", 21, "traffic[0].flows", &["never end", "flows or duration"]);
    refused("flows = 4\n", "", 27, "traffic[1].flows", &["never end"]);
    refused("at = \"1us\"\n", "", 17, "failure[0]", &["missing", "at"]);
    refused("link = [\"leaf0\", \"spine1\"]\n", "", 17, "failure[0]", &["exactly one of"]);
    let none = problem("name = \"empty\"", &[]);
    assert!(none.key == "traffic" && none.message.contains("add a [[traffic]] table"), "{none}");
}

#[test]
fn settings_without_effect_are_advice() {
    idle_in("drain = \"10ms\"", "drain = \"10ms\"\nend = \"1ms\"", "measure.drain", "no effect beside measure.end");
    let lasting = "[[failure]]\nat = \"1us\"\nlink = [\"leaf0\", \"spine1\"]\n";
    let (usual, slow) = ("reroute_delay = \"1ms\"", "reroute_delay = \"2ms\"");
    idle(&GOOD.replace(lasting, "").replace(usual, slow), &[], "reroute_delay", "no effect");
    // A link that only damages bits is not routed around.
    let noisy = GOOD.replace("at = \"1us\"", "at = \"1us\"\nbit_error_rate = 1e-9").replace(usual, slow);
    idle(&noisy, &[], "reroute_delay", "no effect");
    // Silent failures are no news.
    let silent = GOOD.replace("at = \"1us\"", "at = \"1us\"\nreroute = false");
    for key in ["reroute_per_hop", "reroute_compute_max"] {
        idle(&GOOD.replace(lasting, ""), &[(key, "1us")], key, "no effect");
        idle(&silent, &[(key, "1us")], key, "no effect");
    }
    let marks = "no transport of this scenario reacts to marks";
    idle_in("[switch]", "[switch]\nmarking = { step = { threshold = \"10KB\" } }", "switch.marking", marks);
    idle_in("[switch]", "[switch]\nmark_at = \"departure\"", "switch.mark_at", marks);
    idle(GOOD, &[("host.intake_buffer", "20KB")], "host.intake_buffer", "without host.intake_rate");
    let classes_own = GOOD
        .replace("transport = \"udp\"", "transport = { udp = { class = 3 } }")
        .replace("flows =", "transport = \"udp\"\nflows =");
    idle(&classes_own, &[], "transport", "every traffic class names its own");
    idle(GOOD, &[("sharing", "aq")], "sharing", "no entity requests anything");
    let poisson = "arrivals = { poisson = { load = 0.6 } }";
    let closed = "arrivals = { closed_loop = {} }\nduration = \"1ms\"";
    idle_in(poisson, closed, "traffic[0].duration", "no effect on a closed loop");
    let at_once = "arrivals = \"all_at_once\"\nduration = \"1ns\"";
    idle_in(poisson, at_once, "traffic[0].duration", "no effect when all arrive at once");
    let phases = "phases = { on = \"1us\", off = \"1us\" }";
    idle_in(
        poisson,
        &format!("arrivals = \"all_at_once\"\n{phases}"),
        "traffic[0].phases",
        "no effect on a closed loop",
    );
    let every = "arrivals = { poisson = { every = \"1us\", of = \"bisection\" } }";
    idle_in(poisson, every, "traffic[0].arrivals.poisson", "no effect beside every");
    let at = "at = \"1us\"";
    idle_in(at, "at = \"1us\"\none_way = true", "failure[0].one_way", "both directions");
    let lossy = "at = \"1us\"\nloss = 0.1\nreroute = false";
    idle_in(at, lossy, "failure[0].reroute", "never learns of loss");
    let ideal = "flow_control = { bfc = { queues = \"ideal\", vfids = 7, departures = \"published\" } }\ntransport";
    idle_in("transport", ideal, "flow_control.bfc.vfids", "no effect with queues = \"ideal\"");
    idle_in("transport", ideal, "flow_control.bfc.departures", "no effect with queues = \"ideal\"");
}

/// Comparing schemes by name compares them as the scenario has set them.
#[test]
fn the_name_of_a_scheme_keeps_the_settings_that_the_scenario_has_for_it() {
    let own = GOOD
        .replace(
            "transport = \"udp\"",
            "transport = { dcqcn = { class = 5 } }\nflow_control = { pfc = { alpha = 0.5 } }",
        )
        .replacen("flows = 5", "flows = 5\ntransport = { dctcp = { initial_window = 20 } }", 1);
    let with = |sets: &[(&str, &str)]| source(&own, sets).read().unwrap_or_else(|error| panic!("{error}"));
    let written = with(&[]);
    assert_eq!(with(&[("transport", "dcqcn")]), written);
    assert_eq!(with(&[("transport", "\"dcqcn\"")]), written);
    assert_eq!(with(&[("transport", "udp"), ("transport", "dcqcn")]), written);
    assert_eq!(with(&[("flow_control", "pfc")]), written);
    assert_eq!(with(&[("traffic.web.transport", "dctcp")]), written);
    // A scheme that a class has settings for has them everywhere.
    assert_eq!(Some(&with(&[("transport", "dctcp")]).transport), written.traffic[0].transport.as_ref());
    // A table says what it says.
    let defaults = with(&[("transport", "{ dcqcn = {} }")]);
    assert_ne!(defaults.transport, written.transport);
    assert_eq!(source(GOOD, &[("transport", "dcqcn")]).read().unwrap().transport, defaults.transport);
    // Another scheme has its own.
    assert_eq!(
        with(&[("transport", "rdma")]).transport,
        source(GOOD, &[("transport", "rdma")]).read().unwrap().transport
    );
}

/// A failed link fails in both directions, whatever `one_way` says.
#[test]
fn one_way_has_no_effect_on_a_link_that_is_down() {
    let plan = |text: &str| Plan::new(&read(text, "x.toml", &[]).unwrap()).unwrap();
    let one_way = GOOD.replace("at = \"1us\"", "at = \"1us\"\none_way = true");
    assert_eq!(format!("{:?}", plan(&one_way).changes), format!("{:?}", plan(GOOD).changes));
}

#[test]
fn settings_that_contradict_each_other_are_errors() {
    refused("load = 0.6", "load = 0.6, every = \"1us\"", 24, "traffic[0].arrivals.poisson.load", &["beside every"]);
    for key in ["reroute_per_hop", "reroute_compute_max"] {
        let error = problem(GOOD, &[("transport", "r2c2"), (key, "1us")]);
        assert!(
            error.key == key && error.message.contains("r2c2 assumes that all nodes change their routing tables"),
            "{error}"
        );
    }
    let error = problem(GOOD, &[("host.intake_rate", "0Gbps")]);
    assert!(error.key == "host.intake_rate" && error.message.contains("the rate of the link"), "{error}");
}

#[test]
fn of_two_names_where_one_is_chosen_none_is_dropped() {
    let two = "transport = { udp = {}, dctcp = {} }";
    refused("transport = \"udp\"", two, 2, "transport", &["is a second name, and only one can be chosen"]);
    let error = problem(GOOD, &[("flow_control", "{ pfc = {}, bfc = {} }")]).to_string();
    assert!(error.contains("is a second name, and only one can be chosen"), "{error}");
    let error = problem(GOOD, &[("sharing", "{ aq = {}, rate_limiter = {} }")]).to_string();
    assert!(error.contains("is a second name, and only one can be chosen"), "{error}");
}

#[test]
fn numbers_that_are_too_large_are_told_the_range() {
    refused("racks = 2", "racks = 4294967296", 9, "fabric.leaf_spine.racks", &["0 to 4,294,967,295"]);
    let error = problem(GOOD, &[("transport", "{ dctcp = { class = 256 } }")]).to_string();
    assert!(error.contains("0 to 255") && !error.contains("u8"), "{error}");
}

#[test]
fn files_that_never_end_are_refused() {
    for path in ["/dev/zero", "/dev/urandom", "/"] {
        let trace = format!("trace = {{ csv = {{ path = \"{path}\" }} }}");
        let error = problem(
            &GOOD.replace("sizes = \"websearch\"\narrivals = { poisson = { load = 0.6 } }\nflows = 5", &trace),
            &[],
        );
        assert!(error.message.contains("not a file"), "{error}");
    }
}

#[test]
fn what_is_mutated_is_good_before() {
    Plan::new(&read(&shared(), "x.toml", &[]).unwrap()).unwrap();
}

#[test]
fn a_value_that_was_set_is_named_as_such() {
    let refused = |sets: &[(&str, &str)], start: &str, words: &str| {
        let error = problem(GOOD, sets).to_string();
        assert!(error.starts_with(start) && error.contains(words), "{error}");
    };
    refused(&[("measure.dran", "1ms")], "--set measure.dran=1ms: ", "did you mean \"drain\"?");
    refused(&[("transport", "upd")], "--set transport=upd: ", "did you mean \"udp\"?");
    refused(&[("transport.udp.class", "8")], "--set transport.udp.class=8: transport.udp.class: ", "0 to 7");
    refused(&[("fabric.leaf_spine.racks", "0")], "--set fabric.leaf_spine.racks=0: ", "at least 1");
    refused(&[("measure.end", "0s")], "--set measure.end=0s: measure.end: ", "nothing would run");
    // Two alternatives at once.
    refused(&[("fabric.star.hosts", "3")], "--set fabric.star.hosts=3: ", "the scenario has fabric.leaf_spine");
    // Of several, the wrong one.
    let sets = [("seed", "3"), ("measure.drain", "10parsec"), ("fabric.leaf_spine.racks", "3")];
    refused(&sets, "--set measure.drain=10parsec: ", "parsec");
    // Classes by number and by name.
    for class in ["0", "web"] {
        let key = format!("traffic.{class}.arrivals.poisson.load");
        let start = format!("--set {key}=-1: traffic[0].arrivals.poisson.load: ");
        refused(&[(&key, "-1")], &start, "is not a load");
    }
    refused(&[("traffic.wob.flows", "1")], "--set traffic.wob.flows=1: ", "there is no entry \"wob\"");
    // A fault that a set value causes elsewhere is located there.
    let error = problem(GOOD, &[("fabric.leaf_spine.spines", "1")]);
    assert_eq!((error.line, error.key.as_str()), (Some(19), "failure[0].link"), "{error}");
}

#[test]
fn no_toml_at_all() {
    let error = problem("[switch\n", &[]);
    assert!(error.line == Some(1) && error.message.contains("expected"), "{error}");
    problem("\u{0}", &[]);
    problem("traffic = 5", &[]);
    problem("traffic = [[]]", &[]);
    problem("= 1", &[("", "")]);
}

/// Unexpected values.
const ODD: [&str; 24] = [
    "0",
    "-1",
    "4294967295",
    "18446744073709551615",
    "1e308",
    "-0.0",
    "nan",
    "inf",
    "true",
    "[]",
    "[[]]",
    "{}",
    "\"\"",
    "\"0s\"",
    "\"1ps\"",
    "\"18446744s\"",
    "\"1bps\"",
    "\"18Tbps\"",
    "\"0B\"",
    "\"1B\"",
    "\"18446744TB\"",
    "\"all_to_all\"",
    "{ uniform = { min = \"1B\", max = \"18000000TB\" } }",
    "1979-05-27",
];

/// The good one, with entities that share.
fn shared() -> String {
    GOOD.to_owned()
        + r#"
[sharing.aq]
work_conserving = "bypass"
limit = { divided = { min = "30KB" } }

[[entity]]
name = "apps"
traffic = ["web", "burst"]
each = "host"
feedback = { ecn = { step = { threshold = "10KB" } } }
start = "1us"
end = "9us"
request = [{ share = { weight = 2 }, link = ["leaf0", "spine0"], position = "ingress" }]

[[entity]]
name = "vms"
hosts = "0-1"
each = "host"
request = [
    { share = { absolute = "1Gbps" }, position = "egress" },
]
"#
}

#[derive(Clone, Debug)]
enum Mutation {
    Char(usize, char),
    Delete(usize, usize),
    Swap(usize, usize),
    Value(usize, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        (0..shared().len(), "[ -~\n]").prop_map(|(at, with)| Mutation::Char(at, with.chars().next().unwrap_or(' '))),
        (0..shared().len(), 1usize..20).prop_map(|(at, length)| Mutation::Delete(at, length)),
        (0..62usize, 0..62usize).prop_map(|(a, b)| Mutation::Swap(a, b)),
        (0..62usize, 0..ODD.len()).prop_map(|(line, value)| Mutation::Value(line, value)),
    ]
}

fn mutate(text: &str, mutation: &Mutation) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    match *mutation {
        Mutation::Char(at, with) => {
            return text.chars().enumerate().map(|(index, old)| if index == at { with } else { old }).collect();
        }
        Mutation::Delete(at, length) => {
            let kept = text.chars().enumerate().filter(|(index, _)| !(at..at + length).contains(index));
            return kept.map(|(_, kept)| kept).collect();
        }
        Mutation::Swap(a, b) if a < lines.len() && b < lines.len() => lines.swap(a, b),
        Mutation::Value(line, value) if line < lines.len() => {
            if let Some((key, _)) = lines[line].split_once('=') {
                lines[line] = format!("{key}= {}", ODD[value]);
            }
        }
        _ => {}
    }
    lines.join("\n")
}

#[test]
fn transports_that_bring_queues_stand_alone_at_switches() {
    let with = |transport: &str, more: &str| {
        let text = GOOD.replacen("transport = \"udp\"", &format!("transport = \"{transport}\""), 1);
        problem(&text.replacen("reroute_delay", &format!("{more}\nreroute_delay"), 1), &[])
    };
    let said = |error: ScenarioError, key: &str, words: &[&str]| {
        assert_eq!(error.key, key, "{error}");
        for word in words {
            assert!(error.message.contains(word), "{word} is not in\n{error}");
        }
    };
    for name in ["ndp", "pfabric", "uet"] {
        let brings = [name, "replaces the queues of switches"];
        said(with(name, "flow_control = \"per_flow_queues\""), "flow_control", &brings);
        let text = GOOD.replacen("transport = \"udp\"", &format!("transport = \"{name}\""), 1);
        idle(
            &text,
            &[("switch.levels", "[[1, 2]]")],
            "switch",
            &format!("{} {}, so that levels", brings[0], brings[1]),
        );
        let early = [("switch.marking.step.threshold", "9KB"), ("switch.early_drop", "true")];
        idle(&text, &early, "switch.early_drop", &format!("because {} {}", brings[0], brings[1]));
    }
    let beside = |one: &str, other: &str| {
        let text = GOOD.replacen("\"udp\"", &format!("\"{one}\""), 1);
        problem(&text.replacen("name = \"burst\"", &format!("name = \"burst\"\ntransport = \"{other}\""), 1), &[])
    };
    said(
        beside("ndp", "pfabric"),
        "traffic[1].transport",
        &["ndp and pfabric both replace the queues", "run them separately"],
    );
    said(beside("ndp", "harmony"), "transport", &["ndp replaces the queues", "keep no buffer space for harmony"]);
}

#[test]
fn no_aq_is_asked_for_what_bears_no_tags() {
    let shared = shared().replacen("traffic = [\"web\", \"burst\"]", "transports = [\"NAME\"]", 1);
    for name in ["harmony", "rsvp", "fastpass", "r2c2", "ndp", "uet", "falcon"] {
        let text = shared.replacen("\"udp\"", &format!("\"{name}\""), 1).replacen("NAME", name, 1);
        let error = problem(&text, &[]);
        assert_eq!(error.key, "entity[0].request", "{error}");
        assert!(error.message.contains(name) && error.message.contains("no AQ sees them"), "{error}");
    }
}

/// A flow control under which the scenario with `buffer` a port is refused: at which key, and with which words.
fn refused_control(control: &str, buffer: &str, key: &str, words: &[&str]) {
    let right = "buffer = { per_port = { bytes = \"500KB\" } }";
    let text = GOOD.replacen(right, &format!("buffer = {{ per_port = {{ bytes = \"{buffer}\" }} }}"), 1);
    let error = problem(&text.replacen("transport", &format!("flow_control = {control}\ntransport"), 1), &[]);
    assert_eq!((error.line, error.key.as_str()), (Some(2), key), "{error}");
    for word in words {
        assert!(error.message.contains(word), "{word} is not in\n{error}");
    }
}

#[test]
fn flow_controls_that_can_t_be() {
    refused_control("\"pcf\"", "500KB", "flow_control", &["pfc", "bfc"]);
    refused_control("{ pfc = { alpha = -1.0 } }", "500KB", "flow_control.pfc.alpha", &["-1", "positive"]);
    refused_control("{ pfc = { classes = [1, 8] } }", "500KB", "flow_control.pfc.classes", &["8", "0 to 7"]);
    refused_control(
        "{ bfc = { queues = { physical = 0 } } }",
        "500KB",
        "flow_control.bfc.queues.physical",
        &["0", "1 and 128", "ideal"],
    );
    refused_control("{ bfc = { queues = { physical = 129 } } }", "500KB", "flow_control.bfc.queues.physical", &["129"]);
    refused_control(
        "{ bfc = { departures = \"authors\" } }",
        "500KB",
        "flow_control.bfc.departures",
        &["authors", "published"],
    );
    refused_control("{ bfc = { vfids = 40000 } }", "500KB", "flow_control.bfc.vfids", &["40000", "32768"]);
    refused_control("{ bfc = { sticky = -0.5 } }", "500KB", "flow_control.bfc.sticky", &["-0.5"]);
    refused_control("{ per_flow_queues = { pause = 0.0 } }", "500KB", "flow_control.per_flow_queues.pause", &["0"]);
    refused_control(
        "{ per_flow_queues = { resume = 3.0 } }",
        "500KB",
        "flow_control.per_flow_queues.resume",
        &["3", "pause, 2"],
    );
    refused_control(
        "{ congestion_isolation = { class = 0 } }",
        "500KB",
        "flow_control.congestion_isolation.class",
        &["0", "1 to 7"],
    );
    let lossy = "{ congestion_isolation = { pfc = { classes = [1] } } }";
    refused_control(lossy, "500KB", "flow_control.congestion_isolation.pfc.classes", &["must contain 7"]);
    let shared = GOOD.replacen("per_port = { bytes = \"500KB\" }", "shared = { bytes = \"500KB\", alpha = 1.0 }", 1);
    idle(&shared, &[("flow_control", "bfc")], "flow_control", "queues packets by flow");
    let error = problem(&shared.replacen("transport", "flow_control = \"cbfc\"\ntransport", 1), &[]);
    assert!(error.key == "flow_control" && error.message.contains("delete alpha"), "{error}");
    // Headroom alone needs more.
    refused_control("\"pfc\"", "20KB", "flow_control.pfc.alpha", &["leaf0", "headroom", "20KB", "switch.buffer"]);
    refused_control(
        "\"congestion_isolation\"",
        "20KB",
        "flow_control.congestion_isolation.pfc.alpha",
        &["leaf0", "headroom"],
    );
}

#[test]
fn cbfc_has_possible_channels_and_credits() {
    let cbfc = |settings: &str, key: &str, words: &[&str]| {
        refused_control(&format!("{{ cbfc = {{ {settings} }} }}"), "500KB", &format!("flow_control.cbfc.{key}"), words);
    };
    cbfc("vcs = []", "vcs", &["no virtual channel", "[[1]]"]);
    cbfc("vcs = [[1], []]", "vcs[1]", &["carries nothing"]);
    cbfc("vcs = [[1, 8]]", "vcs[0]", &["8 is not a class from 0 to 7"]);
    cbfc("vcs = [[1, 2], [2]]", "vcs[1]", &["vcs[0] has too"]);
    cbfc("credit_size = \"16B\"", "credit_size", &["16B", "32B to 2048B"]);
    cbfc("credits = \"1KB\"", "credits", &["fewer than a full-size packet of 1500B", "at least 1.536KB"]);
    cbfc("credits = \"2MB\"", "credit_size", &["64B", "31250 credits", "128B"]);
    // Six ports of 500 KB are one memory.
    cbfc("credits = \"600KB\"", "credits", &["leaf0", "1 virtual channels", "3MB", "switch.buffer"]);
    let late = "{ cbfc = { update = \"20KB\" } }";
    refused_control(late, "12KB", "flow_control.cbfc.credits", &["leaf0", "1500B", "72KB"]);
}

#[test]
fn a_switch_has_possible_pools_groups_and_queues() {
    let mmu = |settings: &str, key: &str, words: &[&str]| {
        refused_control(&format!("{{ mmu = {{ {settings} }} }}"), "500KB", &format!("flow_control.mmu.{key}"), words);
    };
    let pool = |name: &str, more: &str| format!("{{ name = \"{name}\", side = \"ingress\", bytes = \"1MB\"{more} }}");
    let with = |more: &str| format!("pool = [{}], {more}", pool("a", ", headroom = \"100KB\""));
    mmu("cell = \"0B\"", "cell", &["1B and 16384B"]);
    mmu("lossless = [3, 3]", "lossless", &["3", "twice"]);
    mmu(&format!("pool = [{}, {}]", pool("a", ""), pool("a", "")), "pool[1].name", &["\"a\"", "two pools"]);
    mmu(
        "pool = [{ name = \"a\", side = \"egress\", bytes = \"1MB\", headroom = \"1KB\" }]",
        "pool[0].headroom",
        &["ingress"],
    );
    // Six ports of 500 KB are 3 MB.
    let large = pool("a", ", headroom = \"2.5MB\"");
    mmu(&format!("pool = [{large}]"), "pool", &["leaf0", "3.5MB", "3MB", "switch.buffer"]);
    mmu(&with("group = [{ groups = [0], reserved = \"200KB\" }]"), "pool", &["leaf0", "1.2MB", "pool a"]);
    mmu(&with("group = [{ groups = [], pool = \"a\" }]"), "group[0].groups", &["empty"]);
    mmu(&with("group = [{ groups = [1] }, { groups = [1] }]"), "group[1].groups", &["1 is in two tables"]);
    mmu(&with("group = [{ groups = [1], pool = \"b\" }]"), "group[0].pool", &["\"b\"", "no ingress pool"]);
    mmu(&with("queue = [{ queues = [1], pool = \"a\" }]"), "queue[0].pool", &["\"a\"", "no egress pool"]);
    mmu("group = [{ groups = [1], alpha = 0.0 }]", "group[0].alpha", &["0", "positive"]);
    mmu("group = [{ groups = [1], alpha = 1.0, threshold = \"1KB\" }]", "group[0].threshold", &["alpha"]);
    let row = "{ rate = \"1Gbps\", cable_m = 5.0, reserved = \"0B\", headroom = \"1KB\" }";
    mmu(&format!("group = [{{ groups = [1], lookup = [{row}] }}]"), "group[0].lookup", &["leaf0", "100Gbps", "1Gbps"]);
    mmu("queue = [{ queues = [8] }]", "queue[0].queues", &["8", "0 to 7"]);
    mmu("queue = [{ queues = [1], burst = \"1KB\" }]", "queue[0].burst", &["max_rate"]);
    let ecn = "{ min = \"2KB\", max = \"1KB\", probability_max = 0.1 }";
    mmu(&format!("queue = [{{ queues = [1], ecn = {ecn} }}]"), "queue[0].ecn", &["min < max"]);
    mmu("port = [{ pool = \"x\" }]", "port[0].pool", &["\"x\"", "no pool"]);
    mmu("maps = { tc_to_queue = [1] }", "maps.tc_to_queue", &["8 numbers from 0 to 7"]);
    mmu("maps = { dscp = [0, 0, 0, 0, 0, 0, 0, 0] }", "maps", &["dscp_to_tc"]);
    mmu("schedule = [{ queues = [0, 1], weights = [1] }]", "schedule[0].weights", &["2 weights"]);
    mmu("schedule = [{ queues = [0, 1] }]", "schedule", &["queue 2 of class 2"]);
}

#[test]
fn pyrrha_has_possible_thresholds_and_queues() {
    let pyrrha = |settings: &str, key: &str, words: &[&str]| {
        refused_control(
            &format!("{{ pyrrha = {{ {settings} }} }}"),
            "500KB",
            &format!("flow_control.pyrrha.{key}"),
            words,
        );
    };
    pyrrha("k_paus = 1.0", "k_paus", &["k_pause"]);
    pyrrha("k_pause = 0.0", "k_pause", &["0 is not above 0"]);
    pyrrha("k_pause = 20000.0", "k_pause", &["20000", "at most 10000"]);
    pyrrha("k_resume = -1.0", "k_resume", &["-1 is not above 0"]);
    pyrrha("k_resume = 3.0", "k_resume", &["3 is above k_pause, 2", "resume before it pauses"]);
    pyrrha("queues = 0", "queues", &["at least 1"]);
    pyrrha("queues = 70000", "queues", &["70000"]);
    pyrrha("tiers = \"singel\"", "tiers", &["single"]);
    pyrrha("roots = \"upstream\"", "roots", &["downstream"]);
    pyrrha("classes = [1, 1]", "classes", &["1 is not a class from 0 to 7, or is named twice"]);
    pyrrha("classes = []", "classes", &["names no class"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn no_mutation_panics(mutations in proptest::collection::vec(mutation(), 1..4)) {
        let text = mutations.iter().fold(shared(), |text, mutation| mutate(&text, mutation));
        match read(&text, "x.toml", &[]) {
            Ok(scenario) => {
                if let Err(problem) = Plan::new(&scenario) {
                    prop_assert!(!source(&text, &[]).locate(problem).message.is_empty());
                }
            }
            Err(error) => prop_assert!(!error.message.is_empty()),
        }
    }

    #[test]
    fn no_set_value_panics(key in select(KEYS.to_vec()), value in 0..ODD.len(), more in select(KEYS.to_vec()),
        other in 0..ODD.len()) {
        let sets = [(key.to_owned(), ODD[value].to_owned()), (more.to_owned(), ODD[other].to_owned())];
        for sets in [&sets[..1], &sets[..]] {
            if let Ok(scenario) = read(&shared(), "x.toml", sets) {
                let _ = Plan::new(&scenario);
            }
        }
    }
}

/// The keys that may be set.
const KEYS: [&str; 52] = [
    "sharing",
    "sharing.aq.headroom",
    "sharing.aq.untagged",
    "entity.apps.work_conserving",
    "sharing.aq.idle_after",
    "sharing.aq.limit.fixed.bytes",
    "sharing.rate_limiter.queue_packets",
    "sharing.elastic_switch.period",
    "entity.apps.each",
    "entity.apps.start",
    "entity.apps.request.0.share.weight",
    "entity.apps.request.0.link",
    "entity.vms.hosts",
    "entity.vms.feedback",
    "entity.vms.request.0.share.absolute",
    "seed",
    "transport.udp.rate",
    "transport.udp.class",
    "transport.udp.patience",
    "transport.dcpim.rounds",
    "transport.dcpim.beta",
    "transport.dcpim.short_flow",
    "transport.dcpim.token_window",
    "measure.end",
    "measure.drain",
    "measure.interval",
    "measure.completion",
    "fabric.leaf_spine.racks",
    "fabric.leaf_spine.host_rate",
    "fabric.leaf_spine.spine_rate",
    "fabric.leaf_spine.oversubscription",
    "fabric.leaf_spine.propagation",
    "fabric.leaf_spine.switch_delay",
    "host.mtu",
    "host.header",
    "host.delay",
    "host.clock_offset_max",
    "host.clock_drift_ppb_max",
    "switch.levels",
    "switch.overflow",
    "switch.buffer.per_port.bytes",
    "reroute_delay",
    "transmission_step",
    "failure.0.at",
    "failure.0.until",
    "failure",
    "traffic.web.start",
    "traffic.web.duration",
    "traffic.web.round_to",
    "traffic.web.arrivals.poisson.load",
    "traffic.burst.sizes.constant",
    "traffic.burst.arrivals.periodic.jitter",
];
