//! The micro-benchmarks of `clearway live --bench` without Python: `cargo run --release -p clearway-live --example
//! bench`.

fn main() {
    match clearway_live::bench::measure(|| false) {
        Ok(report) => println!("{report:#?}"),
        Err(error) => eprintln!("{error}"),
    }
}
