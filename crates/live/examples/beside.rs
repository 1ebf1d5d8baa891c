//! A scenario on the real clock beside the simulator: `cargo run -p clearway-live --example beside --
//! examples/live.toml`.

use std::process::ExitCode;

use run::{Data, Table};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("which scenario? beside SCENARIO.toml [KEY=VALUE]...");
        return ExitCode::from(2);
    };
    match beside(&path, std::env::args().skip(2)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Whether both runs and their audits succeeded.
fn beside(path: &str, sets: impl Iterator<Item = String>) -> Result<bool, Box<dyn std::error::Error>> {
    let sets: Vec<(String, String)> =
        sets.filter_map(|set| set.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()))).collect();
    let scenario = scenario::read(&std::fs::read_to_string(path)?, path, &sets)?;
    let simulated = sim::run(&scenario, 1, |_| false)?;
    let lived = clearway_live::run(&scenario, |_| false)?;

    println!("{:>24} {:>14} {:>14}", "", "simulated", "live");
    let row = |name: &str, value: &dyn Fn(&[Table]) -> String| {
        println!("{name:>24} {:>14} {:>14}", value(&simulated.tables), value(&lived.tables));
    };
    row("flows completed", &|tables| fct(tables).len().to_string());
    row("mean FCT, us", &|tables| micros(mean(&fct(tables))));
    row("median FCT, us", &|tables| micros(quantile(&fct(tables), 0.5)));
    row("99th percentile FCT, us", &|tables| micros(quantile(&fct(tables), 0.99)));
    row("mean slowdown", &|tables| format!("{:.4}", mean(&column(tables, "flows", "slowdown"))));
    let (there, here) = (all(&simulated.tables, "flows", "fct_ps"), all(&lived.tables, "flows", "fct_ps"));
    let apart = there.iter().zip(&here).map(|(there, here)| (here - there).abs()).filter(|apart| !apart.is_nan());
    let apart: Vec<f64> = apart.collect();
    println!(
        "\nFCT of a flow, live against simulated: mean {} us apart, at most {} us",
        micros(mean(&apart)),
        micros(quantile(&apart, 1.0))
    );
    let late = column(&lived.tables, "flows", "late_ps");
    println!("told late: mean {} us, at most {} us", micros(mean(&late)), micros(quantile(&late, 1.0)));
    for kind in 0..3 {
        let of = |name| column(&lived.tables, "lateness", name)[kind];
        let [events, median, p99, p999, max] = ["events", "median_ps", "p99_ps", "p999_ps", "max_ps"].map(of);
        let [median, p99, p999, max] = [median, p99, p999, max].map(micros);
        println!(
            "{:>12}: {events} events, late by {median} us (median), {p99} (99%), {p999} (99.9%), {max} (most)",
            ["arrival", "transmission", "deadline"][kind]
        );
    }
    println!(
        "\nlive: {} frames a second, {}",
        lived.info.packet_hops as f64 / (lived.info.end_ps as f64 * 1e-12),
        lived.info.ended
    );
    for finding in simulated.info.audit.iter().chain(&lived.info.audit) {
        println!("{} {}: {}", if finding.ok { "ok " } else { "NOT" }, finding.name, finding.detail);
    }
    Ok(simulated.info.audit.iter().chain(&lived.info.audit).all(|finding| finding.ok))
}

fn fct(tables: &[Table]) -> Vec<f64> {
    column(tables, "flows", "fct_ps")
}

/// A column's numbers, NaN for those that there are not.
fn all(tables: &[Table], table: &str, name: &str) -> Vec<f64> {
    let number = |&value: &u64| if value == u64::MAX { f64::NAN } else { value as f64 };
    let column = tables.iter().find(|known| known.name == table).and_then(|table| table.column(name));
    match column.map(|column| &column.data) {
        Some(Data::U64(values) | Data::OptU64(values)) => values.iter().map(number).collect(),
        Some(Data::F64(values)) => values.clone(),
        _ => Vec::new(),
    }
}

/// A column's numbers, without those that there are not.
fn column(tables: &[Table], table: &str, name: &str) -> Vec<f64> {
    all(tables, table, name).into_iter().filter(|value| !value.is_nan()).collect()
}

fn micros(ps: f64) -> String {
    format!("{:.1}", ps * 1e-6)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}
