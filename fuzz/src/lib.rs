//! Every reader of what comes from outside, as a function of bytes, with what must hold whatever the bytes are.
//!
//! Beyond readers, `runs` runs what has been read.
//!
//! A reader refuses its input or gives something sound: it never panics, what it gives can be used, and what can be
//! written is read back alike. `make fuzz` lets libFuzzer look for bytes that break this, and `tests/seeds.rs` tries
//! the files in `seeds/` and what follows from them by small changes. A new reader is a line of [`TARGETS`] and a
//! folder of seeds. Whole commands on hostile input are tried by `tests/python/test_hostile.py`.

mod jobs;
mod modules;
mod runs;

use std::fmt::Display;

use catalogue::{LinkControl, Sharing, Transport};
use fabric::{Fabric, Failures, FileFormat, FileSpec, Quotient, Routes};
use link_control::{pfc, pyrrha};
use live::attach::ip::{self, OFFLOAD_BYTES, Packets};
use live::attach::neighbours::{self, ETHERNET_BYTES, Ethernet};
use live::frame::{self, Codec};
use live::maze;
use node::wire::{self, Writer};
use node::{Header, Packet};
use sharing::limiter;
use transports::r2c2;
use units::{Duration, FlowId, HostId};
use workload::{
    CsvTrace, HpccTrace, HtsimTrace, ParquetTrace, Probability, SizeUnit, StartUnit, Table, Trace, TraceFile,
};

/// Reads bytes, holds the result to what must hold, and says whether they were accepted.
pub type Reader = fn(&[u8]) -> bool;

/// All readers. The name of each is also that of its folder of seeds.
pub const TARGETS: &[(&str, Reader)] = &[
    ("scenario", scenario),
    ("trace_csv", trace_csv),
    ("trace_hpcc", trace_hpcc),
    ("trace_htsim", trace_htsim),
    ("trace_parquet", trace_parquet),
    ("job_goal", jobs::goal),
    ("job_chakra", jobs::chakra),
    ("job_simai", jobs::simai),
    ("job_htsim", jobs::htsim),
    ("job_model", jobs::model),
    ("topology_graph", topology_graph),
    ("topology_hpcc", topology_hpcc),
    ("topology_htsim", topology_htsim),
    ("sizes", sizes),
    ("header", header),
    ("frame", frame),
    ("ring", ring),
    ("trunk", trunk),
    ("client", client),
    ("between", maze::is_note),
    ("tenants", tenants),
    ("device", device),
    ("module", modules::module),
    ("run", runs::scenario),
    ("agreement", live::machines::agree_on_any),
];

/// Errors quote what was given, and a broken file may be one line of a gigabyte.
const SAID_MAX: usize = 2_000;

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// An error says something, and not too much.
fn told(error: &impl Display) -> bool {
    let said = error.to_string();
    assert!(!said.is_empty() && said.len() < SAID_MAX, "{} bytes: {said:.300}", said.len());
    false
}

/// A scenario, as it is and with its first line set over the rest of it.
fn scenario(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    scenario::outside(text, &[]);
    if let Some((first, rest)) = text.split_once('\n')
        && let Some((key, value)) = first.split_once('=')
        && let Err(error) = scenario::read(rest, "fuzz.toml", &[(key.trim().to_owned(), value.trim().to_owned())])
    {
        assert!(!error.to_string().is_empty());
    }
    match scenario::read(text, "fuzz.toml", &[]) {
        Ok(read) => {
            let written = read.to_toml();
            let again = scenario::read(&written, "again.toml", &[]);
            assert_eq!(again.as_ref(), Ok(&read), "{written}");
            true
        }
        Err(error) => {
            assert!(!error.message.is_empty());
            false
        }
    }
}

