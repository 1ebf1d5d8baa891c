//! A user's own congestion control: a WebAssembly module or a Python class instead of a control in Rust.
//!
//! Header, loss recovery and receiver are TCP's. The program answers what happens to a flow with a window and, if it
//! likes, a rate and a timer ([`contract`]). This crate does not run programs itself: the scenario's reader makes a
//! [`contract::Module`] of the file or class that the scenario names ([`Config::load`]), so that this crate reads no
//! file and knows no language.
//!
//! A program may be wrong. What it answers is checked, and one that fails ends its flow with the reason; other flows
//! go on. It sees its own flows alone, and no clock, so a run is as deterministic as any.
//!
//! Most events are acknowledgements. A program whose answer would not change says so by
//! [`contract::Verdict::quiet_bytes`], and gets several acknowledgements in one call. DCTCP is then called about twice
//! a window, and decides as if it were called for each.

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::{Acks, Alarm, Module, Program, Sent, Verdict};
use node::{Endpoint, EndpointParams, Marking};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem, Rate, Time};

use super::control::{Ack, Algorithm, Congestion, Control, Ecn, Signal, Start};
use super::{DelayedAck, Plb};
use ::contract::{
    About, Capabilities, Compared, CongestionSignal, HeaderFormat, NetworkView, Scheme, SwitchRequirements,
};

pub mod contract;

/// Settings of a program, by name.
pub type Settings = BTreeMap<String, Setting>;

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ProgramSetting")]
pub enum Setting {
    /// Yes or no.
    Bool(bool),
    /// A number.
    Number(f64),
    /// Words.
    Text(String),
}

/// Configuration of your own congestion control.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "CustomConfig")]
pub struct Config {
    /// The file of a WebAssembly module, relative to the scenario's folder. Default: none; this or `python` is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The name of a class in Python, a `clearway.Control`. A program that has the class gives it to
    /// `Scenario.with_`; a file can only say which it was. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// Digest of the module's content, or of the class's source, which results record. If it is given, a module or
    /// class with another digest is refused. Default: the digest of what is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Settings of the program, by its own names. Default: the program's defaults.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: Settings,
    /// Congestion marks: `off`, `classic` (a mark counts like a loss, RFC 3168), or `proportional` (the share of marked
    /// bytes counts, RFC 8257). Default: `off`.
    pub ecn: EcnUse,
    /// Length of the queue from which on switches mark. Needs `ecn`. Default: a seventh of the bandwidth-delay product,
    /// as for `dctcp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Bytes>,
    /// Whether acknowledgements bring samples of the delivery rate. Default: false.
    pub rates: bool,
    /// What TCP does beneath the program.
    pub tcp: Tcp,
    /// What has been made of them.
    #[serde(skip)]
    made: Option<Made>,
}

/// Settings of TCP under your own congestion control, as under any other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "CustomTcp")]
pub struct Tcp {
    /// Initial window, in segments (RFC 6928). The program learns it and may replace it. Default: 10.
    pub initial_window: u16,
    /// Whether each message opens a connection first, which costs a round trip. Default: false.
    pub handshake: bool,
    /// Delayed acknowledgements. Default: none, each packet is acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<DelayedAck>,
    /// Minimum retransmission timeout. Default: 1ms.
    #[schemars(extend("x-least" = "100ns"))]
    pub rto_min: Duration,
    /// Maximum retransmission timeout. Default: 60s.
    #[schemars(extend("x-least" = "100ns"))]
    pub rto_max: Duration,
    /// Granularity of the clock that measures round trips: RFC 6298's G. Default: 1us.
    pub clock_granularity: Duration,
    /// How many later segments must have arrived before one counts as lost (RFC 6675's DupThresh). Default: 3.
    pub reordering: u32,
    /// Losses are found by time (RACK, RFC 8985), lost retransmissions too, instead of by `reordering`. Default: false.
    pub rack: bool,
    /// After two round trips without an acknowledgement a segment probes for a lost tail (TLP, RFC 8985 section 7).
    /// Only with `rack`. Default: false.
    pub tail_loss_probe: bool,
    /// In a recovery as much leaves as arrives, in the proportion by which the window shrinks (PRR, RFC 9937). Not for
    /// programs that pace. Default: false.
    pub prr: bool,
    /// Priority class of data. Default: 1.
    pub class: u8,
    /// Priority class of acknowledgements. Default: that of data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_class: Option<u8>,
    /// Protective load balancing (PLB), as for `dctcp`. Needs `ecn = "proportional"`. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plb: Option<Plb>,
}

