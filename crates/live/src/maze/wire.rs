//! What a program and a running Maze say to each other over a Unix socket.
//!
//! A *note* is its length (4 bytes, without these), a byte that says which it is, and its fields; numbers are
//! big-endian. The first note of a client is a greeting with the format's version; the Maze answers with its hosts and
//! classes, or says why not. No note is longer than [`NOTE_BYTES_MAX`], a greeting not longer than
//! [`GREETING_BYTES_MAX`], and no memory is reserved for bytes that are only announced.
//!
//! Anything may come by such a socket. [`Ask::parse`] and [`Tell::parse`] refuse what is not exactly a note, and never
//! panic.

use std::io::{self, Read, Write};

use node::wire::{Malformed, Reader, Writer};
use units::HostId;

use super::{Address, MazeError};

/// The version of the format.
pub const VERSION: u16 = 2;

/// The longest content of a message that goes by such a socket.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// The longest note: a message with what is said of it.
pub const NOTE_BYTES_MAX: usize = MESSAGE_BYTES_MAX + 64;

/// The longest note before the greeting.
pub const GREETING_BYTES_MAX: usize = 64;

/// The longest reason that is sent.
const TEXT_BYTES_MAX: usize = 4_000;

/// What a greeting begins with.
const MAGIC: [u8; 8] = *b"CLEARWAY";

/// So much is read at a time.
const CHUNK: usize = 1 << 16;

/// What a client says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask<'a> {
    /// The first note.
    Hello {
        /// Of the format that it speaks.
        version: u16,
    },
    /// It wants a port of a host.
    Open {
        /// Its number for this request.
        ask: u32,
        /// The host.
        host: u32,
        /// The port; 0 for any.
        port: u16,
    },
    /// It wants no more messages of a port.
    Close {
        /// Which one.
        at: Address,
    },
    /// It sends a message.
    Send {
        /// Its number for this request.
        ask: u32,
        /// From one of its ports.
        from: Address,
        /// To any.
        to: Address,
        /// The class, by place.
        class: u16,
        /// What the message says.
        content: &'a [u8],
    },
    /// Its program has taken a message that came.
    Taken {
        /// The message's flow.
        flow: u32,
    },
    /// It wants to know the network's time.
    Now {
        /// Its number for this request.
        ask: u32,
    },
    /// It wants to be told when all has come to one of its ports that was delivered before a time.
    Wake {
        /// Its number for this request.
        ask: u32,
        /// Which port.
        of: Address,
        /// The time, in picoseconds of the network.
        at: u64,
    },
}

/// What has become of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Its flow.
    pub flow: u32,
    /// In picoseconds of the network: its transport got it.
    pub started: Option<u64>,
    /// All of it was there.
    pub delivered: Option<u64>,
    /// Its sender knew.
    pub completed: Option<u64>,
    /// Why it was not delivered.
    pub failure: Option<MazeError>,
    /// Its sender has given it up.
    pub given_up: bool,
    /// This state is final.
    pub ended: bool,
}

/// What the Maze says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tell<'a> {
    /// Its answer to a greeting.
    Welcome {
        /// How many times slower than the machine the network lives.
        dilation: u32,
        /// Hosts, by number.
        hosts: Vec<&'a str>,
        /// Classes and their transports, by place.
        classes: Vec<(&'a str, &'a str)>,
    },
    /// A port is open.
    Opened {
        /// The request.
        ask: u32,
        /// Which port it is.
        at: Address,
    },
    /// A message is on its way.
    Accepted {
        /// The request.
        ask: u32,
        /// Its flow.
        flow: u32,
    },
    /// What was asked for can't be.
    Refused {
        /// The request.
        ask: u32,
        /// Why.
        why: MazeError,
    },
    /// Something has become of a message that the client sent.
    Fate(Fate),
    /// A message has come for the client.
    Came {
        /// Its flow.
        flow: u32,
        /// Who has sent it.
        from: Address,
        /// Where it has come.
        to: Address,
        /// Its class, by place.
        class: u16,
        /// When, in picoseconds of the network.
        delivered: u64,
        /// What it says.
        content: &'a [u8],
    },
    /// The network's time: the answer to a request for it, or that a wake was noted.
    Now {
        /// The request.
        ask: u32,
        /// In picoseconds.
        at: u64,
    },
    /// All has come to a port that was delivered before a time, and was said before.
    Passed {
        /// Which port.
        to: Address,
        /// The time, in picoseconds of the network.
        at: u64,
    },
    /// Nothing more is said, and why.
    Over {
        /// The reason.
        why: &'a str,
    },
}

