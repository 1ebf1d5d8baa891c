use std::sync::Mutex;

use proptest::prelude::*;

use super::super::dctcp;
use super::contract::{Host, REASON_BYTES_MAX, Reason};
use super::*;
use crate::tcp::control::Phase;

const MSS: u64 = 1_000;

/// What a program was told.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Start,
    Send { next: u64 },
    Acks { count: u64, acked: u64, marked: u64, growing: u64, una: u64 },
    Loss,
    Mark,
    Timer(Time),
}

type Heard = Arc<Mutex<Vec<Told>>>;
type Answers = fn(&Told) -> Result<Verdict, Reason>;

/// A program that notes what it is told and answers by a function.
#[derive(Clone)]
struct Listener(Answers, Heard);

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a listener")
    }
}

impl Listener {
    fn hear(&self, told: Told) -> Result<Verdict, Reason> {
        let answer = (self.0)(&told);
        self.1.lock().unwrap().push(told);
        answer
    }
}

impl Module for Listener {
    fn digest(&self) -> &str {
        "00ff"
    }

    fn check(&self, settings: &Settings) -> Result<(), Problem> {
        match settings.keys().find(|name| *name != "gain") {
            Some(unknown) => Err(Problem::new(unknown.clone(), "is not a setting")),
            None => Ok(()),
        }
    }

    fn host(self: Arc<Self>, _: &Settings) -> Arc<dyn Host> {
        self
    }
}

impl Host for Listener {
    fn start(&self, _: &Start) -> Result<(Box<dyn Program>, Verdict), Reason> {
        let verdict = self.hear(Told::Start)?;
        Ok((Box::new(self.clone()), verdict))
    }
}

impl Program for Listener {
    fn wants_sends(&self) -> bool {
        true
    }

    fn on_send(&mut self, sent: &Sent) -> Result<Verdict, Reason> {
        self.hear(Told::Send { next: sent.next })
    }

    fn on_ack(&mut self, acks: &Acks) -> Result<Verdict, Reason> {
        let Acks { count, acked_bytes: acked, marked_bytes: marked, growing_bytes: growing, .. } = *acks;
        self.hear(Told::Acks { count, acked, marked, growing, una: acks.last.una })
    }

    fn on_loss(&mut self, _: &Congestion) -> Result<Verdict, Reason> {
        self.hear(Told::Loss)
    }

    fn on_mark(&mut self, _: &Congestion) -> Result<Verdict, Reason> {
        self.hear(Told::Mark)
    }

    fn on_timer(&mut self, now: Time) -> Result<Verdict, Reason> {
        self.hear(Told::Timer(now))
    }
}

/// A configuration that has a module, and a flow of it.
fn begun(module: impl Module + 'static) -> Own {
    let mut config = Config { module: Some("mine.wasm".to_owned()), ..Config::default() };
    config.load(Arc::new(module)).unwrap();
    config.at_host().start(Start::of(10, MSS))
}

/// A flow whose program answers so, and what it hears.
fn listening(answers: Answers) -> (Own, Heard) {
    let heard = Heard::default();
    (begun(Listener(answers, heard.clone())), heard)
}

fn heard(of: &Heard) -> Vec<Told> {
    std::mem::take(&mut of.lock().unwrap())
}

fn verdict(window_bytes: u64) -> Verdict {
    Verdict { window_bytes, ..Verdict::default() }
}

fn sent(next: u64) -> Sent {
    Sent { now: Time::from_us(1), packet_bytes: 1_040, again: false, in_flight_bytes: next, next }
}

