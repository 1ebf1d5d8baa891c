//! The cost of a packet: the program run by the kernel again and again on one packet (`BPF_PROG_TEST_RUN`).

use aya::programs::{TestRun, TestRunOptions};
use serde::Serialize;
use units::{Bytes, Rate};

use super::kernel::{self, Found, Maps, PORTS, Settings};
use super::place::{Held, Rooms};
use crate::matching::{Kind, Matches};
use crate::word::Word;

/// How often a packet is run for one measurement, and the number of measurements of which the least counts.
const REPEAT: u32 = 1_000_000;
const TRIES: u32 = 5;

/// The cost of one kind of packet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// The case that was run.
    pub what: String,
    /// Nanoseconds a packet.
    pub ns: u64,
    /// Memory of entities and AQs, in MB.
    pub mb: f64,
}

/// Costs of packets without an AQ, and with one of this many, drawn at random.
pub fn measure() -> Result<Vec<Cost>, String> {
    let mut costs = vec![one("no tenant", 0, 0, Word::OPEN)?];
    let word = Word::new(Rate::from_bps(25_000_000_000), Bytes(16_000_000), None);
    costs.push(one("a tenant told by port", 0, Kind::Port.bit(), word)?);
    for (what, entities) in [("1 AQ", 1), ("1,000 AQs in turn", 1_000), ("1,000,000 AQs in turn", 1_000_000)] {
        costs.push(one(what, entities, 0, word)?);
    }
    Ok(costs)
}

/// The cost of a packet of one of `entities` at random; with 0, of the packet's own entity.
fn one(what: &str, entities: u32, kinds: u32, word: Word) -> Result<Cost, String> {
    let count = entities.max(2);
    let rooms = Rooms { configs: count, states: count, keys: 1, prefixes: 1, ports: PORTS, fragments: 16 };
    let settings =
        Settings { drop_code: 2, at_ingress: false, link_bytes: 14, kinds, test_clock: false, test_entities: entities };
    let mut ebpf = kernel::load(settings, rooms)?;
    let mut maps = Maps::of(&mut ebpf)?;
    for entity in 0..count {
        maps.configure(&Held { name: String::new(), entity, first: entity, flows: 1 }, word)?;
    }
    if kinds != 0 {
        let matches = Matches { ports: vec!["5201".parse()?], ..Matches::default() };
        maps.tell(&Found::new(&matches, true)?, 1)?;
    }
    let packet = packet();
    let program = kernel::program(&mut ebpf)?;
    let mut least = u64::MAX;
    for _ in 0..TRIES {
        let options = TestRunOptions { data_in: Some(&packet), repeat: REPEAT, ..TestRunOptions::new() };
        let done = program.test_run(options).map_err(|error| kernel::chain(&error))?;
        least = least.min(done.duration.as_nanos() as u64);
    }
    Ok(Cost { what: what.to_owned(), ns: least, mb: f64::from(count) * (32.0 + 64.0) / 1e6 })
}

/// A full packet of TCP to port 5201.
fn packet() -> Vec<u8> {
    let mut data = vec![0; 1_514];
    data[12..14].copy_from_slice(&[8, 0]);
    data[14..24].copy_from_slice(&[0x45, 0, 5, 220, 0, 0, 0, 0, 64, 6]);
    data[36..38].copy_from_slice(&5_201_u16.to_be_bytes());
    data[46] = 5 << 4;
    data
}