/// Why a note can't be read.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The other side has gone.
    #[error("the connection was closed")]
    Gone,
    /// Longer than any note.
    #[error("a note of {0} bytes is longer than any")]
    Length(usize),
    /// Its end does not come.
    #[error("the rest of a note did not come")]
    Silent,
    /// Something else.
    #[error("{0}")]
    Io(io::Error),
}

const HELLO: u8 = 1;
const OPEN: u8 = 2;
const CLOSE: u8 = 3;
const SEND: u8 = 4;
const TAKEN: u8 = 5;
const ASK_NOW: u8 = 6;
const WAKE: u8 = 7;
const WELCOME: u8 = 65;
const OPENED: u8 = 66;
const ACCEPTED: u8 = 67;
const REFUSED: u8 = 68;
const FATE: u8 = 69;
const CAME: u8 = 70;
const OVER: u8 = 71;
const NOW: u8 = 72;
const PASSED: u8 = 73;

impl<'a> Ask<'a> {
    /// Appends the note, with its length.
    pub fn emit(&self, out: &mut Vec<u8>) {
        note(out, |to| match self {
            Ask::Hello { version } => {
                to.u8(HELLO);
                to.bytes(&MAGIC);
                to.u16(*version);
            }
            Ask::Open { ask, host, port } => {
                to.u8(OPEN);
                to.u32(*ask);
                to.u32(*host);
                to.u16(*port);
            }
            Ask::Close { at } => {
                to.u8(CLOSE);
                emit_address(*at, to);
            }
            Ask::Send { ask, from, to: dst, class, content } => {
                to.u8(SEND);
                to.u32(*ask);
                emit_address(*from, to);
                emit_address(*dst, to);
                to.u16(*class);
                to.bytes(content);
            }
            Ask::Taken { flow } => {
                to.u8(TAKEN);
                to.u32(*flow);
            }
            Ask::Now { ask } => {
                to.u8(ASK_NOW);
                to.u32(*ask);
            }
            Ask::Wake { ask, of, at } => {
                to.u8(WAKE);
                to.u32(*ask);
                emit_address(*of, to);
                to.u64(*at);
            }
        });
    }

    /// Reads a note without its length.
    ///
    /// # Errors
    /// Where it is none that a client says.
    pub fn parse(note: &'a [u8]) -> Result<Ask<'a>, Malformed> {
        let mut from = Reader::new(note, "note of a client");
        let ask = match from.u8()? {
            HELLO if from.array()? == MAGIC => Ask::Hello { version: from.u16()? },
            OPEN => Ask::Open { ask: from.u32()?, host: from.u32()?, port: from.u16()? },
            CLOSE => Ask::Close { at: address(&mut from)? },
            SEND => {
                let (ask, src, dst) = (from.u32()?, address(&mut from)?, address(&mut from)?);
                let class = from.u16()?;
                let content = from.bytes(from.rest().len())?;
                Ask::Send { ask, from: src, to: dst, class, content }
            }
            TAKEN => Ask::Taken { flow: from.u32()? },
            ASK_NOW => Ask::Now { ask: from.u32()? },
            WAKE => Ask::Wake { ask: from.u32()?, of: address(&mut from)?, at: from.u64()? },
            _ => return Err(Malformed { what: "note of a client" }),
        };
        whole(&from, ask)
    }
}

impl<'a> Tell<'a> {
    /// Appends the note, with its length.
    pub fn emit(&self, out: &mut Vec<u8>) {
        note(out, |to| match self {
            Tell::Welcome { dilation, hosts, classes } => {
                to.u8(WELCOME);
                to.u32(*dilation);
                to.u32(hosts.len() as u32);
                hosts.iter().for_each(|name| emit_text(name, to));
                to.u16(classes.len() as u16);
                for (name, transport) in classes {
                    emit_text(name, to);
                    emit_text(transport, to);
                }
            }
            Tell::Opened { ask, at } => {
                to.u8(OPENED);
                to.u32(*ask);
                emit_address(*at, to);
            }
            Tell::Accepted { ask, flow } => {
                to.u8(ACCEPTED);
                to.u32(*ask);
                to.u32(*flow);
            }
            Tell::Refused { ask, why } => {
                to.u8(REFUSED);
                to.u32(*ask);
                emit_error(why, to);
            }
            Tell::Fate(fate) => {
                to.u8(FATE);
                emit_fate(fate, to);
            }
            Tell::Came { flow, from, to: dst, class, delivered, content } => {
                to.u8(CAME);
                to.u32(*flow);
                emit_address(*from, to);
                emit_address(*dst, to);
                to.u16(*class);
                to.u64(*delivered);
                to.bytes(content);
            }
            Tell::Now { ask, at } => {
                to.u8(NOW);
                to.u32(*ask);
                to.u64(*at);
            }
            Tell::Passed { to: port, at } => {
                to.u8(PASSED);
                emit_address(*port, to);
                to.u64(*at);
            }
            Tell::Over { why } => {
                to.u8(OVER);
                emit_text(why, to);
            }
        });
    }