/// A file of tenants of a network device: what is granted is within the link, and can be a scenario.
fn tenants(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    let read = match aq_linux::tenants::read(text, "fuzz.toml") {
        Ok(read) => read,
        Err(error) => return told(&error),
    };
    for position in read.positions() {
        match aq_linux::Grants::new(&read, position, aq_linux::grants::Senders::USUAL) {
            Ok(grants) => {
                let sum: u128 = grants.rows().iter().map(|row| u128::from(row.rate.bps())).sum();
                // Each rate is rounded to a millionth.
                let most = u128::from(read.link.capacity.bps());
                assert!(sum <= most + most / 1_000_000 + grants.rows().len() as u128, "{sum} of {most}");
                assert!(grants.rows().iter().skip(1).all(|row| row.word().per_byte > 0));
                if let Ok(written) = aq_linux::simulate::scenario(&read, position, &grants) {
                    let known = scenario::read(&written, "tenants.toml", &[]);
                    assert!(known.is_ok() || known.is_err_and(|error| !error.message.is_empty()));
                }
            }
            Err(problem) => {
                told(&problem);
            }
        }
    }
    true
}

/// What a trace gave is a sound list of flows, by the rules for lists that programs make.
fn trace(file: &TraceFile, bytes: &[u8]) -> bool {
    match file.parse(bytes.to_vec()) {
        Ok(trace) => {
            let again = Trace::new(file.path(), trace.flows().to_vec());
            assert_eq!(again.map(|again| again.flows().to_vec()).as_deref(), Ok(trace.flows()));
            true
        }
        Err(error) => told(&error),
    }
}

fn trace_csv(bytes: &[u8]) -> bool {
    let class = Some("web".to_owned());
    trace(&TraceFile::Csv(CsvTrace { path: "fuzz.csv".into(), class }), bytes);
    trace(&TraceFile::Csv(CsvTrace { path: "fuzz.csv".into(), class: None }), bytes)
}

fn trace_parquet(bytes: &[u8]) -> bool {
    let class = Some("web".to_owned());
    trace(&TraceFile::Parquet(ParquetTrace { path: "fuzz.parquet".into(), class }), bytes);
    trace(&TraceFile::Parquet(ParquetTrace { path: "fuzz.parquet".into(), class: None }), bytes)
}

fn trace_hpcc(bytes: &[u8]) -> bool {
    let hpcc = HpccTrace { path: "flow.txt".into(), switches: vec![3, 1, 3], origin: units::Time::from_us(2_000_000) };
    trace(&TraceFile::Hpcc(hpcc.clone()), bytes);
    trace(&TraceFile::Hpcc(HpccTrace { switches: Vec::new(), origin: units::Time::ZERO, ..hpcc }), bytes)
}

fn trace_htsim(bytes: &[u8]) -> bool {
    let endless = Some(units::Bytes(1_000_000_000));
    let htsim = HtsimTrace { path: "fuzz.cm".into(), start_unit: StartUnit::Us, endless };
    trace(&TraceFile::Htsim(htsim.clone()), bytes);
    trace(&TraceFile::Htsim(HtsimTrace { start_unit: StartUnit::Ps, endless: None, ..htsim }), bytes)
}

/// A fabric from a file, and what everybody does with one; not for large ones, which take their time.
fn topology(format: FileFormat, bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    let spec = FileSpec { path: "fuzz.topology".into(), format, switch_delay: Duration::from_ns(450) };
    match spec.parse(text) {
        Ok(fabric) => {
            assert!(fabric.hosts > 0 && fabric.links.len() >= 2 * fabric.hosts as usize);
            if fabric.links.len() < 200 {
                every_host_is_reached(&fabric);
            }
            true
        }
        Err(problem) => told(&problem),
    }
}

fn every_host_is_reached(fabric: &Fabric) {
    let routes = Routes::compute(fabric, &Failures::default());
    let hosts = || (0..fabric.hosts).map(HostId);
    for (src, dst) in hosts().flat_map(|src| hosts().map(move |dst| (src, dst))) {
        assert!(src == dst || routes.hops(src, dst).is_some(), "no way from {src} to {dst}");
    }
    Quotient::new(fabric);
}

fn topology_graph(bytes: &[u8]) -> bool {
    topology(FileFormat::Graph, bytes)
}

fn topology_hpcc(bytes: &[u8]) -> bool {
    topology(FileFormat::Hpcc, bytes)
}

fn topology_htsim(bytes: &[u8]) -> bool {
    topology(FileFormat::Htsim, bytes)
}

