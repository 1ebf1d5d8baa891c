//! The contract of a user's own congestion control: plain numbers in, plain numbers out, in any language.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use units::{Duration, Problem, Rate, Time};

use super::Settings;
use crate::tcp::control::{Ack, Congestion, Phase, Signal, Start};

/// A control that has been read and found sound: what a scenario names.
pub trait Module: fmt::Debug + Send + Sync {
    /// A digest of what determines its behaviour, settings apart, in hexadecimal.
    fn digest(&self) -> &str;

    /// Refuses settings that it does not know. Keys of errors are relative to the table of settings.
    fn check(&self, settings: &Settings) -> Result<(), Problem>;

    /// Its part in one host. A host's part sees the flows of that host alone, so that no result depends on which hosts
    /// share a thread.
    fn host(self: Arc<Self>, settings: &Settings) -> Arc<dyn Host>;
}

/// A module's part in one host.
pub trait Host: Send + Sync {
    /// A new flow, and what it may do at first.
    fn start(&self, start: &Start) -> Result<(Box<dyn Program>, Verdict), Reason>;
}

/// The control of one flow. Each call reports an event and returns the verdict that holds from now on. A call that
/// fails ends the flow, with the reason.
pub trait Program: Send {
    /// Whether it wants [`Program::on_send`].
    fn wants_sends(&self) -> bool {
        false
    }

    /// A packet of the flow has left.
    fn on_send(&mut self, sent: &Sent) -> Result<Verdict, Reason>;

    /// Acknowledgements have arrived: one, or several if the program asked not to be called for each
    /// ([`Verdict::quiet_bytes`]).
    fn on_ack(&mut self, acks: &Acks) -> Result<Verdict, Reason>;

    /// Data were lost: at most once in each window of data, except for timeouts.
    fn on_loss(&mut self, loss: &Congestion) -> Result<Verdict, Reason>;

    /// Data were marked: at most once in each window of data.
    fn on_mark(&mut self, mark: &Congestion) -> Result<Verdict, Reason>;

    /// The time that it asked for has come.
    fn on_timer(&mut self, now: Time) -> Result<Verdict, Reason>;
}

/// What becomes of a flow's timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alarm {
    /// It stays as it is.
    #[default]
    Stays,
    /// It is off.
    Off,
    /// It comes after so long, and not when it would have.
    After(Duration),
}

/// What a flow may do from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// How much may be in flight. The sender always allows one segment.
    pub window_bytes: u64,
    /// The rate at which packets may leave, headers included; `None` as the window allows.
    pub rate: Option<Rate>,
    /// What becomes of its timer.
    pub timer: Alarm,
    /// Acknowledgements may be gathered until they let a window grow by this much ([`Acks::growing_bytes`]) ...
    pub quiet_bytes: u64,
    /// ... or until everything up to here has arrived and something beyond, whichever comes first. If either is 0,
    /// there is a call for each acknowledgement. Nothing is held back behind another call: what was gathered comes
    /// first.
    pub quiet_until: u64,
}

impl Verdict {
    /// A window above this is nonsense: a second at 8 Tbps.
    pub const WINDOW_BYTES_MAX: u64 = 1_000_000_000_000;
    /// A lower rate, which takes 12 s for a packet, is nonsense.
    pub const RATE_MIN: Rate = Rate::from_bps(1_000);
    /// So is a higher one.
    pub const RATE_MAX: Rate = Rate::from_bps(1_000_000_000_000_000);
    /// An earlier timer would make a run out of nothing else.
    pub const TIMER_MIN: Duration = Duration::from_ns(100);
    /// A later one is nonsense.
    pub const TIMER_MAX: Duration = Duration::from_ms(86_400_000);

    /// A verdict from plain numbers. At 0 there is no rate, and the timer stays as it is; [`u64::MAX`] turns it off.
    pub fn from_numbers([window, rate, timer, quiet_bytes, quiet_until]: [u64; 5]) -> Result<Verdict, Reason> {
        if window == 0 || window > Verdict::WINDOW_BYTES_MAX {
            let most = Verdict::WINDOW_BYTES_MAX;
            return Err(Reason::new(format!("answered a window of {window} bytes, which is not from 1 to {most}")));
        }
        let known = Rate::from_bps(rate);
        if rate != 0 && !(Verdict::RATE_MIN..=Verdict::RATE_MAX).contains(&known) {
            let (least, most) = (Verdict::RATE_MIN, Verdict::RATE_MAX);
            return Err(Reason::new(format!(
                "answered a rate of {rate} bits a second, which is not 0, for none, or from {least} to {most}"
            )));
        }
        let timer = match (timer, Duration::from_ps(timer)) {
            (0, _) => Alarm::Stays,
            (u64::MAX, _) => Alarm::Off,
            (_, after) if (Verdict::TIMER_MIN..=Verdict::TIMER_MAX).contains(&after) => Alarm::After(after),
            _ => {
                let (least, most) = (Verdict::TIMER_MIN, Verdict::TIMER_MAX);
                return Err(Reason::new(format!(
                    "answered a timer of {timer} ps, which is not from {least} to {most}"
                )));
            }
        };
        Ok(Verdict { window_bytes: window, rate: (rate != 0).then_some(known), timer, quiet_bytes, quiet_until })
    }
}

/// A packet that has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub now: Time,
    /// Its length, headers included.
    pub packet_bytes: u64,
    /// Whether it had been sent before.
    pub again: bool,
    /// In flight now (RFC 6675's pipe), in whole segments.
    pub in_flight_bytes: u64,
    /// The first byte that has not been sent: SND.NXT.
    pub next: u64,
}

