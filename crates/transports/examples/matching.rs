//! How large PIM's matchings are after a few rounds, beside what dcPIM's Theorem 1 guarantees, from a hundred hosts to
//! a million at an average degree of five: `cargo run --release -p clearway-transports --example matching`.

use clearway_transports::dcpim::bounds::study;

fn main() {
    println!(
        "{:>9} {:>7} {:>6} {:>8} {:>8} {:>8} {:>10}",
        "hosts", "degree", "rounds", "matched", "bound", "PIM", "in rounds"
    );
    for hosts in [100, 1_000, 10_000, 100_000, 1_000_000] {
        for row in study(&[hosts], 5.0, 6, 1) {
            println!(
                "{:>9} {:>7.3} {:>6} {:>7.2}% {:>7.2}% {:>7.2}% {:>10.1}",
                row.hosts,
                row.degree,
                row.rounds,
                row.matched * 100.0,
                row.bound * 100.0,
                row.maximal * 100.0,
                row.rounds_to_maximal
            );
        }
    }
}
