use std::panic::{AssertUnwindSafe, catch_unwind};

use catalogue::{LinkControl, Transport};
use run::Plan;
use units::saved::Tree;
use units::{FlowId, Stream, Time};

use super::{CONTENT, Checkpoint, Course, Moments, checksum};
use crate::{Execution, RunResult, run_on};

/// An incast into a hotspot, and traffic at a load of 0.8, from `start` on. `more` comes after all.
pub(crate) fn text(start: &str, settings: &str, more: &str) -> String {
    format!(
        r#"
        {settings}
        fabric.leaf_spine = {{ racks = 3, hosts_per_rack = 4, spines = 2, spine_rate = "100Gbps" }}
        [[traffic]]
        name = "incast"
        start = "{start}"
        sizes = {{ constant = "60KB" }}
        arrivals = "all_at_once"
        pattern = {{ incast = {{ degree = 7 }} }}
        receivers = "0"
        flows = 7
        [[traffic]]
        name = "mix"
        start = "{start}"
        sizes = "websearch"
        arrivals = {{ poisson = {{ load = 0.8 }} }}
        flows = 20
        {more}
        "#
    )
}

fn scene(settings: &str) -> Plan {
    let text = text("0s", settings, "");
    let scenario = scenario::read(&text, "checkpoint", &[]).unwrap_or_else(|why| panic!("{settings}: {why}"));
    Plan::new(&scenario).unwrap_or_else(|why| panic!("{settings}: {why}"))
}