    /// Reads a note without its length.
    ///
    /// # Errors
    /// Where it is none that a Maze says.
    pub fn parse(note: &'a [u8]) -> Result<Tell<'a>, Malformed> {
        let mut from = Reader::new(note, "note of a Maze");
        let tell = match from.u8()? {
            WELCOME => {
                let dilation = from.u32()?;
                let (mut hosts, mut classes) = (Vec::new(), Vec::new());
                for _ in 0..from.u32()? {
                    hosts.push(text(&mut from)?);
                }
                for _ in 0..from.u16()? {
                    classes.push((text(&mut from)?, text(&mut from)?));
                }
                Tell::Welcome { dilation, hosts, classes }
            }
            OPENED => Tell::Opened { ask: from.u32()?, at: address(&mut from)? },
            ACCEPTED => Tell::Accepted { ask: from.u32()?, flow: from.u32()? },
            REFUSED => Tell::Refused { ask: from.u32()?, why: error(&mut from)? },
            FATE => Tell::Fate(fate(&mut from)?),
            CAME => {
                let (flow, src, dst) = (from.u32()?, address(&mut from)?, address(&mut from)?);
                let (class, delivered) = (from.u16()?, from.u64()?);
                let content = from.bytes(from.rest().len())?;
                Tell::Came { flow, from: src, to: dst, class, delivered, content }
            }
            NOW => Tell::Now { ask: from.u32()?, at: from.u64()? },
            PASSED => Tell::Passed { to: address(&mut from)?, at: from.u64()? },
            OVER => Tell::Over { why: text(&mut from)? },
            _ => return Err(Malformed { what: "note of a Maze" }),
        };
        whole(&from, tell)
    }
}

/// Reads a note into `out`, without its length, of `most` bytes at most. `began` is called when its first byte is
/// there: from then on whoever reads may be less patient.
///
/// # Errors
/// Where none comes.
pub fn read(from: &mut impl Read, most: usize, out: &mut Vec<u8>, began: impl FnOnce()) -> Result<(), Broken> {
    out.clear();
    let mut length = [0; 4];
    fill(from, &mut length[..1], Broken::Gone)?;
    began();
    fill(from, &mut length[1..], Broken::Silent)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > most {
        return Err(Broken::Length(length));
    }
    while out.len() < length {
        let begin = out.len();
        out.resize(length.min(begin + CHUNK), 0);
        fill(from, &mut out[begin..], Broken::Silent)?;
    }
    Ok(())
}

/// Writes notes.
pub(crate) fn write(to: &mut impl Write, notes: &[u8]) -> io::Result<()> {
    to.write_all(notes)
}

fn fill(from: &mut impl Read, bytes: &mut [u8], gone: Broken) -> Result<(), Broken> {
    from.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => gone,
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Broken::Silent,
        _ => Broken::Io(error),
    })
}

