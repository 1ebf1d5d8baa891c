//! Congestion controls of one's own: the bytes of a WebAssembly module, or text that becomes some.

use transports::tcp::control::{Ack, Congestion, Phase, Signal, Start};
use transports::tcp::custom::Settings;
use transports::tcp::custom::contract::{Acks, Host, Reason, Sent, Verdict};
use units::{Duration, FlowId, Time};

use crate::{text, told};

/// A module, as it is or as text, which reaches further: most of its changes are modules again.
pub(crate) fn module(bytes: &[u8]) -> bool {
    let parsed = text(bytes).filter(|_| !bytes.starts_with(b"\0asm")).and_then(|text| wat::parse_str(text).ok());
    let module = match custom::read(parsed.as_deref().unwrap_or(bytes)) {
        Ok(module) => module,
        Err(error) => return told(&error),
    };
    let settings = Settings::new();
    assert!(module.check(&settings).is_ok(), "no setting has to be given");
    let host = || module.clone().host(&settings);
    assert_eq!(played(&*host()), played(&*host()), "another host is told the same, and answers alike");
    true
}

/// What two flows are answered, until their program fails.
fn played(host: &dyn Host) -> Vec<Result<Verdict, Reason>> {
    let mut answers = Vec::new();
    for flow in 0..2 {
        let now = Time::from_us(3);
        let (mut program, first) = match host.start(&start(FlowId(flow), now)) {
            Ok(begun) => begun,
            Err(reason) => {
                answers.push(Err(reason));
                continue;
            }
        };
        answers.push(Ok(first));
        let congestion = |signal| Congestion { now, signal, flight_bytes: 40_000 };
        let sent = Sent { now, packet_bytes: 1_040, again: false, in_flight_bytes: 9_000, next: 10_000 };
        for step in 0..8 {
            let answer = match step {
                0 | 1 | 4 => program.on_ack(&acks(now, 1_000 * (step + 1))),
                2 if program.wants_sends() => program.on_send(&sent),
                3 => program.on_mark(&congestion(Signal::Mark)),
                5 => program.on_loss(&congestion(Signal::Loss)),
                6 => program.on_loss(&congestion(Signal::Timeout { again: true })),
                7 => program.on_timer(now),
                _ => continue,
            };
            answers.push(answer);
            if answer.is_err() {
                break;
            }
        }
    }
    for answer in &answers {
        match answer {
            Ok(verdict) => assert!((1..=Verdict::WINDOW_BYTES_MAX).contains(&verdict.window_bytes)),
            Err(reason) => {
                told(&reason.words());
                let twice = reason.words().matches("trap").count() > 1;
                assert!(!twice, "{}", reason.words());
            }
        }
    }
    answers
}

fn start(flow: FlowId, now: Time) -> Start {
    let [rtt, base_rtt, hop_rtt] = [10, 8, 2].map(Duration::from_us);
    Start {
        flow,
        now,
        mss_bytes: 1_000,
        window_bytes: 10_000,
        packet_bytes: 1_040,
        rtt,
        base_rtt,
        hop_rtt,
        virtual_serialisation: Duration::ZERO,
        seed: 7,
    }
}

fn acks(now: Time, una: u64) -> Acks {
    let last = Ack {
        now,
        acked_bytes: 1_000,
        delivered_bytes: 1_000,
        una,
        next: una + 10_000,
        marked: una > 2_000,
        rtt: Some(Duration::from_us(11)),
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
        rtt_min: last.rtt,
        last,
    }
}