#[test]
fn each_event_is_told_and_its_answer_holds() {
    let (mut flow, told) = listening(|told| {
        Ok(match told {
            Told::Start => verdict(1),
            Told::Send { next } => verdict(*next),
            Told::Acks { .. } => Verdict { rate: Some(Rate::from_gbps(3)), ..verdict(3) },
            Told::Loss => verdict(4),
            Told::Mark => verdict(5),
            Told::Timer(_) => verdict(6),
        })
    });
    assert_eq!(flow.window_bytes(), 1);
    flow.on_send(&sent(2 * MSS));
    assert_eq!((flow.window_bytes(), flow.pacing()), (2 * MSS, None));
    flow.on_ack(&Ack { una: MSS, marked: true, ..Ack::of(MSS) });
    assert_eq!((flow.window_bytes(), flow.pacing()), (3, Some(Rate::from_gbps(3))));
    flow.on_congestion(&Congestion::of(Signal::Timeout { again: false }, 7 * MSS));
    assert_eq!((flow.window_bytes(), flow.pacing()), (4, None), "an answer without a rate takes it away");
    flow.on_congestion(&Congestion::of(Signal::Mark, 7 * MSS));
    assert_eq!(flow.window_bytes(), 5);
    flow.on_timer(Time::from_us(9));
    assert_eq!(flow.window_bytes(), 6);
    let acks = Told::Acks { count: 1, acked: MSS, marked: MSS, growing: 0, una: MSS };
    let timer = Told::Timer(Time::from_us(9));
    assert_eq!(heard(&told), [Told::Start, Told::Send { next: 2 * MSS }, acks, Told::Loss, Told::Mark, timer]);
}

#[test]
fn acknowledgements_are_gathered_for_as_long_as_was_asked_and_come_before_anything_else() {
    let (mut flow, told) =
        listening(|_| Ok(Verdict { quiet_bytes: 3 * MSS, quiet_until: 10 * MSS, ..verdict(10 * MSS) }));
    assert_eq!(heard(&told), [Told::Start]);
    let mut una = 0;
    let mut acknowledge = |flow: &mut Own, marked, phase| {
        una += MSS;
        flow.on_ack(&Ack { una, marked, phase, ..Ack::of(MSS) });
    };
    // Two that let a window grow; one with a mark and one in recovery do not; the third that does is the end.
    for (marked, phase) in [
        (false, Phase::Open),
        (true, Phase::Open),
        (false, Phase::Recovery),
        (false, Phase::Loss),
        (false, Phase::Open),
    ] {
        assert_eq!(heard(&told), []);
        acknowledge(&mut flow, marked, phase);
    }
    assert_eq!(heard(&told), [Told::Acks { count: 5, acked: 5 * MSS, marked: MSS, growing: 3 * MSS, una: 5 * MSS }]);
    // What was gathered is told before a loss is.
    acknowledge(&mut flow, false, Phase::Open);
    flow.on_congestion(&Congestion::of(Signal::Loss, 5 * MSS));
    let one = |una| Told::Acks { count: 1, acked: MSS, marked: 0, growing: MSS, una };
    assert_eq!(heard(&told), [one(6 * MSS), Told::Loss]);
    // Beyond `quiet_until` each is told at once.
    flow.on_ack(&Ack { una: 10 * MSS, ..Ack::of(MSS) });
    assert_eq!(heard(&told), []);
    flow.on_ack(&Ack { una: 11 * MSS, ..Ack::of(MSS) });
    assert_eq!(heard(&told), [Told::Acks { count: 2, acked: 2 * MSS, marked: 0, growing: 2 * MSS, una: 11 * MSS }]);
}

#[test]
fn a_timer_comes_after_the_time_that_was_asked_unless_it_is_turned_off() {
    let (mut flow, _) = listening(|told| {
        let timer = match told {
            Told::Start => Alarm::After(Duration::from_us(5)),
            Told::Loss => Alarm::Off,
            Told::Mark => Alarm::After(Duration::from_us(7)),
            _ => Alarm::Stays,
        };
        Ok(Verdict { timer, ..verdict(MSS) })
    });
    assert_eq!(flow.timer(), Some(Time::from_us(5)));
    flow.on_ack(&Ack { now: Time::from_us(2), ..Ack::of(MSS) });
    assert_eq!(flow.timer(), Some(Time::from_us(5)), "it stays");
    flow.on_congestion(&Congestion { now: Time::from_us(3), ..Congestion::of(Signal::Mark, MSS) });
    assert_eq!(flow.timer(), Some(Time::from_us(10)), "it is set anew");
    flow.on_timer(Time::from_us(10));
    assert_eq!(flow.timer(), None, "it comes once");
    flow.on_congestion(&Congestion::of(Signal::Mark, MSS));
    flow.on_congestion(&Congestion::of(Signal::Loss, MSS));
    assert_eq!(flow.timer(), None, "it is off");
}

