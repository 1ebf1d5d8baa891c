//! The program in the kernel against its Rust twin, packet by packet (`BPF_PROG_TEST_RUN`): equal decisions, marks and
//! counters. Skipped, with the reason, where the machine can't load a program.

#![cfg(target_os = "linux")]

use std::io::Write;

use aya::Ebpf;
use aya::programs::{TestRun, TestRunOptions};
use clearway_aq_linux::kernel::{self, Found, Maps, PROGRAM, Settings};
use clearway_aq_linux::matching::Matches;
use clearway_aq_linux::place::{Held, Rooms};
use clearway_aq_linux::word::{Verdict, Word};
use units::{Bytes, Rate, Stream};

const ROOMS: Rooms = Rooms { configs: 64, states: 128, keys: 64, prefixes: 64, ports: kernel::PORTS, fragments: 64 };
const DROP: u32 = 2;
/// TC_ACT_UNSPEC: on to the next program.
const PASS: u32 = u32::MAX;

/// The kinds of match that all tests together use.
fn kinds(matches: &Matches) -> u32 {
    Found::kinds(matches)
}

/// Loads the program, or says why this machine can't.
fn load(kinds: u32, at_ingress: bool) -> Option<(Ebpf, Maps)> {
    load_for(14, kinds, at_ingress)
}

/// The same for a device with an Ethernet header of `link_bytes`, or with another header or none: 0.
fn load_for(link_bytes: u32, kinds: u32, at_ingress: bool) -> Option<(Ebpf, Maps)> {
    let settings = Settings { drop_code: DROP, at_ingress, link_bytes, kinds, test_clock: true, test_entities: 0 };
    let loaded = kernel::check_rights().and_then(|()| kernel::load(settings, ROOMS));
    let mut ebpf = match loaded {
        Ok(ebpf) => ebpf,
        Err(why) => {
            // By the stream itself: what a test that passes prints is not shown.
            let _ = writeln!(std::io::stderr(), "skipped, the program against its Rust twin: {why}");
            return None;
        }
    };
    let maps = Maps::of(&mut ebpf).unwrap();
    Some((ebpf, maps))
}

/// A packet as the program sees it.
#[derive(Clone)]
struct Packet {
    at_ns: u64,
    wire_bytes: u32,
    mark: u32,
    gso_size: u32,
    data: Vec<u8>,
}

/// Ethernet, IPv4 (ECN-capable) and the first words of TCP.
fn ipv4(source: [u8; 4], destination: [u8; 4], ports: [u16; 2], length: usize) -> Vec<u8> {
    let mut data = vec![0; length.max(54)];
    data[12..14].copy_from_slice(&[8, 0]);
    let total = u16::try_from(data.len() - 14).unwrap().to_be_bytes();
    data[14..26].copy_from_slice(&[0x45, 2, total[0], total[1], 0, 0, 0, 0, 64, 6, 0, 0]);
    data[26..30].copy_from_slice(&source);
    data[30..34].copy_from_slice(&destination);
    data[34..36].copy_from_slice(&ports[0].to_be_bytes());
    data[36..38].copy_from_slice(&ports[1].to_be_bytes());
    data[46] = 5 << 4;
    data
}

