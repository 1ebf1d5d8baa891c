use transports::tcp::control::{Ack, Phase, Signal};
use units::{Duration, FlowId};

use super::*;
use crate::read;

const RUST: &[u8] = include_bytes!("../../../../examples/wasm/dctcp-rust.wasm");
const C: &[u8] = include_bytes!("../../../../examples/wasm/dctcp-c.wasm");
const FAULTY: &[u8] = include_bytes!("../../tests/faulty.wasm");

fn start() -> Start {
    Start {
        flow: FlowId(5),
        now: Time::from_us(3),
        mss_bytes: 1_000,
        window_bytes: 10_000,
        packet_bytes: 1_040,
        rtt: Duration::from_us(10),
        base_rtt: Duration::from_us(8),
        hop_rtt: Duration::from_us(2),
        virtual_serialisation: Duration::ZERO,
        seed: 7,
    }
}

fn congestion(signal: Signal, flight_bytes: u64) -> Congestion {
    Congestion { now: Time::from_us(9), signal, flight_bytes }
}

/// One acknowledgement of a packet that a full window had sent.
fn acks(una: u64) -> Acks {
    let last = Ack {
        now: Time::from_us(5),
        acked_bytes: 1_000,
        delivered_bytes: 1_000,
        una,
        next: una + 10_000,
        marked: false,
        rtt: None,
        delay: None,
        virtual_delay: None,
        rate: None,
        in_flight_bytes: 9_000,
        in_flight_before_bytes: 10_000,
        lost_bytes: 0,
        srtt: Duration::from_us(10),
        hops: 1,
        limited: true,
        phase: Phase::Open,
    };
    Acks {
        count: 1,
        acked_bytes: 1_000,
        marked_bytes: 0,
        growing_bytes: 1_000,
        delivered_bytes: 1_000,
        lost_bytes: 0,
        rtt_min: None,
        last,
    }
}

/// Settings of numbers.
fn settings(of: &[(&str, f64)]) -> Settings {
    of.iter().map(|&(name, value)| (name.to_owned(), Setting::Number(value))).collect()
}

fn host(bytes: &[u8], of: &[(&str, f64)]) -> Arc<dyn Host> {
    let (module, settings) = (read(bytes).unwrap(), settings(of));
    module.check(&settings).unwrap();
    module.host(&settings)
}

/// Why a module is refused.
fn refused(bytes: &[u8]) -> String {
    read(bytes).expect_err("it is no module that can be run")
}

/// A module with some bytes of it replaced, as many as there were.
fn with(module: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let at = module.windows(old.len()).position(|here| here == old).expect("it is there");
    let mut changed = module.to_vec();
    changed[at..at + old.len()].copy_from_slice(new);
    changed
}

#[test]
fn the_templates_do_what_dctcp_does() {
    for module in [RUST, C] {
        let (mut flow, verdict) = host(module, &[("alpha", 0.5)]).start(&start()).unwrap();
        // In slow start each counts that lets it grow at all.
        assert_eq!((verdict.window_bytes, verdict.rate, verdict.quiet_bytes), (10_000, None, 1));
        assert_eq!(flow.on_ack(&acks(1_000)).unwrap().window_bytes, 11_000, "slow start");
        assert_eq!(flow.on_loss(&congestion(Signal::Loss, 40_000)).unwrap().window_bytes, 20_000);
        // The first acknowledgement, without a mark, was a window of its own: alpha is 15/16 of a half.
        let marked = flow.on_mark(&congestion(Signal::Mark, 20_000)).unwrap();
        assert_eq!(marked.window_bytes, (20_000.0 * (1.0 - 0.5 * 15.0 / 16.0 / 2.0)) as u64);
        assert_eq!(marked.quiet_bytes, marked.window_bytes, "until the window grows by a segment");
        assert_eq!(marked.quiet_until, 11_000);
        let timeout = congestion(Signal::Timeout { again: false }, 20_000);
        assert_eq!(flow.on_loss(&timeout).unwrap().window_bytes, 1_000);
        assert!(!flow.wants_sends());
    }
}