impl Default for Tcp {
    /// As beneath any other control.
    fn default() -> Tcp {
        let usual = super::Config::<super::newreno::Config>::default();
        Tcp {
            initial_window: usual.initial_window,
            handshake: usual.handshake,
            delayed_ack: usual.delayed_ack,
            rto_min: usual.rto_min,
            rto_max: usual.rto_max,
            clock_granularity: usual.clock_granularity,
            reordering: usual.reordering,
            rack: usual.rack,
            tail_loss_probe: usual.tail_loss_probe,
            prr: usual.prr,
            class: usual.class,
            ack_class: usual.ack_class,
            plb: usual.plb,
        }
    }
}

/// How your own congestion control uses marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EcnUse {
    /// Not at all.
    #[default]
    Off,
    /// A mark counts like a loss (RFC 3168).
    Classic,
    /// The share of marked bytes counts (RFC 8257).
    Proportional,
}

/// A module that was read. Equal scenarios have equal runs: a module's digest is part of the scenario.
#[derive(Clone)]
struct Made {
    module: Arc<dyn Module>,
    /// Once it is in a host.
    host: Option<Arc<dyn contract::Host>>,
}

impl PartialEq for Made {
    fn eq(&self, other: &Made) -> bool {
        self.module.digest() == other.module.digest()
    }
}

impl std::fmt::Debug for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.module.fmt(f)
    }
}

impl Config {
    /// Brings what a reader has made of [`Config::module`] or [`Config::python`]. Keys of errors are relative to the
    /// control's table.
    pub fn load(&mut self, module: Arc<dyn Module>) -> Result<(), Problem> {
        let digest = module.digest().to_owned();
        if let Some(given) = self.digest.as_ref().filter(|given| **given != digest) {
            let message = format!(
                "{given} is not the digest of what is there, {digest}: it has changed since; delete this key to run it \
                 as it is now"
            );
            return Err(Problem::new("digest", message));
        }
        module.check(&self.settings).map_err(|problem| problem.under("settings"))?;
        self.digest = Some(digest);
        self.made = Some(Made { module, host: None });
        Ok(())
    }

    /// Whether there is something to run.
    pub fn is_loaded(&self) -> bool {
        self.made.is_some()
    }

    /// TCP with this control.
    fn over_tcp(&self) -> super::Config<Config> {
        let Tcp {
            initial_window,
            handshake,
            delayed_ack,
            rto_min,
            rto_max,
            clock_granularity,
            reordering,
            rack,
            tail_loss_probe,
            prr,
            class,
            ack_class,
            plb,
        } = self.tcp;
        super::Config {
            initial_window,
            handshake,
            delayed_ack,
            rto_min,
            rto_variance_min: Duration::ZERO,
            rto_max,
            clock_granularity,
            reordering,
            rack,
            tail_loss_probe,
            prr,
            class,
            ack_class,
            plb,
            control: self.clone(),
        }
    }
}

/// Keys of TCP's problems as they stand here.
fn place(problem: Problem) -> Problem {
    match problem.key.strip_prefix("control.") {
        Some(own) => Problem { key: own.to_owned(), ..problem },
        None => problem.under("tcp"),
    }
}

