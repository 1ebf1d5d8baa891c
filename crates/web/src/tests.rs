use std::path::Path;

use crate::{Level, Results, Session, Step, Wrong, check};

const TINY: &str = include_str!("../../../examples/tiny.toml");
const PLENTY: u64 = 1 << 30;

fn run(text: &str, level: Level, windows: u32) -> Results {
    let mut session = Session::new(text, level, PLENTY, 0).unwrap();
    loop {
        let mut left = windows;
        let step = session.advance(|_| {
            left -= 1;
            left == 0
        });
        if step.unwrap() == Step::Over {
            return session.conclude().unwrap();
        }
    }
}

#[test]
fn a_session_in_steps_gives_the_run() {
    let scenario = scenario::read(TINY, "tiny", &[]).unwrap();
    let whole = sim::run(&scenario, 1, |_| false).unwrap();
    let results = run(TINY, Level::Packet, 5);
    assert!(results.info.contains(&whole.info.digest), "{} in {}", whole.info.digest, results.info);
    assert!(format!("{:?}", results.tables) == format!("{:?}", whole.tables));
    assert_eq!(results.scenario_toml, whole.scenario_toml);
}

/// Unless the scenario says which.
#[test]
fn packets_are_recorded_and_none_is_moved() {
    let mut session = Session::new(TINY, Level::Packet, PLENTY, 100).unwrap();
    while session.advance(|_| false).unwrap() == Step::Going {}
    let results = session.conclude().unwrap();
    let whole = sim::run(&scenario::read(TINY, "tiny", &[]).unwrap(), 1, |_| false).unwrap();
    assert!(results.info.contains(&whole.info.digest), "{} in {}", whole.info.digest, results.info);
    let rows = |results: &Results| results.tables.iter().find(|table| table.name == "packets").unwrap().len();
    assert_eq!(rows(&results), 100);
    let chosen = "measure.packets = { links = [\"switch0-host4\"], rows_max = 7 }\n".to_owned() + TINY;
    let mut session = Session::new(&chosen, Level::Packet, PLENTY, 100).unwrap();
    while session.advance(|_| false).unwrap() == Step::Going {}
    assert_eq!(rows(&session.conclude().unwrap()), 7);
}

#[test]
fn a_session_shows_what_it_has_and_goes_on() {
    let mut session = Session::new(TINY, Level::Packet, PLENTY, 100_000).unwrap();
    let mut left = 20;
    let step = session.advance(|_| {
        left -= 1;
        left == 0
    });
    assert_eq!(step.unwrap(), Step::Going);
    let rows = |results: &Results| results.tables.iter().find(|table| table.name == "packets").unwrap().len();
    let shown = session.so_far().unwrap();
    assert!(rows(&shown) > 0);
    while session.advance(|_| false).unwrap() == Step::Going {}
    let results = session.conclude().unwrap();
    assert!(rows(&results) > rows(&shown));
    assert!(
        results
            .info
            .contains(&sim::run(&scenario::read(TINY, "tiny", &[]).unwrap(), 1, |_| false).unwrap().info.digest)
    );
    assert!(Session::new(TINY, Level::Flow, PLENTY, 0).unwrap().so_far().is_none());
}

#[test]
fn flow_level_goes_through_in_one_step() {
    let scenario = scenario::read(TINY, "tiny", &[]).unwrap();
    let whole = fluid::estimate(&scenario, |_| false).unwrap();
    assert!(format!("{:?}", run(TINY, Level::Flow, u32::MAX).tables) == format!("{:?}", whole.tables));
    let not_begun = Session::new(TINY, Level::Flow, PLENTY, 0).unwrap();
    assert!(not_begun.conclude().is_none());
}

#[test]
fn columns_are_what_the_tables_have() {
    let results = run(TINY, Level::Packet, u32::MAX);
    let described: serde_json::Value = serde_json::from_str(&results.described()).unwrap();
    let flows = described.as_array().unwrap().iter().position(|table| table["name"] == "flows").unwrap();
    assert_eq!(described[flows]["rows"], 8);
    let column = |name: &str| {
        let columns = described[flows]["columns"].as_array().unwrap();
        let place = columns.iter().position(|column| column["name"] == name).unwrap();
        (place, columns[place].clone())
    };
    let (bytes, about) = column("bytes");
    assert_eq!((about["kind"].as_str(), about["unit"].as_str()), (Some("numbers"), Some("B")));
    assert_eq!(results.numbers(flows, bytes), [100_000.0; 8]);
    assert!(results.whole(flows, bytes).is_empty());
    let (status, about) = column("status");
    let index = results.whole(flows, status);
    assert!(index.iter().all(|&index| about["names"][index as usize] == "completed"));
    assert!(results.numbers(99, 0).is_empty() && results.whole(flows, 99).is_empty());
}

#[test]
fn an_error_names_its_line_and_key() {
    let text = TINY.replace("hosts = 8", "hosts = 1");
    let told = check(&text).error.or_else(|| Session::new(&text, Level::Packet, PLENTY, 0).err()).unwrap();
    let line = 1 + text.lines().position(|line| line == "hosts = 1").unwrap();
    assert_eq!((told.line, told.key.as_str()), (Some(line), "fabric.star.hosts"), "{}", told.message);
    let Wrong { line, key, .. } = check("transprt = \"udp\"").error.unwrap();
    assert_eq!((line, key.as_str()), (Some(1), "transprt"));
    assert_eq!(check(TINY).error, None);
    assert_eq!(check(TINY).name, "tiny");
}

#[test]
fn what_will_not_fit_is_refused_before_it_runs() {
    let Err(wrong) = Session::new(TINY, Level::Packet, 1_000, 0) else { panic!("1,000 bytes are enough") };
    assert!(wrong.message.contains("the run will need about"), "{}", wrong.message);
}

/// What the page offers is there.
#[test]
fn every_scene_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes");
    let mut scenes = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "toml") {
            scenario::Source::open(&path).unwrap().read().unwrap_or_else(|error| panic!("{error}"));
            scenes += 1;
        }
    }
    assert!(scenes >= 6, "{scenes} scenes");
}
