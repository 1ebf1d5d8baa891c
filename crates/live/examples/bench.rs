//! The micro-benchmarks of `clearway live --bench` without Python: `cargo run --release -p clearway-live --example
//! bench`.

use std::os::fd::AsFd;
use std::process::Command;

/// Starts this program again, to take part in a run of two processes.
fn part() -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this is a program"));
    command.arg("part");
    command
}

fn main() {
    if std::env::args().nth(1).is_some_and(|argument| argument == "part") {
        let socket = std::io::stdin().as_fd().try_clone_to_owned().expect("it was given one");
        return clearway_live::take_part(socket).expect("the first process is there");
    }
    match clearway_live::bench::measure(Some(part), || false) {
        Ok(report) => println!("{report:#?}"),
        Err(error) => eprintln!("{error}"),
    }
}