/// The length before a note.
pub(crate) const LENGTH_BYTES: usize = 4;

/// A note with its length before it.
pub(super) fn note(out: &mut Vec<u8>, emit: impl FnOnce(&mut Writer<'_>)) {
    let begin = out.len();
    out.extend([0; LENGTH_BYTES]);
    emit(&mut Writer::new(out));
    let length = (out.len() - begin - LENGTH_BYTES) as u32;
    out[begin..begin + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
}

/// Nothing is behind it.
pub(super) fn whole<T>(from: &Reader<'_>, read: T) -> Result<T, Malformed> {
    if from.rest().is_empty() { Ok(read) } else { Err(Malformed { what: "note: longer than what it says" }) }
}

pub(super) fn emit_address(Address { host, port }: Address, to: &mut Writer<'_>) {
    to.u32(host.0);
    to.u16(port);
}

pub(super) fn address(from: &mut Reader<'_>) -> Result<Address, Malformed> {
    Ok(Address { host: HostId(from.u32()?), port: from.u16()? })
}

pub(super) fn emit_text(text: &str, to: &mut Writer<'_>) {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    to.u16(end as u16);
    to.bytes(&text.as_bytes()[..end]);
}

pub(super) fn text<'a>(from: &mut Reader<'a>) -> Result<&'a str, Malformed> {
    let wrong = Malformed { what: "text of a note" };
    let bytes = usize::from(from.u16()?);
    if bytes > TEXT_BYTES_MAX {
        return Err(wrong);
    }
    std::str::from_utf8(from.bytes(bytes)?).map_err(|_| wrong)
}

fn emit_error(error: &MazeError, to: &mut Writer<'_>) {
    let (kind, why) = match error {
        MazeError::Wrong(why) => (0, why),
        MazeError::Rejected(why) => (1, why),
        MazeError::Undelivered(why) => (2, why),
        MazeError::Full(why) => (3, why),
        MazeError::Late(why) => (4, why),
        MazeError::Over(why) => (5, why),
    };
    to.u8(kind);
    emit_text(why, to);
}

fn error(from: &mut Reader<'_>) -> Result<MazeError, Malformed> {
    let kind = from.u8()?;
    let why = text(from)?.to_owned();
    Ok(match kind {
        0 => MazeError::Wrong(why),
        1 => MazeError::Rejected(why),
        2 => MazeError::Undelivered(why),
        3 => MazeError::Full(why),
        4 => MazeError::Late(why),
        5 => MazeError::Over(why),
        _ => return Err(Malformed { what: "reason of a note" }),
    })
}

/// Which of its fields are there, as bits; then those.
fn emit_fate(fate: &Fate, to: &mut Writer<'_>) {
    let Fate { flow, started, delivered, completed, failure, given_up, ended } = fate;
    let there = [started.is_some(), delivered.is_some(), completed.is_some(), failure.is_some(), *given_up, *ended];
    to.u32(*flow);
    to.u8((0..).zip(there).fold(0, |bits, (place, is_there)| bits | u8::from(is_there) << place));
    [started, delivered, completed].into_iter().flatten().for_each(|ps| to.u64(*ps));
    failure.iter().for_each(|failure| emit_error(failure, to));
}

fn fate(from: &mut Reader<'_>) -> Result<Fate, Malformed> {
    let (flow, bits) = (from.u32()?, from.u8()?);
    if bits >= 1 << 6 {
        return Err(Malformed { what: "fate of a note" });
    }
    let mut time = |place: u8| if bits >> place & 1 != 0 { from.u64().map(Some) } else { Ok(None) };
    let (started, delivered, completed) = (time(0)?, time(1)?, time(2)?);
    let failure = if bits >> 3 & 1 != 0 { Some(error(from)?) } else { None };
    let (given_up, ended) = (bits >> 4 & 1 != 0, bits >> 5 & 1 != 0);
    Ok(Fate { flow, started, delivered, completed, failure, given_up, ended })
}

#[cfg(test)]
mod tests;