/// A run with its checkpoints.
fn run(plan: &Plan, threads: usize, from: Option<&Checkpoint>, keep: Option<Moments>) -> (RunResult, Vec<Vec<u8>>) {
    let mut kept = Vec::new();
    let mut keeps = |_: Time, bytes: &[u8]| {
        kept.push(bytes.to_vec());
        Ok(())
    };
    let course = Course::new(from, keep.map(|moments| (moments, &mut keeps as super::Keep<'_>)));
    let execution = Execution { threads, parts: Some(threads) };
    let result = run_on(plan, execution, None, course, |_| false).unwrap_or_else(|why| panic!("{why}"));
    assert!(!result.info.warnings.iter().any(|of| of.contains("checkpoint")), "{:?}", result.info.warnings);
    (result, kept)
}

/// All of a result, in words.
fn all(result: &RunResult) -> String {
    format!("{:?} {:?}", result.info, result.tables)
}

/// All of them, so that one failure hides no other.
fn check_each(all: impl IntoIterator<Item = (String, String, usize, u64)>) {
    let failed = |(name, settings, threads, seed): (String, String, usize, u64)| {
        let checked = catch_unwind(|| check(&name, &settings, threads, seed));
        let why = |why: Box<dyn std::any::Any + Send>| why.downcast_ref::<String>().cloned().unwrap_or_default();
        checked.err().map(|of| format!("{name}: {}", why(of)))
    };
    let failed: Vec<String> = all.into_iter().filter_map(failed).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A run that goes on from its checkpoints is the run, on this many threads.
fn check(name: &str, settings: &str, threads: usize, seed: u64) {
    let plan = scene(settings);
    let (whole, _) = run(&plan, threads, None, None);
    let end = whole.info.end_ps;
    let mut random = Stream::new(seed, 0, name);
    let at = 1 + random.below(end - 1);
    let moments = [Moments::At(Time::from_ps(at)), Moments::Every(units::Duration::from_ps(1 + at / 2))];
    let (kept_whole, kept) = run(&plan, threads, None, Some(moments[seed as usize % 2]));
    assert_eq!(all(&whole), all(&kept_whole), "{name}: checkpoints change a run");
    assert!(!kept.is_empty(), "{name}: no checkpoint at {at} of {end}");
    for bytes in kept {
        let checkpoint = Checkpoint::read(bytes).expect("it was just written");
        let resumed = catch_unwind(AssertUnwindSafe(|| run(&plan, threads, Some(&checkpoint), None).0));
        let resumed = resumed.unwrap_or_else(|_| panic!("{name}, {threads} threads, at {}", checkpoint.at));
        let same = all(&resumed) == all(&whole);
        assert!(
            same,
            "{name}, {threads} threads: goes on otherwise from {} of {end}: {} for {}",
            checkpoint.at, resumed.info.digest, whole.info.digest
        );
    }
}

/// Nothing; samples; what happens to packets and flows, row by row.
const MEASURES: [&str; 3] =
    ["", "measure.interval = \"5us\"", "measure = { packets = {}, flows = {}, interval = \"9us\", end = \"150us\" }"];

#[test]
fn every_transport_goes_on() {
    let names = Transport::NAMES.iter().filter(|name| **name != "custom");
    check_each(names.enumerate().flat_map(|(number, name)| {
        let settings = format!("transport = \"{name}\"\n{}", MEASURES[number % 3]);
        [1, 2].map(|threads| ((*name).to_owned(), settings.clone(), threads, (number + threads) as u64))
    }));
}

#[test]
fn every_flow_control_goes_on() {
    check_each(LinkControl::NAMES.iter().enumerate().map(|(number, name)| {
        let settings = format!("transport = \"rdma\"\nflow_control = \"{name}\"\n{}", MEASURES[number % 3]);
        ((*name).to_owned(), settings, 1 + number % 2, number as u64)
    }));
}

/// Routes, rates and noise that have changed before the checkpoint, news under way, packets that are sent again.
#[test]
fn what_has_failed_stays_failed() {
    let link = r#"link = ["leaf0", "spine0"], at = "20us""#;
    let faults = [
        format!(r#"failure = [{{ {link}, loss = 0.01, bit_error_rate = 1e-7, one_way = true, until = "2ms" }}]"#),
        format!(r#"failure = [{{ {link}, rate = "10Gbps" }}]"#),
        format!(
            r#"reroute_delay = "10us"
            failure = [{{ {link}, flap = {{ down = "20us", every = "100us" }} }}]"#
        ),
        format!(
            r#"reroute_delay = "10us"
            reroute_per_hop = "50us"
            failure = [{{ {link} }}]"#
        ),
        "link.llr = {}".to_owned(),
    ];
    let mut all = Vec::new();
    for (number, fault) in (0..).zip(faults) {
        for transport in ["newreno", "r2c2", "harmony", "dcpim"] {
            let text = format!("transport = \"{transport}\"\n{fault}\n");
            // Not every transport allows every fault.
            if plan_of(&text).is_some() {
                all.push((format!("{transport}, {fault}"), text, 1 + number % 2, number as u64));
            }
        }
    }
    assert!(all.len() > 8, "{} scenarios", all.len());
    check_each(all);
}

fn plan_of(settings: &str) -> Option<Plan> {
    catch_unwind(|| scene(settings)).ok()
}

fn kept() -> (Plan, Vec<u8>) {
    let plan = scene("transport = \"dcpim\"");
    let (_, kept) = run(&plan, 1, None, Some(Moments::At(Time::from_ps(30_000_000))));
    let bytes = kept.into_iter().next().expect("it was due");
    (plan, bytes)
}

#[test]
fn a_damaged_file_and_one_of_another_build_are_refused() {
    let (plan, bytes) = kept();
    let why = |bytes: Vec<u8>| Checkpoint::read(bytes).expect_err("it is refused").message;
    let mut random = Stream::new(7, 0, "damage");
    for _ in 0..200 {
        let mut damaged = bytes.clone();
        let at = random.below(bytes.len() as u64) as usize;
        damaged[at] ^= 1 << random.below(8);
        let said = why(damaged);
        assert!(said.contains("is damaged") || said.contains("no checkpoint"), "{said}");
        assert!(why(bytes[..at].to_vec()).len() < 120);
    }
    let mut other = bytes.clone();
    other[CONTENT + 5] ^= 1;
    let sum = checksum(&other[CONTENT..]).to_le_bytes();
    other[8..CONTENT].copy_from_slice(&sum);
    assert!(why(other).starts_with("another build of Clearway"));
    let checkpoint = Checkpoint::read(bytes).expect("it is whole");
    let other = scene("transport = \"dcpim\"\nseed = 2");
    let said = checkpoint.check(&other).expect_err("the seed differs").message;
    assert!(said.contains("seed = 2") && checkpoint.check(&plan).is_ok(), "{said}");
}

/// A file that was forged, with the right checksum, is an error or another state, and takes no memory.
#[test]
fn a_file_that_lies_is_an_error_or_a_run() {
    let (plan, bytes) = kept();
    let mut random = Stream::new(8, 0, "lies");
    let state = Checkpoint::read(bytes.clone()).expect("it is whole").state;
    for _ in 0..60 {
        let mut lies = bytes.clone();
        let at = state + random.below((bytes.len() - state) as u64) as usize;
        lies[at] = random.bits() as u8;
        let sum = checksum(&lies[CONTENT..]).to_le_bytes();
        lies[8..CONTENT].copy_from_slice(&sum);
        let checkpoint = Checkpoint::read(lies).expect("its head is right");
        let _ = catch_unwind(AssertUnwindSafe(|| checkpoint.inspect(&plan, Some("host0"), None).map(|_| ())));
    }
}

#[test]
fn a_person_sees_nodes_ports_and_flows() {
    let (plan, bytes) = kept();
    let checkpoint = Checkpoint::read(bytes).expect("it is whole");
    let see = |what: Option<&str>, flow: Option<u32>| {
        checkpoint.inspect(&plan, what, flow.map(FlowId)).unwrap_or_else(|why| panic!("{why}"))
    };
    assert_eq!(see(None, None).find("flows"), Some(&Tree::Number(27)));
    // dcPIM's own words.
    let host = see(Some("host0"), None);
    for word in ["receiver", "stage", "received_packets"] {
        assert!(host.find(word).is_some(), "{word} of {host:?}");
    }
    assert!(see(Some("leaf0:4"), None).find("leaf0:4").is_some());
    let why = checkpoint.inspect(&plan, Some("leaf9"), None).expect_err("there is none").message;
    assert!(why.contains("leaf9"), "{why}");
    assert!(checkpoint.inspect(&plan, None, Some(FlowId(99))).is_err());
    assert!(see(None, Some(3)).find("host0").is_some());
}

#[test]
fn a_time_is_said_in_two_ways() {
    assert_eq!("2ms".parse(), Ok(Moments::At(Time::from_ps(2_000_000_000))));
    assert_eq!("every 10us".parse(), Ok(Moments::Every(units::Duration::from_ps(10_000_000))));
    for wrong in ["", "every", "0s", "every 0s", "often"] {
        assert!(wrong.parse::<Moments>().is_err(), "{wrong}");
    }
    let every = Moments::Every(units::Duration::from_ps(10));
    assert_eq!([None, Some(10), Some(11)].map(|at| every.after(at.map(Time::from_ps)).ps()), [10, 20, 20]);
}