#[test]
fn a_fault_is_the_flow_s_and_says_what_and_where() {
    for (fault, words) in [
        (1.0, "trapped in clearway_on_ack: wasm `unreachable`"),
        (2.0, "ran for too long in clearway_on_ack: more than 1000000 units of fuel"),
        (3.0, "bytes of memory, and has at most 4194304 in clearway_on_ack"),
        (4.0, "answered a window of 0 bytes"),
        (5.0, "answered a rate of 1 bits a second"),
        (6.0, "trapped in clearway_on_ack: out of bounds memory access"),
        (8.0, "answered a timer of 1 ps"),
        (9.0, "in clearway_on_ack"),
    ] {
        let host = host(FAULTY, &[("fault", fault), ("at", 2.0), ("window", 5e3)]);
        let (mut flow, _) = host.start(&start()).unwrap();
        let (mut beside, _) = host.start(&start()).unwrap();
        assert_eq!(flow.on_ack(&acks(1_000)).unwrap().window_bytes, 5_000);
        assert_eq!(beside.on_ack(&acks(1_000)).unwrap().window_bytes, 5_000);
        let reason = flow.on_ack(&acks(2_000)).expect_err("a fault");
        assert!(reason.words().starts_with("the module ") && reason.words().contains(words), "{}", reason.words());
        // Its neighbour has its own state, in a fresh instance.
        assert!(beside.on_loss(&congestion(Signal::Loss, 5_000)).is_ok());
        assert!(beside.on_ack(&acks(2_000)).is_err(), "its second, too");
    }
    // A timer that nothing would hear of.
    let (mut flow, _) = host(FAULTY, &[("fault", 10.0)]).start(&start()).unwrap();
    assert!(flow.on_ack(&acks(1_000)).is_ok());
    assert!(flow.on_timer(Time::from_us(9)).unwrap_err().words().contains("exports no clearway_on_timer"));
}

#[test]
fn what_is_no_module_of_this_interface_is_refused_with_what_would_be_right() {
    assert!(refused(b"name = \"x\"").contains("is not a WebAssembly module"));
    assert!(refused(&C[..300]).contains("is not a module that can be run"));
    let renamed = with(C, b"clearway_on_ack", b"clearway_on_axk");
    assert!(refused(&renamed).contains("exports no function clearway_on_ack"), "{}", refused(&renamed));
    // The whole of the function `clearway_abi`: its length, no locals, i32.const 1, end.
    let older = with(C, b"\x04\x00\x41\x01\x0b", b"\x04\x00\x41\x07\x0b");
    assert!(refused(&older).contains("is written for version 7 of the interface, and this build has version 1"));
    let hidden = with(C, b"\x06memory", b"\x06memary");
    assert!(refused(&hidden).contains("exports no memory named \"memory\""));
}

#[test]
fn settings_are_the_module_s_own() {
    let module = read(C).unwrap();
    let problem = |of: Settings| module.check(&of).unwrap_err().to_string();
    assert!(problem(settings(&[("gain", 1.0)])).contains("is not a setting of the module; it has g, alpha"));
    let text = Settings::from([("g".to_owned(), Setting::Text("much".to_owned()))]);
    assert!(problem(text).contains("is not a number"));
    assert_ne!(read(C).unwrap().digest(), read(RUST).unwrap().digest());
    assert_eq!(read(C).unwrap().digest(), module.digest());
}

#[test]
fn what_fuel_does_not_count_is_bounded_before() {
    // A function whose body is these bytes, in a module with a memory.
    let module = |body: &[u8]| {
        let code = [&[1, body.len() as u8][..], body].concat();
        let section = |id: u8, content: &[u8]| [&[id, content.len() as u8][..], content].concat();
        let parts = [section(1, &[1, 0x60, 0, 0]), section(3, &[1, 0]), section(5, &[1, 0, 1]), section(10, &code)];
        [&b"\0asm\x01\0\0\0"[..], &parts.concat()].concat()
    };
    // i32.const 0, i32.const 0, the length, memory.fill 0, end.
    let fill = |length: &[u8]| module(&[&[0, 0x41, 0, 0x41, 0][..], length, &[0xFC, 11, 0, 0x0B]].concat());
    let constant = fill(&[0x41, 0x80, 0x20]); // 4096
    assert!(refused(&constant).contains("exports no memory"), "{}", refused(&constant));
    for length in [&[0x41, 0x81, 0x20][..], &[0x41, 0x7F], &[0x3F, 0]] {
        assert!(refused(&fill(length)).contains("has memory.fill of a length that is not a constant of at most 4096"));
    }
    // One declaration of 200,000 locals of i32.
    assert!(refused(&module(&[1, 0xC0, 0x9A, 0x0C, 0x7F, 0x0B])).contains("more than 100000 local variables"));
}

#[test]
fn a_call_that_answers_nothing_leaves_the_flow_s_own_answer() {
    let host = host(FAULTY, &[("fault", 12.0), ("at", 2.0), ("window", 5e3)]);
    let (mut flow, _) = host.start(&start()).unwrap();
    let (mut beside, _) = host.start(&Start { window_bytes: 7_000, ..start() }).unwrap();
    assert_eq!(flow.on_ack(&acks(1_000)).unwrap().window_bytes, 5_000 + 1_000);
    assert_eq!(beside.on_ack(&acks(3_000)).unwrap().window_bytes, 5_000 + 3_000);
    assert_eq!(flow.on_ack(&acks(2_000)).unwrap().window_bytes, 6_000, "its own, not its neighbour's");
}