#[test]
fn a_program_that_fails_is_asked_no_more_and_its_flow_says_why() {
    let (mut flow, told) = listening(|told| match told {
        Told::Mark => Err(Reason::new("no marks, please")),
        _ => Ok(verdict(4 * MSS)),
    });
    assert_eq!(flow.failed(), None);
    flow.on_congestion(&Congestion::of(Signal::Mark, 4 * MSS));
    assert_eq!(flow.failed(), Some("no marks, please"));
    heard(&told);
    flow.on_ack(&Ack::of(MSS));
    flow.on_send(&sent(MSS));
    assert_eq!((heard(&told), flow.window_bytes()), (Vec::new(), 4 * MSS));

    let (flow, _) = listening(|_| Err(Reason::new("not today")));
    assert_eq!(flow.failed(), Some("not today"));
    assert_eq!(flow.window_bytes(), 10 * MSS, "the initial one, for as long as someone asks");
}

#[test]
fn nonsense_is_refused_with_what_would_be_right() {
    let fine = [1, 0, 0, 0, 0];
    assert_eq!(Verdict::from_numbers(fine), Ok(verdict(1)));
    let off = Verdict::from_numbers([1, 0, u64::MAX, 0, 0]).unwrap();
    assert_eq!(off.timer, Alarm::Off);
    for (numbers, words) in [
        ([0, 0, 0, 0, 0], "a window of 0 bytes, which is not from 1 to 1000000000000"),
        ([u64::MAX, 0, 0, 0, 0], "a window of 18446744073709551615 bytes"),
        ([1, 999, 0, 0, 0], "a rate of 999 bits a second, which is not 0, for none, or from 1Kbps"),
        ([1, u64::MAX, 0, 0, 0], "a rate of 18446744073709551615 bits"),
        ([1, 0, 99_999, 0, 0], "a timer of 99999 ps, which is not from 100ns"),
        ([1, 0, u64::MAX - 1, 0, 0], "a timer of 18446744073709551614 ps"),
    ] {
        let reason = Verdict::from_numbers(numbers).unwrap_err();
        assert!(reason.words().contains(words), "{}", reason.words());
    }
}

#[test]
fn a_long_reason_keeps_its_end() {
    let long = format!("{}the last words", "ä".repeat(REASON_BYTES_MAX));
    let words = Reason::new(long).words();
    assert!(words.len() <= REASON_BYTES_MAX && words.starts_with("...ä") && words.ends_with("the last words"));
    assert!(std::ptr::eq(Reason::new("twice").words(), Reason::new("twice").words()), "each is kept once");
}