/// What acknowledgements said. Sums cover all acknowledgements since the last call; other values are those of the last
/// one.
#[derive(Clone, Copy, Debug)]
pub struct Acks {
    /// How many.
    pub count: u64,
    /// Bytes newly acknowledged cumulatively.
    pub acked_bytes: u64,
    /// Those of them that came with a mark.
    pub marked_bytes: u64,
    /// Those of them that let a window grow: without a mark, outside fast recovery, while the window was full.
    pub growing_bytes: u64,
    /// Bytes newly known to have arrived, SACKed bytes included, in whole segments.
    pub delivered_bytes: u64,
    /// Bytes newly known to be lost, in whole segments.
    pub lost_bytes: u64,
    /// The least round trip that one of them measured.
    pub rtt_min: Option<Duration>,
    /// The last one.
    pub last: Ack,
}

impl Acks {
    /// One acknowledgement.
    pub(super) fn of(ack: &Ack) -> Acks {
        let grows = ack.limited && !ack.marked && ack.phase != Phase::Recovery;
        Acks {
            count: 1,
            acked_bytes: ack.acked_bytes,
            marked_bytes: if ack.marked { ack.acked_bytes } else { 0 },
            growing_bytes: if grows { ack.acked_bytes } else { 0 },
            delivered_bytes: ack.delivered_bytes,
            lost_bytes: ack.lost_bytes,
            rtt_min: ack.rtt,
            last: *ack,
        }
    }

    /// Another has come. In place: most acknowledgements only add to what was gathered.
    pub(super) fn add(&mut self, ack: &Ack) {
        let one = Acks::of(ack);
        self.count += 1;
        self.acked_bytes += one.acked_bytes;
        self.marked_bytes += one.marked_bytes;
        self.growing_bytes += one.growing_bytes;
        self.delivered_bytes += one.delivered_bytes;
        self.lost_bytes += one.lost_bytes;
        self.rtt_min = self.rtt_min.into_iter().chain(one.rtt_min).min();
        self.last = one.last;
    }
}

/// What a new flow knows, in plain numbers: times in picoseconds.
pub fn start_numbers(of: &Start) -> [u64; 10] {
    let Start { flow, now, mss_bytes, window_bytes, packet_bytes, rtt, base_rtt, hop_rtt, .. } = *of;
    let (serialisation, seed) = (of.virtual_serialisation.ps(), of.seed);
    let [rtt, base, hop] = [rtt.ps(), base_rtt.ps(), hop_rtt.ps()];
    [mss_bytes, window_bytes, packet_bytes, rtt, base, hop, serialisation, seed, now.ps(), flow.0.into()]
}

/// An event of acknowledgements, in plain numbers: times in picoseconds, rates in bits a second, 0 for missing values,
/// 1 for true.
pub fn acks_numbers(of: &Acks) -> [u64; 23] {
    let ps = |of: Option<Duration>| of.map_or(0, Duration::ps);
    let last = &of.last;
    let phase = match last.phase {
        Phase::Open => 0,
        Phase::Recovery => 1,
        Phase::Loss => 2,
    };
    [
        last.now.ps(),
        of.count,
        of.acked_bytes,
        of.marked_bytes,
        of.growing_bytes,
        of.delivered_bytes,
        of.lost_bytes,
        last.una,
        last.next,
        last.in_flight_bytes,
        last.in_flight_before_bytes,
        ps(last.rtt),
        ps(of.rtt_min),
        ps(last.delay),
        last.srtt.ps(),
        last.rate.map_or(0, |sample| sample.rate.bps()),
        last.rate.is_some_and(|sample| sample.limited).into(),
        ps(last.virtual_delay),
        last.hops.into(),
        last.marked.into(),
        last.limited.into(),
        phase,
        last.rate.map_or(0, |sample| sample.delivered_bytes),
    ]
}

/// A congestion event in plain numbers: the time, what it was (0 a mark, 1 a loss, 2 a timeout, 3 another timeout of
/// the same segment), and the bytes in flight.
pub fn congestion_numbers(of: &Congestion) -> [u64; 3] {
    let signal = match of.signal {
        Signal::Mark => 0,
        Signal::Loss => 1,
        Signal::Timeout { again } => 2 + u64::from(again),
    };
    [of.now.ps(), signal, of.flight_bytes]
}

/// A packet that has left, in plain numbers.
pub fn sent_numbers(of: &Sent) -> [u64; 5] {
    [of.now.ps(), of.packet_bytes, of.again.into(), of.in_flight_bytes, of.next]
}

/// Why a flow has failed, in the words of its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason(&'static str);

/// Bytes of a reason; what is longer is cut.
pub const REASON_BYTES_MAX: usize = 2_000;

/// A process keeps so many different ones. They live as long as it does: events of flows are plain values, and few
/// programs fail in many ways.
const REASONS_MAX: usize = 10_000;

impl Reason {
    /// A reason of these words.
    pub fn new(words: impl Into<String>) -> Reason {
        static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let mut words: String = words.into();
        if words.len() > REASON_BYTES_MAX {
            // A traceback says at its end what went wrong.
            let from = (words.len() - REASON_BYTES_MAX + "...".len()..).find(|&at| words.is_char_boundary(at));
            words = format!("...{}", &words[from.unwrap_or(words.len())..]);
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.get(words.as_str()) {
            return Reason(same);
        }
        if known.len() >= REASONS_MAX {
            return Reason("its program failed; this process has seen too many reasons to keep another");
        }
        let kept: &'static str = Box::leak(words.into_boxed_str());
        known.insert(kept);
        Reason(kept)
    }

    /// The words.
    pub fn words(self) -> &'static str {
        self.0
    }
}