/// A distribution of flow sizes.
fn sizes(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    let mut accepted = false;
    for (unit, probability) in [(SizeUnit::Bytes, Probability::Percent), (SizeUnit::Packets, Probability::Fraction)] {
        match Table::parse(text, "fuzz.cdf", unit, probability) {
            Ok(table) => match table.cdf() {
                Ok(cdf) => {
                    let quantiles: Vec<f64> = (0..=10).map(|tenth| cdf.quantile(f64::from(tenth) / 10.0)).collect();
                    assert!(quantiles.is_sorted() && quantiles[0] >= 0.0, "{quantiles:?}");
                    assert!((0.0..=quantiles[10]).contains(&cdf.mean_bytes()), "{} {quantiles:?}", cdf.mean_bytes());
                    accepted = true;
                }
                Err(problem) => accepted |= told(&problem),
            },
            Err(error) => accepted |= told(&error),
        }
    }
    accepted
}

/// The header of every transport, and of what switches and hypervisors send each other.
fn header(bytes: &[u8]) -> bool {
    let bare = Packet::bare(FlowId(0), HostId(0), HostId(1));
    let mut accepted = false;
    for transport in Transport::NAMES.iter().filter_map(|name| Transport::named(name)) {
        let mut packet = bare;
        let mut from = wire::Reader::new(bytes, "header");
        let Ok(()) = transport.parse_header(&mut from, &mut packet) else { continue };
        let content = from.rest();
        let mut out = Vec::new();
        transport.emit_header(&packet, content, &mut Writer::new(&mut out));
        out.extend_from_slice(content);
        let (mut from, mut again) = (wire::Reader::new(&out, "header"), bare);
        let read = transport.parse_header(&mut from, &mut again);
        assert_eq!((read, from.rest(), again), (Ok(()), content, packet), "{}", transport.name());
        transport.payload_offset(&packet);
        accepted = true;
    }
    accepted |= alike::<pfc::Frame>(bytes);
    accepted |= alike::<pyrrha::frame::Frame>(bytes);
    accepted |= alike::<limiter::elastic_switch::Header>(bytes);
    // What is written of R2C2's is what was read, bit for bit.
    if let Ok((data, payload)) = r2c2::wire::Data::parse(bytes) {
        assert_eq!([&data.emit(payload)[..], payload].concat(), bytes);
    }
    if let Ok(broadcast) = r2c2::wire::Broadcast::parse(bytes) {
        assert_eq!(r2c2::wire::Broadcast::parse(&broadcast.emit()), Ok(broadcast));
    }
    let _ = r2c2::selection::assignments::parse(bytes);
    accepted
}

fn alike<H: Header>(bytes: &[u8]) -> bool {
    let Ok(header) = H::parse(&mut wire::Reader::new(bytes, "frame")) else { return false };
    let mut out = Vec::new();
    header.emit(&mut Writer::new(&mut out));
    let mut from = wire::Reader::new(&out, "frame");
    let again = H::parse(&mut from).expect("it was just written");
    let carried = |header: H| Packet::new(FlowId(0), HostId(0), HostId(0), header);
    assert_eq!((carried(again), from.rest()), (carried(header), &[][..]));
    true
}

/// Any datagram, and the same bytes with the right beginning and checksum, which no fuzzer guesses.
fn frame(bytes: &[u8]) -> bool {
    with_codec(|codec| datagram(codec, &sealed(bytes)) | datagram(codec, bytes))
}

