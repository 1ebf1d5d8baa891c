//! Ctrl-C stops a run at a point that does not depend on the machine, and keeps what it has.

use clearway_sim::{RunResult, run};

use crate::{NONE, check, names, of_flows, scenario, table};

const SCENE: &str = r#"
    transport = "udp"
    fabric.leaf_spine = { racks = 4, hosts_per_rack = 4, spines = 2 }
    measure.interval = "500ns"
    [[traffic]]
    sizes = { constant = "30KB" }
    arrivals = { poisson = { load = 0.9 } }
    flows = 300
"#;

fn interrupted(threads: usize, after: u64) -> RunResult {
    let mut windows = 0;
    let result = run(&scenario(SCENE), threads, |_| {
        windows += 1;
        windows == after
    });
    result.unwrap()
}

#[test]
fn an_interrupted_run_ends_with_its_window() {
    for after in [3, 30] {
        let alone = interrupted(1, after);
        assert_eq!((alone.info.ended, alone.info.windows), ("interrupted", after));
        let together = interrupted(2, after);
        assert_eq!(together.info.threads, 2);
        assert_eq!(together.info.digest, alone.info.digest);
        assert_eq!(together.info.end_ps, alone.info.end_ps);
        assert!(format!("{:?}", together.tables) == format!("{:?}", alone.tables));
    }
}

#[test]
fn what_it_has_is_consistent() {
    let result = interrupted(2, 30);
    check(&result);
    let (flows, end) = (table(&result, "flows"), result.info.end_ps);
    assert_eq!(flows.len(), 300);
    let (statuses, reasons) = (names(flows, "status"), names(flows, "reason"));
    for flow in 0..300 {
        let time = |column| Some(of_flows(&result, column)[flow]).filter(|&time| time != NONE);
        let (start, delivered, completed) = (time("start_ps"), time("delivered_ps"), time("completed_ps"));
        assert!([start, delivered, completed].into_iter().flatten().all(|time| time < end));
        let said = match (start, delivered, completed) {
            (None, ..) => ("unfinished", "not started"),
            (_, None, _) => ("unfinished", "not delivered"),
            (_, _, None) => ("delivered", "not acknowledged"),
            _ => ("completed", ""),
        };
        assert_eq!((statuses[flow], reasons[flow]), said);
    }
    assert!(statuses.contains(&"unfinished") && statuses.contains(&"completed"), "cut in the middle");
    assert_eq!(result.info.flows_completed, statuses.iter().filter(|status| **status == "completed").count() as u64);
    assert!(crate::column(table(&result, "queues"), "time_ps").iter().all(|&time| time < end));
}

#[test]
fn a_run_that_nobody_interrupts_reaches_its_goal() {
    let mut last = None;
    let result = run(&scenario(SCENE), 2, |progress| {
        assert!(progress.flows_done <= progress.flows && last.is_none_or(|last| last <= progress.now));
        last = Some(progress.now);
        false
    });
    let result = result.unwrap();
    assert_eq!(result.info.ended, "goal");
    assert_eq!(last.unwrap().ps(), result.info.end_ps);
    check(&result);
}
