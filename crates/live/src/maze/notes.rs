//! What the processes of a run say to each other of programs' messages, over a Unix socket between the first and each
//! other one.
//!
//! A note has the form of those of [`wire`](super::wire): its length, a byte that says which it is, and its fields. The
//! first process gives orders, the others report. [`Order::parse`] and [`Report::parse`] refuse what is not exactly a
//! note, and never panic; whether what it says can be is for whoever reads it.

use node::wire::{Malformed, Reader};
use units::{FlowId, HostId, Time};

use super::Address;
use super::desk::Event;
use super::wire::{MESSAGE_BYTES_MAX, address, emit_address, emit_text, note, text, whole};

/// The longest note: a message with what is said of it.
pub(crate) const NOTE_BYTES_MAX: usize = MESSAGE_BYTES_MAX + 64;

/// No time of a run is later.
const LATEST_PS: u64 = 1 << 63;

/// What the first process says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order<'a> {
    /// The next flow.
    Flow {
        /// Its place among those that were added.
        place: u64,
        src: HostId,
        dst: HostId,
        /// The class of its message, by place.
        class: u16,
        bytes: u64,
        /// All of it for the process of its sender, nothing for others.
        content: &'a [u8],
    },
    /// Messages before this place may start.
    Go { count: u64 },
    /// It wants to know when all has come to a port that was delivered before a time.
    Wake { of: Address, at: Time },
    /// It does not want to know that any more.
    Forget { of: Address, at: Time },
}

/// What another process says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// It knows all flows before this place.
    Knows { count: u64 },
    /// All has come to a port that was delivered before a time, and was said before.
    Passed { of: Address, at: Time },
    /// Something has happened to a message at one of its hosts.
    Happened { flow: FlowId, what: Event },
}

const FLOW: u8 = 1;
const GO: u8 = 2;
const WAKE: u8 = 3;
const FORGET: u8 = 4;
const KNOWS: u8 = 65;
const PASSED: u8 = 66;
const STARTED: u8 = 67;
const COMPLETED: u8 = 68;
const GIVEN_UP: u8 = 69;
const FORGOTTEN: u8 = 70;
const DELIVERED: u8 = 71;
const DAMAGED: u8 = 72;

impl<'a> Order<'a> {
    /// Appends the note, with its length.
    pub fn emit(&self, out: &mut Vec<u8>) {
        note(out, |to| match self {
            Order::Flow { place, src, dst, class, bytes, content } => {
                to.u8(FLOW);
                to.u64(*place);
                to.u32(src.0);
                to.u32(dst.0);
                to.u16(*class);
                to.u64(*bytes);
                to.bytes(content);
            }
            Order::Go { count } => {
                to.u8(GO);
                to.u64(*count);
            }
            Order::Wake { of, at } | Order::Forget { of, at } => {
                to.u8(if matches!(self, Order::Wake { .. }) { WAKE } else { FORGET });
                emit_address(*of, to);
                to.u64(at.ps());
            }
        });
    }

    /// Reads a note without its length.
    ///
    /// # Errors
    /// Where it is none that the first process says.
    pub fn parse(note: &'a [u8]) -> Result<Order<'a>, Malformed> {
        let mut from = Reader::new(note, "note of the first process");
        let order = match from.u8()? {
            FLOW => {
                let (place, src, dst) = (from.u64()?, HostId(from.u32()?), HostId(from.u32()?));
                let (class, bytes) = (from.u16()?, from.u64()?);
                let content = from.bytes(from.rest().len())?;
                Order::Flow { place, src, dst, class, bytes, content }
            }
            GO => Order::Go { count: from.u64()? },
            WAKE => Order::Wake { of: address(&mut from)?, at: Time::from_ps(from.u64()?) },
            FORGET => Order::Forget { of: address(&mut from)?, at: Time::from_ps(from.u64()?) },
            _ => return Err(Malformed { what: "note of the first process" }),
        };
        whole(&from, order)
    }
}

impl Report {
    /// Appends the note, with its length.
    pub fn emit(&self, out: &mut Vec<u8>) {
        note(out, |to| match self {
            Report::Knows { count } => {
                to.u8(KNOWS);
                to.u64(*count);
            }
            Report::Passed { of, at } => {
                to.u8(PASSED);
                emit_address(*of, to);
                to.u64(at.ps());
            }
            Report::Happened { flow, what } => {
                let (kind, at) = match what {
                    Event::Started(at) => (STARTED, Some(at)),
                    Event::Completed(at) => (COMPLETED, Some(at)),
                    Event::GivenUp { .. } => (GIVEN_UP, None),
                    Event::Forgotten => (FORGOTTEN, None),
                    Event::Delivered { at, .. } => (DELIVERED, Some(at)),
                    Event::Damaged => (DAMAGED, None),
                };
                to.u8(kind);
                to.u32(flow.0);
                at.into_iter().for_each(|at| to.u64(at.ps()));
                match what {
                    Event::GivenUp { is_rejected, reason } => {
                        to.u8((*is_rejected).into());
                        emit_text(reason, to);
                    }
                    Event::Delivered { ports: (from, dst), content, .. } => {
                        to.u16(*from);
                        to.u16(*dst);
                        to.bytes(content);
                    }
                    _ => {}
                }
            }
        });
    }

    /// Reads a note without its length.
    ///
    /// # Errors
    /// Where it is none that another process says.
    pub fn parse(note: &[u8]) -> Result<Report, Malformed> {
        let mut from = Reader::new(note, "note of a process");
        let wrong = Malformed { what: "note of a process" };
        let report = match from.u8()? {
            KNOWS => Report::Knows { count: from.u64()? },
            PASSED => Report::Passed { of: address(&mut from)?, at: Time::from_ps(from.u64()?) },
            kind @ STARTED..=DAMAGED => {
                let flow = FlowId(from.u32()?);
                let what = match kind {
                    STARTED => Event::Started(time(&mut from)?),
                    COMPLETED => Event::Completed(time(&mut from)?),
                    GIVEN_UP => {
                        let is_rejected = match from.u8()? {
                            0 => false,
                            1 => true,
                            _ => return Err(wrong),
                        };
                        Event::GivenUp { is_rejected, reason: text(&mut from)?.to_owned().into() }
                    }
                    FORGOTTEN => Event::Forgotten,
                    DELIVERED => {
                        let (at, ports) = (time(&mut from)?, (from.u16()?, from.u16()?));
                        Event::Delivered { at, ports, content: from.bytes(from.rest().len())?.to_vec() }
                    }
                    _ => Event::Damaged,
                };
                Report::Happened { flow, what }
            }
            _ => return Err(wrong),
        };
        whole(&from, report)
    }
}

/// Whether these bytes are a note between processes; it is written as it was read. For fuzzing.
pub fn is_note(bytes: &[u8]) -> bool {
    let mut again = Vec::new();
    match (Order::parse(bytes), Report::parse(bytes)) {
        (Ok(order), _) => order.emit(&mut again),
        (_, Ok(report)) => report.emit(&mut again),
        _ => return false,
    }
    assert_eq!(again[4..], *bytes);
    true
}

/// A time of the run, of which later ones can be computed without overflow.
fn time(from: &mut Reader<'_>) -> Result<Time, Malformed> {
    let ps = from.u64()?;
    if ps > LATEST_PS { Err(Malformed { what: "time of a note" }) } else { Ok(Time::from_ps(ps)) }
}

#[cfg(test)]
mod tests;