#[test]
fn settings_without_effect_are_advice_and_what_is_not_there_is_an_error() {
    let named = || Config { module: Some("a.wasm".to_owned()), ..Config::default() };
    let problem = |config: Config| Scheme::check(&config).unwrap_err().to_string();
    assert!(problem(Config::default()).contains("missing: name the file of a WebAssembly module"));
    assert!(problem(Config { python: Some("B".to_owned()), ..named() }).contains("there is python, too"));
    let threshold = Some(Bytes(30_000));
    let idle = Config { threshold, ..named() };
    assert_eq!(Scheme::check(&idle), Ok(()));
    assert!(Scheme::advice(&idle)[0].message.contains("has no effect without marks"));
    assert!(problem(Config { ecn: EcnUse::Classic, threshold: Some(Bytes(0)), ..named() }).contains("at least 1B"));
    let tcp = Tcp { initial_window: 0, ..Tcp::default() };
    assert!(problem(Config { tcp, ..named() }).contains("tcp.initial_window"));
    let settings = |name: &str, value| Settings::from([(name.to_owned(), Setting::Number(value))]);
    assert!(problem(Config { settings: settings("gain", f64::NAN), ..named() }).contains("settings.gain"));

    let listener = || Arc::new(Listener(|_| Ok(verdict(1)), Heard::default()));
    let mut config = Config { settings: settings("gain", 0.1), ..named() };
    assert!(Scheme::check(&config).is_ok() && !config.is_loaded());
    assert_eq!(Algorithm::check_on(&config).unwrap_err().key, "module");
    config.load(listener()).unwrap();
    assert_eq!((config.is_loaded(), config.digest.as_deref()), (true, Some("00ff")));
    assert!(Algorithm::check_on(&config).is_ok());
    let other = Config { digest: Some("beef".to_owned()), ..named() }.load(listener()).unwrap_err();
    assert!(other.key == "digest" && other.to_string().contains("has changed since"), "{other}");
    let unknown = Config { settings: settings("pain", 0.1), ..named() }.load(listener()).unwrap_err();
    assert_eq!(unknown.key, "settings.pain");
}

/// DCTCP as a program, and how often it was asked.
#[derive(Clone, Debug)]
struct Asked {
    calls: Arc<Mutex<u64>>,
    control: OwnDctcp,
}

/// RFC 8257 by the contract alone.
#[derive(Clone, Copy, Debug)]
struct OwnDctcp {
    mss: u64,
    window: u64,
    threshold: u64,
    counted: u64,
    window_end: u64,
    acked: u64,
    marked: u64,
    alpha: f64,
}

impl OwnDctcp {
    fn reduce(&mut self, bytes: u64) {
        self.threshold = bytes.max(2 * self.mss);
        (self.window, self.counted) = (self.threshold, 0);
    }

    fn verdict(&self) -> Verdict {
        let quiet_bytes = if self.window < self.threshold { 1 } else { self.window.saturating_sub(self.counted) };
        Verdict { quiet_bytes, quiet_until: self.window_end, ..verdict(self.window) }
    }
}

impl Module for Asked {
    fn digest(&self) -> &str {
        "dctcp"
    }

    fn check(&self, _: &Settings) -> Result<(), Problem> {
        Ok(())
    }

    fn host(self: Arc<Self>, _: &Settings) -> Arc<dyn Host> {
        self
    }
}

impl Host for Asked {
    fn start(&self, start: &Start) -> Result<(Box<dyn Program>, Verdict), Reason> {
        let control = OwnDctcp { mss: start.mss_bytes, window: start.window_bytes, ..self.control };
        Ok((Box::new(Asked { control, ..self.clone() }), control.verdict()))
    }
}

impl Program for Asked {
    fn on_send(&mut self, _: &Sent) -> Result<Verdict, Reason> {
        unreachable!("it does not want to know")
    }

    fn on_ack(&mut self, acks: &Acks) -> Result<Verdict, Reason> {
        *self.calls.lock().unwrap() += 1;
        let of = &mut self.control;
        of.acked += acks.acked_bytes;
        of.marked += acks.marked_bytes;
        if acks.last.una > of.window_end {
            of.alpha = of.alpha * (1.0 - 0.0625) + 0.0625 * (of.marked as f64 / of.acked as f64);
            (of.window_end, of.acked, of.marked) = (acks.last.next, 0, 0);
        }
        if of.window < of.threshold {
            let segments = if acks.last.phase == Phase::Loss { 1 } else { 2 };
            of.window += acks.growing_bytes.min(segments * of.mss);
        } else {
            of.counted += acks.growing_bytes;
            // One acknowledgement may be for more than a window: what is counted beyond it waits for the next that may
            // let the window grow, and one that may not gets nothing of it.
            let grows = acks.last.limited && !acks.last.marked && acks.last.phase != Phase::Recovery;
            if of.counted >= of.window && grows {
                of.counted -= of.window;
                of.window += of.mss;
            }
        }
        Ok(of.verdict())
    }

