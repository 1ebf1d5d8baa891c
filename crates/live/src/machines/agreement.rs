//! The messages of machines before and after a run, on the control connection.
//!
//! Every message is either the expected one (1, then its content) or an error (0, then its text), which ends the run on
//! both sides.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;

use ::run::Plan;
use node::wire::{Malformed, Reader, Writer};

use super::control::{self, Control};
use super::trunk;
use crate::frame;

/// Words of another machine are cut to this many bytes.
const SAID_MAX: usize = 2_000;

/// What a machine says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Intro {
    pub build: String,
    /// Where its trunks end.
    pub port: u16,
    /// The scenario that it has been given, if it has.
    pub scenario: Option<String>,
}

/// What it is told to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setup {
    pub machine: u32,
    pub machines: u32,
    /// Whether programs send messages.
    pub programs: bool,
    pub scenario: String,
}

/// What all need to reach each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Go {
    pub session: [u8; 32],
    /// Port of the first machine, and where the others are.
    pub port: u16,
    pub others: Vec<SocketAddr>,
}

/// Of which build and which formats a machine is.
pub(crate) fn build(build: &str) -> String {
    format!("{build}, formats {}/{}/{}", control::VERSION, trunk::VERSION, frame::VERSION)
}

/// The parts in which two builds differ, such as "commit, source".
fn differing(ours: &str, theirs: &str) -> String {
    let parts = ours.split(", ").zip(theirs.split(", ")).filter(|(ours, theirs)| ours != theirs);
    let named = parts.map(|(ours, _)| ours.split_once(' ').map_or(ours, |(name, _)| name));
    named.collect::<Vec<_>>().join(", ")
}

/// Says what is expected.
pub(crate) fn say(control: &Control, words: &[u8]) -> io::Result<()> {
    control.send(&[&[1], words].concat())
}

/// Says why it can't go on, if the other still hears it.
pub(crate) fn refuse(control: &Control, why: &str) {
    let _ = control.send(&[&[0], why.as_bytes()].concat());
}

/// Hears what is expected.
pub(crate) fn hear(control: &Control) -> io::Result<Vec<u8>> {
    let mut words = control.receive()?;
    match words.first() {
        Some(1) => Ok(words.split_off(1)),
        Some(0) => {
            let why = String::from_utf8_lossy(&words[1..]);
            Err(io::Error::other(why.chars().filter(|of| !of.is_control()).take(SAID_MAX).collect::<String>()))
        }
        _ => Err(io::Error::other("it says nothing that makes sense")),
    }
}

fn put_text(to: &mut Writer<'_>, text: &str) {
    to.u32(text.len() as u32);
    to.bytes(text.as_bytes());
}

fn text(from: &mut Reader<'_>) -> Result<String, Malformed> {
    let length = from.u32()? as usize;
    let bytes = from.bytes(length)?.to_vec();
    String::from_utf8(bytes).map_err(|_| Malformed { what: "text of a machine" })
}

fn ended<T>(from: &Reader<'_>, read: T) -> Result<T, Malformed> {
    if from.rest().is_empty() { Ok(read) } else { Err(Malformed { what: "words of a machine" }) }
}

impl Intro {
    pub fn emit(&self) -> Vec<u8> {
        let mut words = Vec::new();
        let mut to = Writer::new(&mut words);
        put_text(&mut to, &self.build);
        to.u16(self.port);
        to.u8(u8::from(self.scenario.is_some()));
        put_text(&mut to, self.scenario.as_deref().unwrap_or_default());
        words
    }

    pub fn parse(words: &[u8]) -> Result<Intro, Malformed> {
        let mut from = Reader::new(words, "words of a machine");
        let (build, port, has, scenario) = (text(&mut from)?, from.u16()?, from.u8()?, text(&mut from)?);
        ended(&from, Intro { build, port, scenario: (has != 0).then_some(scenario) })
    }