impl Scheme for Config {
    fn about(&self) -> About {
        <Config as Algorithm>::ABOUT
    }

    fn capabilities(&self) -> Capabilities {
        // What it does depends on what it is given, so that there is nothing to compare by itself.
        Capabilities { compared: Compared::No, ..self.over_tcp().capabilities() }
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        self.over_tcp().headers()
    }

    fn check(&self) -> Result<(), Problem> {
        Scheme::check(&self.over_tcp()).map_err(place)
    }

    fn advice(&self) -> Vec<Problem> {
        let idle = self.ecn == EcnUse::Off && self.threshold.is_some();
        let message = "has no effect without marks; write ecn = \"proportional\" or \"classic\", or delete it";
        idle.then(|| Problem::new("threshold", message)).into_iter().collect()
    }

    fn check_on(&self, network: &NetworkView) -> Result<(), Problem> {
        Scheme::check_on(&self.over_tcp(), network).map_err(place)
    }

    fn endpoint(&self, site: &EndpointParams, network: &NetworkView) -> Box<dyn Endpoint> {
        self.over_tcp().endpoint(site, network)
    }

    fn requirements(&self, site: &EndpointParams) -> SwitchRequirements {
        self.over_tcp().requirements(site)
    }
}

impl Algorithm for Config {
    type Control = Own;

    const ABOUT: About = About {
        title: "A control of one's own",
        source: "",
        summary: "TCP whose window and rate are a WebAssembly module's or a Python class's.",
        needs: "a module (module = \"mycc.wasm\") or a class (clearway.Control)",
    };

    const OWN: bool = true;

    const DRAWS: bool = true;

    fn samples_rate(&self) -> bool {
        self.rates
    }

    fn check(&self) -> Result<(), Problem> {
        match (&self.module, &self.python) {
            (None, None) => {
                let message = "missing: name the file of a WebAssembly module, such as \"mycc.wasm\", or give a class \
                               in Python to Scenario.with_(transport=...)";
                return Err(Problem::new("module", message));
            }
            (Some(_), Some(_)) => return Err(Problem::new("module", "there is python, too; delete one of them")),
            _ => {}
        }
        if self.threshold == Some(Bytes(0)) {
            return Err(Problem::new("threshold", "at 0 every packet would be marked; write at least 1B"));
        }
        let infinite = |value: &Setting| matches!(value, Setting::Number(number) if !number.is_finite());
        if let Some((name, _)) = self.settings.iter().find(|(_, value)| infinite(value)) {
            return Err(Problem::new(format!("settings.{name}"), "is not a finite number"));
        }
        Ok(())
    }

    fn check_on(&self) -> Result<(), Problem> {
        match (&self.made, &self.python) {
            (Some(_), _) => Ok(()),
            (None, Some(class)) => {
                let message = format!(
                    "\"{class}\" is a class in Python, which a file can't hold: run the scenario from a program that \
                     has it, by Scenario.with_(transport={class}(...))"
                );
                Err(Problem::new("python", message))
            }
            (None, None) => Err(Problem::new("module", "was not read: read the scenario by its file")),
        }
    }

    fn ecn(&self) -> Ecn {
        match self.ecn {
            EcnUse::Off => Ecn::Off,
            EcnUse::Classic => Ecn::Classic,
            EcnUse::Proportional => Ecn::Proportional,
        }
    }

    fn signal(&self, site: &EndpointParams) -> CongestionSignal {
        if self.ecn == EcnUse::Off {
            return CongestionSignal::Drop;
        }
        let threshold = self.threshold.unwrap_or_else(|| super::dctcp::threshold(site));
        CongestionSignal::Ecn(Marking::Step { threshold })
    }

    fn at_host(&self) -> Config {
        let mut own = self.clone();
        if let Some(made) = &mut own.made {
            made.host = Some(made.module.clone().host(&self.settings));
        }
        own
    }