fn ipv6(source: [u8; 16], destination: [u8; 16], ports: [u16; 2]) -> Vec<u8> {
    let mut data = vec![0; 74];
    data[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
    data[18..22].copy_from_slice(&[0, 20, 6, 64]);
    data[22..38].copy_from_slice(&source);
    data[38..54].copy_from_slice(&destination);
    data[54..56].copy_from_slice(&ports[0].to_be_bytes());
    data[56..58].copy_from_slice(&ports[1].to_be_bytes());
    data[66] = 5 << 4;
    data
}

/// `struct __sk_buff` of `linux/bpf.h`, as far as a test may set it. Fields by their offsets.
fn context(packet: &Packet) -> [u8; 192] {
    let mut context = [0; 192];
    let mut set = |at: usize, bytes: &[u8]| context[at..at + bytes.len()].copy_from_slice(bytes);
    set(8, &packet.mark.to_ne_bytes());
    set(152, &packet.at_ns.to_ne_bytes());
    set(160, &packet.wire_bytes.to_ne_bytes());
    set(176, &packet.gso_size.to_ne_bytes());
    context
}

/// Runs one packet. Returns what the program returns, and whether the packet came out marked.
fn arrive(ebpf: &mut Ebpf, packet: &Packet) -> (u32, bool) {
    let program = kernel::program(ebpf).unwrap();
    let mut out = vec![0; packet.data.len()];
    let options = TestRunOptions {
        data_in: Some(&packet.data),
        data_out: Some(&mut out),
        ctx_in: Some(&context(packet)),
        ..TestRunOptions::new()
    };
    let done = program.test_run(options).unwrap();
    (done.return_value, out[15] & 3 == 3)
}

fn held(entity: u32) -> Held {
    Held { name: entity.to_string(), entity, first: entity, flows: 1 }
}

#[test]
fn a_million_packets_meet_the_same_decisions_as_in_rust() {
    let marks: Vec<u32> = (1..20).collect();
    let matches = Matches { mark: marks.clone(), ..Matches::default() };
    let Some((mut ebpf, mut maps)) = load(kinds(&matches), false) else { return };
    let mut random = Stream::new(1, 21, "trace");
    // Rates from 100 kbps to 100 Gbps, limits from a packet to a second.
    let mut words = vec![Word::OPEN];
    let mut rates = vec![Rate::from_gbps(1)];
    for (index, &mark) in marks.iter().enumerate() {
        let rate = Rate::from_bps(100_000 * 10_u64.pow(index as u32 % 7) * (1 + random.bits() % 9));
        let limit = Bytes(70_000 + random.bits() % 1_000_000);
        let threshold = (index % 2 == 0).then(|| Bytes(limit.get() / 2));
        let word = Word::new(rate, limit, threshold);
        maps.configure(&held(mark), word).unwrap();
        maps.tell(&Found::new(&Matches { mark: vec![mark], ..Matches::default() }, true).unwrap(), mark).unwrap();
        words.push(word);
        rates.push(rate);
    }
    let mut counts = vec![[0_u64; 5]; words.len()];
    // A clock that wraps on the way, in ticks: 2^54 ns.
    let mut clocks = vec![(1_u64 << 54) - 100_000_000; words.len()];
    let mut empty: Vec<u64> = clocks.iter().map(|&now_ns| Word::empty(now_ns)).collect();
    for (of, &now_ns) in clocks.iter().enumerate() {
        maps.reset(of as u32, now_ns).unwrap();
    }
    let mut seen = [0_u64; 3];
    for step in 0..1_000_000_u32 {
        let of = (random.bits() % words.len() as u64) as usize;
        let big = random.bits().is_multiple_of(4);
        let wire_bytes = 60 + (random.bits() % if big { 65_000 } else { 1_455 }) as u32;
        // On average six tenths of the time that the packet takes; now and then a long silence.
        let fair = u128::from(wire_bytes) * 8_000_000_000 / u128::from(rates[of].bps());
        let wait = fair * u128::from(random.bits() % 120) / 100;
        clocks[of] += if step.is_multiple_of(10_000) { 20_000_000_000 } else { wait as u64 };
        let data = ipv4([10, 0, 0, 1], [10, 0, 0, 2], [1, 2], 54);
        let packet = Packet { at_ns: clocks[of], wire_bytes, mark: of as u32, gso_size: 0, data };
        let (code, marked) = arrive(&mut ebpf, &packet);
        let wanted = match words[of] {
            Word::OPEN => Verdict::Pass,
            word => word.arrive(&mut empty[of], clocks[of], u64::from(wire_bytes)),
        };
        let got = match (code, marked) {
            (DROP, _) => Verdict::Drop,
            (PASS, true) => Verdict::Mark,
            (PASS, false) => Verdict::Pass,
            other => panic!("{other:?}"),
        };
        assert_eq!(got, wanted, "packet {step} of entity {of}: {wire_bytes} bytes at {}", clocks[of]);
        seen[wanted as usize] += 1;
        let bytes = u64::from(wire_bytes);
        let [packets, passed, drops, dropped, marks] = &mut counts[of];
        if wanted == Verdict::Drop {
            (*drops, *dropped) = (*drops + 1, *dropped + bytes);
        } else {
            (*packets, *passed, *marks) = (*packets + 1, *passed + bytes, *marks + u64::from(wanted == Verdict::Mark));
        }
    }
    for (of, count) in counts.iter().enumerate() {
        let state = maps.state(of as u32).unwrap();
        let counted = [state.packets, state.bytes, state.drops, state.dropped_bytes, state.marks];
        assert_eq!((counted, state.when_empty), (*count, empty[of]), "entity {of}");
    }
    assert!(seen.iter().all(|&times| times > 50_000), "every decision is tried: {seen:?}");
    println!("1,000,000 packets: {} passed, {} passed marked, {} dropped, all as in Rust", seen[0], seen[1], seen[2]);
}

#[test]
fn a_packet_belongs_to_the_first_kind_that_matches() {
    let text = r#"
        mark = [7]
        destination = ["10.1.0.0/16", "10.1.2.0/24", "2001:db8::/32"]
        source = ["10.9.0.0/16"]
        ports = ["80", "8000-8099"]
        source_ports = ["53"]
    "#;
    let all: Matches = toml::from_str(text).unwrap();
    let Some((mut ebpf, mut maps)) = load(kinds(&all), false) else { return };
    let mut tell = |entity: u32, text: &str| {
        maps.configure(&held(entity), Word::new(Rate::from_gbps(1), Bytes(1_000_000), None)).unwrap();
        maps.tell(&Found::new(&toml::from_str(text).unwrap(), true).unwrap(), entity).unwrap();
    };
    tell(1, "mark = [7]");
    tell(2, "destination = [\"10.1.0.0/16\"]");
    tell(3, "destination = [\"10.1.2.0/24\", \"2001:db8::/32\"]");
    tell(4, "source = [\"10.9.0.0/16\"]");
    tell(5, "ports = [\"80\", \"8000-8099\"]");
    tell(6, "source_ports = [\"53\"]");
    maps.configure(&held(0), Word::OPEN).unwrap();
    let db8 = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let other = [0x20, 1, 0xd, 0xb9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let mut arp = vec![0; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    let mut later_fragment = ipv4([10, 5, 0, 1], [10, 6, 0, 1], [1, 80], 54);
    later_fragment[21] = 9;
    for (mark, data, entity) in [
        (0, ipv4([10, 5, 0, 1], [10, 6, 0, 1], [1, 2], 54), 0),
        (7, ipv4([10, 9, 0, 1], [10, 1, 2, 1], [53, 80], 54), 1),
        (8, ipv4([10, 9, 0, 1], [10, 1, 3, 1], [53, 80], 54), 2),
        (0, ipv4([10, 9, 0, 1], [10, 1, 2, 1], [53, 80], 54), 3),
        (0, ipv4([10, 9, 0, 1], [10, 6, 0, 1], [53, 80], 54), 4),
        (0, ipv4([10, 5, 0, 1], [10, 6, 0, 1], [53, 80], 54), 5),
        (0, ipv4([10, 5, 0, 1], [10, 6, 0, 1], [53, 8_099], 54), 5),
        (0, ipv4([10, 5, 0, 1], [10, 6, 0, 1], [53, 8_100], 54), 6),
        (0, later_fragment, 0),
        (0, ipv6(other, db8, [1, 2]), 3),
        (0, ipv6(db8, other, [1, 80]), 5),
        (0, ipv6(db8, other, [1, 2]), 0),
        (0, arp, 0),
    ] {
        let before = maps.state(entity).unwrap().packets;
        let packet = Packet { at_ns: 1, wire_bytes: 100, mark, gso_size: 0, data };
        assert_eq!(arrive(&mut ebpf, &packet).0, PASS);
        assert_eq!(maps.state(entity).unwrap().packets, before + 1, "entity {entity}");
    }
}

/// Puts headers between an IPv6 header and its transport's: each with its number and its bytes behind the next number.
fn with_extensions(packet: &[u8], headers: &[(u8, &[u8])]) -> Vec<u8> {
    let (mut data, last) = (packet[..54].to_vec(), packet[20]);
    data[20] = headers.first().map_or(last, |&(number, _)| number);
    for (at, &(_, bytes)) in headers.iter().enumerate() {
        data.push(headers.get(at + 1).map_or(last, |&(number, _)| number));
        data.extend(bytes);
    }
    data.extend(&packet[54..]);
    data
}

/// With VLAN tags of these types and ids in the frame.
fn tagged(packet: &[u8], tags: &[(u16, u16)]) -> Vec<u8> {
    let mut data = packet[..12].to_vec();
    for (kind, id) in tags {
        data.extend(kind.to_be_bytes());
        data.extend(id.to_be_bytes());
    }
    data.extend(&packet[12..]);
    data
}

#[test]
fn nothing_before_or_between_hides_a_port() {
    let all: Matches = toml::from_str("ports = [\"80\"]\nvlan = [42]\nportless = [\"10.8.0.0/16\"]").unwrap();
    let Some((mut ebpf, mut maps)) = load(kinds(&all), false) else { return };
    let mut tell = |entity: u32, text: &str| {
        maps.configure(&held(entity), Word::new(Rate::from_gbps(1), Bytes(1_000_000), None)).unwrap();
        maps.tell(&Found::new(&toml::from_str(text).unwrap(), true).unwrap(), entity).unwrap();
    };
    tell(1, "ports = [\"80\"]");
    tell(2, "vlan = [42]");
    tell(3, "portless = [\"10.8.0.0/16\", \"2001:db8::/32\"]");
    maps.configure(&held(0), Word::OPEN).unwrap();
    let (here, there) =
        ([0x20, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], [0x20, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    let v6 = ipv6(here, there, [1, 80]);
    let v4 = ipv4([10, 5, 0, 1], [10, 6, 0, 1], [1, 80], 54);
    let other = ipv4([10, 5, 0, 1], [10, 6, 0, 1], [1, 2], 54);
    // Of IPv4: id, offset in 8 bytes, whether more follow.
    let part = |packet: &[u8], id: u8, offset: u8, more: bool| {
        let mut data = packet.to_vec();
        (data[19], data[20], data[21]) = (id, if more { 0x20 } else { 0 }, offset);
        data
    };
    let part6 = |id: u8, offset: u8, more: bool| {
        let bytes = [0, 0, offset << 3 | u8::from(more), 0, 0, 0, id];
        with_extensions(&v6, &[(44, &bytes)])
    };
    let elsewhere = |packet: Vec<u8>| {
        let mut packet = packet;
        (packet[26], packet[27]) = (10, 8);
        packet
    };
    let options: &[u8] = &[0, 1, 4, 0, 0, 0, 0];
    let long: &[u8] = &[2; 23];
    let nine = [(60, options); 9];
    for (step, (data, entity, hidden)) in [
        // IPv6: every header that Linux accepts there, alone and together; one too many.
        (with_extensions(&v6, &[(0, options)]), 1, 0),
        (with_extensions(&v6, &[(0, options), (43, options), (60, long)]), 1, 0),
        (with_extensions(&v6, &[(51, &[4; 23])]), 1, 0),
        (with_extensions(&v6, &nine[..8]), 1, 0),
        (with_extensions(&v6, &nine), 0, 1),
        // Fragments of IPv4: before the first, the first, after it; another id; of a packet without a tenant.
        (part(&other, 7, 9, true), 0, 1),
        (part(&v4, 7, 0, true), 1, 0),
        (part(&other, 7, 9, true), 1, 0),
        (part(&other, 7, 18, false), 1, 0),
        (part(&other, 8, 9, true), 0, 1),
        (part(&other, 9, 0, true), 0, 0),
        (part(&other, 9, 9, false), 0, 0),
        (elsewhere(part(&other, 7, 9, true)), 3, 1),
        // Of IPv6.
        (part6(7, 9, true), 0, 1),
        (part6(7, 0, true), 1, 0),
        (part6(7, 9, false), 1, 0),
        // A whole packet in one fragment (RFC 6946) is no fragment.
        (part6(9, 0, false), 1, 0),
        // Tags in the frame: the first counts, and what is behind them too.
        (tagged(&v4, &[(0x8100, 7)]), 1, 0),
        (tagged(&v4, &[(0x88a8, 7), (0x8100, 42)]), 1, 0),
        (tagged(&v4, &[(0x88a8, 42), (0x8100, 7)]), 2, 0),
        (tagged(&v6, &[(0x8100, 7)]), 1, 0),
        // A header that ends too early for ports.
        (v4[..36].to_vec(), 0, 1),
    ]
    .into_iter()
    .enumerate()
    {
        let before = maps.state(entity).unwrap();
        let packet = Packet { at_ns: 1, wire_bytes: 300, mark: 0, gso_size: 0, data };
        assert_eq!(arrive(&mut ebpf, &packet).0, PASS);
        let after = maps.state(entity).unwrap();
        assert_eq!(
            (after.packets, after.hidden),
            (before.packets + 1, before.hidden + hidden),
            "step {step}: {entity}"
        );
    }
}

#[test]
fn behind_another_link_header_the_packet_is_found_too() {
    let all: Matches = toml::from_str("ports = [\"80\"]").unwrap();
    let Some((mut ebpf, mut maps)) = load_for(0, kinds(&all), true) else { return };
    maps.configure(&held(1), Word::new(Rate::from_gbps(1), Bytes(1_000_000), None)).unwrap();
    maps.tell(&Found::new(&all, true).unwrap(), 1).unwrap();
    maps.configure(&held(0), Word::OPEN).unwrap();
    let v6 = with_extensions(&ipv6([1; 16], [2; 16], [1, 80]), &[(60, &[0, 1, 4, 0, 0, 0, 0])]);
    for data in [ipv4([10, 5, 0, 1], [10, 6, 0, 1], [1, 80], 54), v6] {
        let before = maps.state(1).unwrap().packets;
        let packet = Packet { at_ns: 1, wire_bytes: 0, mark: 0, gso_size: 0, data };
        assert_eq!(arrive(&mut ebpf, &packet).0, PASS);
        assert_eq!(maps.state(1).unwrap().packets, before + 1);
    }
}

#[test]
fn at_ingress_each_segment_has_its_headers() {
    let Some((mut ebpf, mut maps)) = load(0, true) else { return };
    maps.configure(&held(0), Word::new(Rate::from_gbps(1), Bytes(1_000_000), None)).unwrap();
    // 3 segments of 1,000 bytes behind one set of headers, 54 bytes of them.
    let data = ipv4([10, 0, 0, 1], [10, 0, 0, 2], [1, 2], 54 + 3_000);
    let packet = Packet { at_ns: 1_000_000_000, wire_bytes: 0, mark: 0, gso_size: 1_000, data };
    assert_eq!(arrive(&mut ebpf, &packet).0, PASS);
    assert_eq!(maps.state(0).unwrap().bytes, 3_000 + 3 * 54);
    let packet = Packet { gso_size: 0, ..packet };
    assert_eq!(arrive(&mut ebpf, &packet).0, PASS);
    assert_eq!(maps.state(0).unwrap().bytes, 3_000 + 3 * 54 + 3_054);
}

#[test]
fn flows_of_one_tenant_are_spread_over_its_aqs() {
    let Some((mut ebpf, mut maps)) = load(0, false) else { return };
    let word = Word::new(Rate::from_gbps(1), Bytes(1_000_000), None);
    maps.configure(&Held { name: String::new(), entity: 0, first: 8, flows: 16 }, word).unwrap();
    for port in 0..1_600 {
        let data = ipv4([10, 0, 0, 1], [10, 0, 0, 2], [port, 2], 54);
        let packet = Packet { at_ns: u64::from(port) * 1_000_000, wire_bytes: 100, mark: 0, gso_size: 0, data };
        assert_eq!(arrive(&mut ebpf, &packet).0, PASS);
    }
    let counts: Vec<u64> = (0..128).map(|state| maps.state(state).unwrap().packets).collect();
    assert_eq!(counts.iter().sum::<u64>(), 1_600);
    assert!(counts[8..24].iter().all(|&count| count > 50), "{counts:?}");
    assert_eq!(PROGRAM, "clearway_aq");
}
