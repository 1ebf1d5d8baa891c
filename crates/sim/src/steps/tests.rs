use run::{Data, Plan};
use scenario::Scenario;

use crate::{Execution, RunResult, Steps, run_plan};

/// An incast in traffic at load 0.7, with something for each probe to see.
fn scenario(measure: &str) -> Scenario {
    let text = format!(
        r#"
        transport = "dcpim"
        flow_control = "pfc"
        {measure}
        fabric.leaf_spine = {{ racks = 3, hosts_per_rack = 4, spines = 2, spine_rate = "100Gbps" }}
        [[traffic]]
        name = "web"
        sizes = "websearch"
        arrivals = {{ poisson = {{ load = 0.7 }} }}
        flows = 40
        "#
    );
    scenario::read(&text, "steps", &[]).unwrap()
}

/// Steps of so many windows.
fn stepped(scenario: &Scenario, windows: u64) -> RunResult {
    let mut steps = Steps::new(Plan::new(scenario).unwrap());
    loop {
        let mut left = windows;
        let over = steps.advance(|_| {
            left -= 1;
            left == 0
        });
        if over {
            return steps.conclude();
        }
    }
}

#[test]
fn a_run_in_steps_is_the_run() {
    for measure in ["", "measure = { packets = {}, flows = {}, interval = \"5us\" }", "measure.end = \"100us\""] {
        let scenario = scenario(measure);
        let whole = run_plan(&Plan::new(&scenario).unwrap(), Execution { threads: 1, parts: Some(1) }, |_| false);
        assert!(whole.info.windows > 50, "{} windows", whole.info.windows);
        for windows in [1, 7, u64::MAX] {
            let run = stepped(&scenario, windows);
            assert_eq!(format!("{:?}", run.info), format!("{:?}", whole.info), "steps of {windows} windows, {measure}");
            // In words, in which NaN is NaN.
            let same = format!("{:?}", run.tables) == format!("{:?}", whole.tables);
            assert!(same, "tables in steps of {windows} windows, {measure}");
        }
    }
}

#[test]
fn a_run_that_is_left_has_what_it_has_so_far() {
    let scenario = scenario("");
    let mut steps = Steps::new(Plan::new(&scenario).unwrap());
    let mut seen = 0;
    assert!(!steps.advance(|progress| {
        seen = progress.now.ps();
        seen > 50_000_000
    }));
    let RunResult { info, .. } = steps.conclude();
    assert_eq!((info.ended, info.end_ps), ("interrupted", seen));
    assert!(info.audit.iter().all(|finding| finding.ok), "{:?}", info.audit);
}

/// What is shown while a run goes on is the beginning of what it gives, and moves nothing.
#[test]
fn a_run_that_is_looked_at_goes_on_as_it_was() {
    let scenario = scenario("measure = { packets = {}, interval = \"5us\" }");
    let whole = run_plan(&Plan::new(&scenario).unwrap(), Execution { threads: 1, parts: Some(1) }, |_| false);
    let mut steps = Steps::new(Plan::new(&scenario).unwrap());
    let (mut shown, mut before) = (0, 0);
    loop {
        let mut left = whole.info.windows / 5;
        let over = steps.advance(|_| {
            left -= 1;
            left == 0
        });
        if over {
            break;
        }
        let now = steps.so_far();
        assert_eq!(now.info.ended, "interrupted");
        for (table, last) in now.tables.iter().zip(&whole.tables).filter(|(table, _)| table.name == "packets") {
            assert!(table.len() > before && table.len() <= last.len());
            before = table.len();
            for (column, of) in table.columns.iter().zip(&last.columns).filter(|(column, _)| column.name == "time_ps") {
                let (Data::U64(some), Data::U64(every)) = (&column.data, &of.data) else { panic!("{column:?}") };
                assert_eq!(some[..], every[..some.len()]);
            }
            shown += 1;
        }
    }
    assert!(shown >= 3, "{shown} times");
    let run = steps.conclude();
    assert_eq!(format!("{:?}", run.info), format!("{:?}", whole.info));
    assert!(format!("{:?}", run.tables) == format!("{:?}", whole.tables));
}