    fn on_loss(&mut self, loss: &Congestion) -> Result<Verdict, Reason> {
        let of = &mut self.control;
        if loss.signal != (Signal::Timeout { again: true }) {
            of.reduce(loss.flight_bytes / 2);
        }
        if matches!(loss.signal, Signal::Timeout { .. }) {
            of.window = of.mss;
        }
        Ok(of.verdict())
    }

    fn on_mark(&mut self, _: &Congestion) -> Result<Verdict, Reason> {
        let of = &mut self.control;
        of.reduce((of.window as f64 * (1.0 - of.alpha / 2.0)) as u64);
        Ok(of.verdict())
    }

    fn on_timer(&mut self, _: Time) -> Result<Verdict, Reason> {
        unreachable!("it sets none")
    }
}

/// A flow of DCTCP by the contract, and the count of its calls.
fn own_dctcp() -> (Own, Arc<Mutex<u64>>) {
    let calls = Arc::new(Mutex::new(0));
    let control =
        OwnDctcp { mss: 0, window: 0, threshold: u64::MAX, counted: 0, window_end: 0, acked: 0, marked: 0, alpha: 1.0 };
    (begun(Asked { calls: calls.clone(), control }), calls)
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Ack { segments: u64, marked: bool, limited: bool, phase: Phase },
    Congestion(Signal),
}

fn any_step() -> impl Strategy<Value = Step> {
    let phase = prop_oneof![8 => Just(Phase::Open), 1 => Just(Phase::Recovery), 1 => Just(Phase::Loss)];
    let segments = prop_oneof![9 => 0..4u64, 1 => 4..60u64];
    let ack = (segments, prop::bool::weighted(0.2), prop::bool::weighted(0.9), phase)
        .prop_map(|(segments, marked, limited, phase)| Step::Ack { segments, marked, limited, phase });
    let signal =
        prop_oneof![Just(Signal::Mark), Just(Signal::Loss), any::<bool>().prop_map(|again| Signal::Timeout { again })];
    prop_oneof![30 => ack, 1 => signal.prop_map(Step::Congestion)]
}

proptest! {
    /// Whatever comes, DCTCP by the contract has the window of DCTCP in Rust after each step, though it does not hear
    /// of each.
    #[test]
    fn gathered_acknowledgements_lead_to_the_same_windows(steps in prop::collection::vec(any_step(), 1..600)) {
        let mut built_in = dctcp::Config::default().start(Start::of(10, MSS));
        let (mut own, _) = own_dctcp();
        let (mut una, mut timed_out) = (0, false);
        for step in steps {
            match step {
                Step::Ack { segments, marked, limited, phase } => {
                    timed_out = false;
                    una += segments * MSS;
                    let next = una + built_in.window_bytes();
                    let ack = Ack { una, next, marked, limited, phase, ..Ack::of(segments * MSS) };
                    built_in.on_ack(&ack);
                    own.on_ack(&ack);
                }
                Step::Congestion(signal) => {
                    // The same segment times out again only if nothing has come in between.
                    let again = timed_out;
                    timed_out = matches!(signal, Signal::Timeout { .. });
                    let signal = if timed_out { Signal::Timeout { again } } else { signal };
                    let congestion = Congestion::of(signal, built_in.window_bytes());
                    built_in.on_congestion(&congestion);
                    own.on_congestion(&congestion);
                }
            }
            prop_assert_eq!(own.window_bytes(), built_in.window_bytes());
        }
    }
}

#[test]
fn dctcp_is_asked_some_twice_a_window() {
    let (mut flow, calls) = own_dctcp();
    flow.on_congestion(&Congestion::of(Signal::Loss, 200 * MSS));
    assert_eq!(flow.window_bytes(), 100 * MSS);
    let before = *calls.lock().unwrap();
    let mut una = 0;
    for _ in 0..1_000 {
        una += MSS;
        flow.on_ack(&Ack { una, next: una + flow.window_bytes(), ..Ack::of(MSS) });
    }
    let asked = *calls.lock().unwrap() - before;
    assert!((18..=22).contains(&asked), "in ten windows: {asked}");
}
