//! A scenario with attached hosts until `measure.end`, with what went through its devices: `cargo run --release
//! -p clearway-live --example attach -- SCENARIO.toml [KEY=VALUE]...`.

use std::process::ExitCode;

use run::Data;

fn main() -> ExitCode {
    match attach(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn attach(mut given: impl Iterator<Item = String>) -> Result<(), Box<dyn std::error::Error>> {
    let path = given.next().ok_or("which scenario? attach SCENARIO.toml [KEY=VALUE]...")?;
    let sets: Vec<(String, String)> =
        given.filter_map(|set| set.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()))).collect();
    let scenario = scenario::read(&std::fs::read_to_string(&path)?, &path, &sets)?;
    let result = clearway_live::run(&scenario, |_| false)?;
    for table in result.tables.iter().filter(|table| ["attached", "refused"].contains(&table.name)) {
        for column in &table.columns {
            match &column.data {
                Data::U64(values) => println!("{:>20} {values:?}", column.name),
                Data::Names { names, .. } => println!("{:>20} {names:?}", column.name),
                _ => {}
            }
        }
    }
    println!("{:#?}", result.info);
    Ok(())
}
