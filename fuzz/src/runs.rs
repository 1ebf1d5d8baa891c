//! Whole scenarios: what is read becomes a plan, and the plan a run of some thousand events, in one part and in three.

use run::Plan;
use scenario::{FastForward, Scenario};
use sim::{Execution, Steps};
use units::Duration;

use super::{text, told};

/// After so many events, or windows of events, a run ends.
const EVENTS: u64 = 10_000;
/// Messages of a class.
const FLOWS: u64 = 50;
/// The largest number of a fabric, so that it has some hundred hosts at most, and of a job.
const NUMBER_MAX: [(&str, i64); 2] = [("fabric", 8), ("job", 16)];
/// All that happens within the least delay between two nodes is one window.
const LOOKAHEAD_MAX: Duration = Duration::from_us(10);
/// Keys that name files, and one that cuts messages into as many as it likes.
const LEFT_OUT: [&str; 6] = ["path", "module", "groups", "transports", "capture", "chunk"];

/// A scenario that can be planned runs, and alike however it is cut; and what always holds, holds at any time.
pub fn scenario(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes).filter(|text| !LEFT_OUT.iter().any(|word| text.contains(word))) else { return false };
    let Ok(mut read) = scenario::read(text, "fuzz.toml", &[]) else { return false };
    if !is_small(&read) {
        return false;
    }
    read.traffic.iter_mut().for_each(|class| class.flows = Some(class.flows.unwrap_or(FLOWS).min(FLOWS)));
    read.fast_forward = FastForward::Off;
    read.measure.alone = false;
    let plan = || Plan::new(&read);
    let (whole, cut) = match (plan(), plan()) {
        (Ok(whole), Ok(cut)) => (whole, cut),
        (Err(problem), _) | (_, Err(problem)) => return told(&problem),
    };
    if whole.lookahead > LOOKAHEAD_MAX {
        return false;
    }
    let (mut steps, mut windows) = (Steps::new(whole), 0);
    while windows < EVENTS && steps.events() < EVENTS {
        windows += 1;
        if steps.advance(|_| true) {
            break;
        }
    }
    let one = steps.conclude();
    let mut left = windows;
    let three = sim::run_plan(&cut, Execution { threads: 1, parts: Some(3) }, |_| {
        left -= 1;
        left == 0
    });
    assert_eq!(one.info.digest, three.info.digest);
    for finding in one.info.audit.iter().chain(&three.info.audit) {
        assert!(finding.ok || MAY_FAIL.contains(&finding.name), "{finding:?}");
    }
    true
}

/// What a scenario may bring about.
const MAY_FAIL: [&str; 1] = ["no deadlock"];

fn is_small(read: &Scenario) -> bool {
    let written: toml::Table = toml::from_str(&read.to_toml()).expect("what is written can be read");
    let fits = |(key, most): &(&str, i64)| written.get(*key).is_none_or(|value| greatest(value) <= *most);
    NUMBER_MAX.iter().all(fits)
}

/// The greatest whole number in a value.
fn greatest(value: &toml::Value) -> i64 {
    match value {
        toml::Value::Integer(number) => *number,
        toml::Value::Array(values) => values.iter().map(greatest).max().unwrap_or(0),
        toml::Value::Table(table) => table.values().map(greatest).max().unwrap_or(0),
        _ => 0,
    }
}
