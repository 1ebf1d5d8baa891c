//! The cost of an AQ: `cargo run --release -p clearway-sharing --example aq_table`.
//!
//! For 1, 1,000 and 1,000,000 AQs in one table: bytes an AQ, and time a packet. Packets of 1,500 bytes come 120 ns
//! apart (100 Gbps) and belong to AQs drawn uniformly, the worst for a cache; each AQ has its part of 100 Gbps and a
//! step ECN threshold. A packet's time is that of look-up, A-Gap, verdict and write-back, less that of the same loop
//! without a table, with which it may overlap; the best of five runs counts, since a machine may be shared. "step" is
//! the A-Gap alone, on one unpacked AQ. Memory is what rows and policies occupy, and beside it by how much the process
//! grew.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use clearway_sharing::aq::{AqId, AqRate, Gap, Policy, Table, Verdict};
use contract::CongestionSignal;
use node::Marking;
use units::{Bytes, Rate, Stream, Time};

const PACKETS: u32 = 4_000_000;
const PACKET_BYTES: u16 = 1_500;
const RUNS: usize = 5;

fn main() {
    let step = Marking::Step { threshold: Bytes(100_000) };
    let policy = Policy::new(Bytes(1_000_000), CongestionSignal::Ecn(step)).expect("a limit that a row holds");
    let rate =
        |entities: u32| AqRate::nearest(Rate::from_bps(100_000_000_000 / u64::from(entities))).expect("in range");

    let (whole, mut gap) = (black_box(rate(1)), Gap::new(rate(1), Time::ZERO));
    let step = time(1, |now, _, random| gap.arrive(whole, &policy, now, PACKET_BYTES, random));
    println!("step: {step:.1} ns a packet");
    println!("{:>9}  {:>9}  {:>11}  {:>11}", "AQs", "ns/packet", "bytes/AQ", "grown by/AQ");
    for entities in [1, 1_000, 1_000_000] {
        let before = resident_bytes();
        let mut table = Table::for_entities(entities as usize);
        for tag in 1..=entities {
            let id = AqId::from_tag(tag).expect("not 0");
            table.deploy(Time::ZERO, id, rate(entities), policy).expect("one policy");
        }
        let grown = resident_bytes().zip(before).map(|(now, before)| now.saturating_sub(before));
        let each = |bytes: u64| bytes as f64 / f64::from(entities);
        let ns = time(entities, |now, id, random| table.arrive(now, id, PACKET_BYTES, random));
        let grown = grown.filter(|_| entities >= 1_000_000).map_or("-".into(), |bytes| format!("{:.2}", each(bytes)));
        println!("{entities:>9}  {ns:>9.1}  {:>11.2}  {grown:>11}", each(table.memory().get()));
    }
}

/// Nanoseconds that `packet` takes beyond the loop that calls it.
fn time(entities: u32, mut packet: impl FnMut(Time, AqId, &mut Stream) -> Verdict) -> f64 {
    let mut start = Time::ZERO;
    let mut best = |packet: &mut dyn FnMut(&mut Time, &mut Stream)| {
        let run = |_| {
            let mut random = Stream::new(1, 0, "aq_table");
            let begun = Instant::now();
            packet(&mut start, &mut random);
            begun.elapsed().as_secs_f64() * 1e9 / f64::from(PACKETS)
        };
        (0..RUNS).map(run).fold(f64::INFINITY, f64::min)
    };
    let next = |now: &mut Time, random: &mut Stream| {
        *now = Time::from_ps(now.ps() + 120_000);
        AqId::from_tag(random.below(u64::from(entities)) as u32 + 1).expect("not 0")
    };
    let empty = best(&mut |now, random| {
        for _ in 0..PACKETS {
            black_box(next(now, random));
        }
    });
    let full = best(&mut |now, random| {
        for _ in 0..PACKETS {
            let id = next(now, random);
            black_box(packet(*now, id, random));
        }
    });
    full - empty
}

/// Where the system tells.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}