    /// Whether such a machine can take part: of this build, in this scenario.
    pub fn check(&self, ours: &str, scenario: &str) -> Result<(), String> {
        if self.build != ours {
            let (theirs, what) = (&self.build, differing(ours, &self.build));
            let which = format!("the first machine is of {ours}, the other of {theirs}");
            return Err(format!("builds differ: {which}; the difference is in: {what}; install one build on both"));
        }
        let Some(theirs) = self.scenario.as_deref().filter(|theirs| *theirs != scenario) else { return Ok(()) };
        let mut said = "scenarios differ: ".to_owned();
        let lines = || scenario.lines().zip(theirs.lines()).find(|(ours, theirs)| ours != theirs);
        let _ = match lines() {
            Some((ours, theirs)) => write!(said, "the first machine has `{ours}` where the other has `{theirs}`"),
            None => write!(said, "one has lines that the other has not"),
        };
        said.push_str("; give both the same, or the other none");
        Err(said)
    }
}

impl Setup {
    pub fn emit(&self) -> Vec<u8> {
        let mut words = Vec::new();
        let mut to = Writer::new(&mut words);
        to.u32(self.machine);
        to.u32(self.machines);
        to.u8(self.programs.into());
        put_text(&mut to, &self.scenario);
        words
    }

    pub fn parse(words: &[u8]) -> Result<Setup, Malformed> {
        let mut from = Reader::new(words, "words of the first machine");
        let (machine, machines, programs) = (from.u32()?, from.u32()?, from.u8()? != 0);
        let setup = Setup { machine, machines, programs, scenario: text(&mut from)? };
        let possible = 0 < setup.machine && setup.machine < setup.machines && setup.machines <= 64;
        if possible { ended(&from, setup) } else { Err(Malformed { what: "number of machines" }) }
    }
}

impl Go {
    pub fn emit(&self) -> Vec<u8> {
        let mut words = Vec::new();
        let mut to = Writer::new(&mut words);
        to.bytes(&self.session);
        to.u16(self.port);
        to.u32(self.others.len() as u32);
        self.others.iter().for_each(|other| put_text(&mut to, &other.to_string()));
        words
    }

    pub fn parse(words: &[u8]) -> Result<Go, Malformed> {
        let mut from = Reader::new(words, "words of the first machine");
        let (session, port) = (from.array()?, from.u16()?);
        let mut others = Vec::new();
        for _ in 0..from.u32()? {
            others.push(text(&mut from)?.parse().map_err(|_| Malformed { what: "address of a machine" })?);
        }
        ended(&from, Go { session, port, others })
    }
}

/// Whether bytes from another machine are one of the messages of this file. A message is written again, which must give
/// the same bytes, and compared with a build. For fuzzing.
pub fn agree_on_any(words: &[u8]) -> bool {
    let (intro, setup, go) = (Intro::parse(words), Setup::parse(words), Go::parse(words));
    if let Ok(intro) = &intro {
        assert_eq!(Intro::parse(&intro.emit()).as_ref(), Ok(intro));
        for (build, scenario) in [("ours", "seed = 1\n"), (&*intro.build, intro.scenario.as_deref().unwrap_or(""))] {
            assert!(intro.check(build, scenario).is_ok_and(|()| build == intro.build) || build == "ours");
        }
    }
    assert!(setup.iter().all(|setup| Setup::parse(&setup.emit()).as_ref() == Ok(setup)));
    assert!(go.iter().all(|go| Go::parse(&go.emit()).as_ref() == Ok(go)));
    intro.is_ok() || setup.is_ok() || go.is_ok()
}

/// What a machine has worked out of the scenario, which may name files that differ.
pub(crate) fn digest(plan: &Plan) -> [u8; 32] {
    struct Hashed(blake3::Hasher);
    impl std::fmt::Write for Hashed {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0.update(text.as_bytes());
            Ok(())
        }
    }
    let mut to = Hashed(blake3::Hasher::new());
    // A hasher takes everything.
    let _ = write!(to, "{}\n{:?}\n{:?}\n", plan.scenario.to_toml(), plan.fabric.names, plan.horizon);
    plan.fabric.links.iter().for_each(|link| _ = writeln!(to, "{link:?}"));
    plan.flows.iter().for_each(|flow| _ = writeln!(to, "{flow:?}"));
    *to.0.finalize().as_bytes()
}

#[cfg(test)]
mod tests;