    fn start(&self, start: Start) -> Own {
        let host = self.made.as_ref().and_then(|made| made.host.as_ref()).expect("checked when the plan was made");
        Own::new(host.start(&start), &start)
    }
}

/// A flow's program, and what it has answered last.
#[derive(node::State)]
#[state(
    refuse("a congestion control does not say what of its state moves"),
    unsaved("a congestion control of your own keeps state that Clearway can't write down")
)]
pub struct Own {
    /// `None` once it has failed.
    program: Option<Box<dyn Program>>,
    verdict: Verdict,
    /// What it has not been told yet.
    gathered: Option<Acks>,
    timer: Option<Time>,
    failed: Option<&'static str>,
}

impl Own {
    fn new(begun: Result<(Box<dyn Program>, Verdict), contract::Reason>, start: &Start) -> Own {
        let waiting = Verdict { window_bytes: start.window_bytes, ..Verdict::default() };
        let mut own = Own { program: None, verdict: waiting, gathered: None, timer: None, failed: None };
        match begun {
            Ok((program, verdict)) => {
                own.program = Some(program);
                own.hold(start.now, verdict);
            }
            Err(reason) => own.failed = Some(reason.words()),
        }
        own
    }

    /// A verdict holds from now on.
    fn hold(&mut self, now: Time, verdict: Verdict) {
        self.verdict = verdict;
        match verdict.timer {
            Alarm::Stays => {}
            Alarm::Off => self.timer = None,
            Alarm::After(after) => self.timer = Some(now.saturating_add(after)),
        }
    }

    /// Tells the program something, behind what was gathered.
    fn tell(&mut self, now: Time, what: impl FnOnce(&mut dyn Program) -> Result<Verdict, contract::Reason>) {
        self.tell_gathered(now);
        let answer = self.program.as_mut().map(|program| what(&mut **program));
        self.poll_user_control(now, answer);
    }

    /// Tells the program what was gathered, if anything was.
    fn tell_gathered(&mut self, now: Time) {
        let Some(acks) = &self.gathered else { return };
        let answer = self.program.as_mut().map(|program| program.on_ack(acks));
        self.gathered = None;
        self.poll_user_control(now, answer);
    }

    /// What a program has answered, if there is one.
    fn poll_user_control(&mut self, now: Time, answer: Option<Result<Verdict, contract::Reason>>) {
        match answer {
            None => {}
            Some(Ok(verdict)) => self.hold(now, verdict),
            Some(Err(reason)) => (self.program, self.failed) = (None, Some(reason.words())),
        }
    }
}

impl Control for Own {
    fn on_ack(&mut self, ack: &Ack) {
        match &mut self.gathered {
            Some(acks) => acks.add(ack),
            none => *none = Some(Acks::of(ack)),
        }
        let growing_bytes = self.gathered.as_ref().map_or(0, |acks| acks.growing_bytes);
        if growing_bytes >= self.verdict.quiet_bytes || ack.una > self.verdict.quiet_until {
            self.tell_gathered(ack.now);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.tell(congestion.now, |program| match congestion.signal {
            Signal::Mark => program.on_mark(congestion),
            Signal::Loss | Signal::Timeout { .. } => program.on_loss(congestion),
        });
    }

    fn window_bytes(&self) -> u64 {
        self.verdict.window_bytes
    }

    fn pacing(&self) -> Option<Rate> {
        self.verdict.rate
    }

    fn on_send(&mut self, sent: &Sent) {
        if self.program.as_ref().is_some_and(|program| program.wants_sends()) {
            self.tell(sent.now, |program| program.on_send(sent));
        }
    }

    fn on_timer(&mut self, now: Time) {
        self.timer = None;
        self.tell(now, |program| program.on_timer(now));
    }

    fn timer(&self) -> Option<Time> {
        self.timer
    }

    fn failed(&self) -> Option<&'static str> {
        self.failed
    }
}

#[cfg(test)]
mod tests;