/// Reads what comes from other processes and machines: every transport, over a flow control and with a mechanism of
/// sharing that have packets of their own.
fn with_codec(read: impl FnOnce(&Codec<'_>) -> bool) -> bool {
    let transports: Vec<Transport> = Transport::NAMES.iter().filter_map(|name| Transport::named(name)).collect();
    let flow_control = LinkControl::named("pyrrha").expect("it is in the catalogue");
    let sharing = Sharing::named("elastic_switch").expect("it is in the catalogue");
    read(&Codec {
        transports: &transports,
        flow_control: &flow_control,
        sharing: &sharing,
        retry: false,
        outside: Some(transports.len() as u8 + 1),
        hosts: 8,
        links: 16,
    })
}

/// What another process has left in a ring: counts, lengths and packets that need not be any. Accepted is what has a
/// packet in it.
fn ring(bytes: &[u8]) -> bool {
    with_codec(|codec| {
        let (mut entries, mut packets) = (0, 0);
        let refused = live::ring::read_any(bytes, |entry| {
            entries += 1;
            let Ok(frame) = codec.parse_body(entry) else { return };
            let mut again = Vec::new();
            codec.emit_body(&frame, &mut Writer::new(&mut again));
            assert_eq!(codec.parse_body(&again), Ok(frame));
            packets += 1;
        });
        // A reader reads no more than there is room for, whatever the writer says.
        assert!(entries + refused.len() <= 1_024, "{entries} entries, {} refused", refused.len());
        packets > 0
    })
}

/// What another machine has put into its trunk: records, numbers of a board and packets that need not be any. Accepted
/// is what is whole and has a packet in it.
fn trunk(bytes: &[u8]) -> bool {
    with_codec(|codec| {
        let mut packets = 0;
        let (entries, whole) =
            live::machines::read_any(bytes, |entry| packets += usize::from(codec.parse_body(entry).is_ok()));
        // A record has a kind, a length and two workers at least.
        assert!(packets <= entries && 9 * entries <= bytes.len(), "{entries} entries of {} bytes", bytes.len());
        whole && packets > 0
    })
}

/// What a program that has joined a Maze by its socket says, and what it is told: a stream of notes, cut anywhere.
/// Accepted is what is notes to its end.
fn client(bytes: &[u8]) -> bool {
    let (mut stream, mut note, mut notes) = (bytes, Vec::new(), 0);
    loop {
        match maze::wire::read(&mut stream, maze::wire::NOTE_BYTES_MAX, &mut note, || {}) {
            Ok(()) => {}
            Err(maze::wire::Broken::Gone) => return notes > 0,
            Err(_) => return false,
        }
        let mut again = Vec::new();
        match (maze::wire::Ask::parse(&note), maze::wire::Tell::parse(&note)) {
            (Ok(ask), _) => ask.emit(&mut again),
            (_, Ok(tell)) => tell.emit(&mut again),
            _ => return false,
        }
        assert_eq!(again[4..], note);
        notes += 1;
    }
}

/// The fields of a frame with what stands before and behind them.
pub fn sealed(fields: &[u8]) -> Vec<u8> {
    let mut frame = [&frame::MAGIC[..], &[frame::VERSION], fields].concat();
    let checksum = crc32fast::hash(&frame);
    frame.extend(checksum.to_be_bytes());
    frame
}

/// What a TUN or a TAP device of an attached host hands over.
fn device(bytes: &[u8]) -> bool {
    let Some((offload, rest)) = bytes.split_first_chunk::<OFFLOAD_BYTES>() else { return false };
    let mut accepted = packets(offload, rest, 0);
    match neighbours::read(rest, |_| Some(3)) {
        Some((_, Ethernet::Packet(packet))) => accepted |= packets(offload, packet, ETHERNET_BYTES),
        Some((_, Ethernet::Question(answer))) => {
            assert!(neighbours::read(&answer, |_| None).is_some());
            accepted = true;
        }
        _ => {}
    }
    accepted
}

/// What is cut out of a frame is no longer than it may be, and a packet of the same flow.
fn packets(offload: &[u8; OFFLOAD_BYTES], packet: &[u8], before: usize) -> bool {
    const MTU: usize = 1_500;
    let Ok(read) = Packets::read(offload, packet, before, MTU) else { return false };
    for index in 0..read.count() {
        let mut out = vec![0; read.length(index)];
        assert!(out.len() <= MTU);
        read.write(index, &mut out);
        let again = Packets::read(&[0; OFFLOAD_BYTES], &out, 0, MTU).expect("what was cut is whole");
        assert_eq!((again.count(), again.flow, again.destination), (1, read.flow, read.destination));
        assert_eq!(ip::mark(&mut out), read.ecn() != 0);
    }
    true
}

fn datagram(codec: &Codec<'_>, bytes: &[u8]) -> bool {
    let Ok(frame) = codec.parse(bytes) else { return false };
    let mut again = Vec::new();
    codec.emit(&frame, &mut again);
    assert_eq!(codec.parse(&again), Ok(frame));
    true
}
