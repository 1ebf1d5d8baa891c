//! The control connection: TCP, over which two machines agree on a run and exchange its results.
//!
//! Each side proves that it has the token, without sending it, by a tag over random numbers of both. Then every message
//! has a tag over its number and its bytes. Before that, nothing that arrives is trusted, and no more is read than a
//! greeting is long.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration as Span;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::token::{Key, TAG_BYTES, Token, nonce};
use crate::mail::{Connection, Over};
use crate::maze::lock;
use crate::maze::notes::NOTE_BYTES_MAX;
use crate::maze::wire::LENGTH_BYTES;

/// What every connection begins with, on both sides.
const MAGIC: [u8; 8] = *b"CLWYLIVE";
/// The version of what is said there.
pub(crate) const VERSION: u8 = 2;

/// What the listening side says first, and what the other answers.
const GREETING_BYTES: usize = 8 + 1 + 32;
const ANSWER_BYTES: usize = GREETING_BYTES + TAG_BYTES;

/// What the listening side says to that.
const VERDICT_BYTES: usize = 1 + TAG_BYTES;

/// How often whoever waits for a note looks whether the other is gone.
const LOOK: Span = Span::from_millis(50);

/// The longest message: the words of a machine on a very long run.
const MESSAGE_BYTES_MAX: u64 = 16 << 30;

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denial {
    #[error("it does not speak as a machine of a live run does")]
    Nonsense,
    #[error("it is of another version of Clearway")]
    Version,
    #[error("its token is another one")]
    Token,
    #[error("it said nothing for long")]
    Silence,
}

/// A connection to another machine that has the token. One thread may send while another one receives.
pub(crate) struct Control {
    stream: TcpStream,
    to: Mutex<Way>,
    from: Mutex<Way>,
}

/// One direction: the key of its tags, and how many messages went there.
struct Way {
    key: Key,
    messages: u64,
}

/// Somebody who has come to the listening side and not shown the token yet.
pub(crate) struct Guest {
    stream: TcpStream,
    mine: [u8; 32],
    answer: Vec<u8>,
}

fn greeting(nonce: &[u8; 32]) -> Vec<u8> {
    [&MAGIC[..], &[VERSION], nonce].concat()
}

/// The random number in a greeting.
fn drawn(greeting: &[u8]) -> Result<[u8; 32], Denial> {
    let (magic, rest) = greeting.split_first_chunk::<8>().ok_or(Denial::Nonsense)?;
    let (version, rest) = rest.split_first().ok_or(Denial::Nonsense)?;
    if *magic != MAGIC {
        return Err(Denial::Nonsense);
    }
    if *version != VERSION {
        return Err(Denial::Version);
    }
    rest.first_chunk().copied().ok_or(Denial::Nonsense)
}

impl Guest {
    /// Greets whoever has come.
    pub fn new(mut stream: TcpStream) -> io::Result<Guest> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mine = nonce()?;
        stream.write_all(&greeting(&mine))?;
        Ok(Guest { stream, mine, answer: Vec::new() })
    }

    /// Takes what it has said meanwhile: whether that was all, or why it is not let in.
    pub fn listen(&mut self) -> Result<bool, Denial> {
        let mut bytes = [0; ANSWER_BYTES];
        let room = ANSWER_BYTES - self.answer.len();
        match self.stream.read(&mut bytes[..room]) {
            Ok(0) => return Err(Denial::Nonsense),
            Ok(count) => self.answer.extend(&bytes[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return Err(Denial::Nonsense),
        }
        // Who speaks otherwise need not come to an end.
        let known = self.answer.len().min(MAGIC.len());
        if self.answer[..known] != MAGIC[..known] {
            return Err(Denial::Nonsense);
        }
        if self.answer.get(MAGIC.len()).is_some_and(|version| *version != VERSION) {
            return Err(Denial::Version);
        }
        Ok(self.answer.len() == ANSWER_BYTES)
    }

    /// It has said all: lets it in if it has the token, and tells it.
    pub fn judge(mut self, token: &Token) -> Result<Control, Denial> {
        let theirs = drawn(&self.answer)?;
        let nonces: [&[u8]; 2] = [&self.mine, &theirs];
        let tag = self.answer.last_chunk::<TAG_BYTES>().ok_or(Denial::Nonsense)?;
        let right = token.key("joins", &nonces).is_right(&[], tag);
        let mine = if right { token.key("listens", &nonces).tag(&[]) } else { [0; TAG_BYTES] };
        let verdict = [&[u8::from(right)][..], &mine].concat();
        let told = self.stream.set_nonblocking(false).and_then(|()| self.stream.write_all(&verdict));
        if !right {
            return Err(Denial::Token);
        }
        told.map_err(|_| Denial::Nonsense)?;
        Ok(Control::new(self.stream, token, [self.mine, theirs], true))
    }

    /// Tells it that it is not let in, if it can be told.
    pub fn send_away(mut self) {
        let _ = self.stream.write_all(&[0; VERDICT_BYTES]);
    }
}

impl Control {
    fn new(stream: TcpStream, token: &Token, nonces: [[u8; 32]; 2], listens: bool) -> Control {
        let of = |purpose: &str| token.key(purpose, &[&nonces[0], &nonces[1]]);
        let [joins, listens_to] = [of("said to who joins"), of("said to who listens")];
        let (to, from) = if listens { (joins, listens_to) } else { (listens_to, joins) };
        let [to, from] = [to, from].map(|key| Mutex::new(Way { key, messages: 0 }));
        Control { stream, to, from }
    }

    /// Joins at the other end of a connection.
    ///
    /// # Errors
    /// If it is no such machine, refuses the token, or does not have the token itself.
    pub fn join(mut stream: TcpStream, token: &Token, patience: Span) -> io::Result<Control> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        let denied = |denial: Denial| io::Error::other(denial.to_string());
        let mut hello = [0; GREETING_BYTES];
        stream.read_exact(&mut hello).map_err(|_| denied(Denial::Nonsense))?;
        let theirs = drawn(&hello).map_err(denied)?;
        let mine = nonce()?;
        let nonces: [&[u8]; 2] = [&theirs, &mine];
        let tag = token.key("joins", &nonces).tag(&[]);
        stream.write_all(&[&greeting(&mine)[..], &tag].concat())?;
        let mut verdict = [0; VERDICT_BYTES];
        stream.read_exact(&mut verdict).map_err(|_| io::Error::other("it hung up while the token was shown"))?;
        let right = verdict.last_chunk().is_some_and(|tag| token.key("listens", &nonces).is_right(&[], tag));
        match (verdict[0], right) {
            (0, _) => Err(io::Error::other("it does not take this token: both sides need the same one")),
            (_, false) => Err(denied(Denial::Token)),
            (_, true) => Ok(Control::new(stream, token, [theirs, mine], false)),
        }
    }

    /// Sets how long it waits for a message to be sent or to come.
    pub fn set_patience(&self, patience: Span) -> io::Result<()> {
        self.stream.set_read_timeout(Some(patience))?;
        self.stream.set_write_timeout(Some(patience))
    }

    /// Says something.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        let mut to = lock(&self.to);
        let length = (message.len() as u64).to_be_bytes();
        let head_tag = to.key.tag(&head(to.messages, &length, b"length"));
        let tag = to.key.tag(&head(to.messages, &length, message));
        to.messages += 1;
        (&self.stream).write_all(&[&length[..], &head_tag, &tag].concat())?;
        (&self.stream).write_all(message)
    }

    /// Hears what the other says next.
    pub fn receive(&self) -> io::Result<Vec<u8>> {
        self.receive_up_to(MESSAGE_BYTES_MAX)
    }

    /// The same, of a message that has at most so many bytes.
    pub fn receive_up_to(&self, most: u64) -> io::Result<Vec<u8>> {
        let mut from = lock(&self.from);
        let mut front = [0; 8 + 2 * TAG_BYTES];
        (&self.stream).read_exact(&mut front)?;
        let (length, tags) = front.split_at(8);
        let (head_tag, tag) = tags.split_at(TAG_BYTES);
        let wrong = || io::Error::new(ErrorKind::InvalidData, "a message that is not the other machine's");
        let right = |key: &Key, bytes: &[u8], tag: &[u8]| tag.first_chunk().is_some_and(|tag| key.is_right(bytes, tag));
        // Nothing is waited for, or kept, of a length that the other has not said.
        if !right(&from.key, &head(from.messages, length, b"length"), head_tag) {
            return Err(wrong());
        }
        let length = u64::from_be_bytes(length.try_into().map_err(|_| wrong())?);
        if length > most {
            return Err(wrong());
        }
        let mut message = Vec::new();
        (&self.stream).take(length).read_to_end(&mut message)?;
        if message.len() as u64 != length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if !right(&from.key, &head(from.messages, &length.to_be_bytes(), &message), tag) {
            return Err(wrong());
        }
        from.messages += 1;
        Ok(message)
    }

    /// Whether something has come, waiting so long for it.
    pub fn has_some(&self, span: Span) -> io::Result<bool> {
        let mut polled = [PollFd::new(&self.stream, PollFlags::IN)];
        let span = Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos().into() };
        match poll(&mut polled, Some(&span)) {
            Ok(_) => Ok(!polled[0].revents().is_empty()),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the other is gone, and all that it said has been read. It does not wait, even if another thread reads.
    pub fn is_gone(&self) -> bool {
        match recv(&self.stream, &mut [0; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, bytes)) => bytes == 0,
            Err(error) => !matches!(error, Errno::WOULDBLOCK | Errno::INTR),
        }
    }

    /// The connection as one for notes of programs' messages. Each note is a message of its own, without its length,
    /// and an empty message is behind the last one: after that the connection is for other words again.
    pub fn notes(self: &Arc<Control>) -> Connection {
        let (hears, says, shuts) = (self.clone(), self.clone(), self.clone());
        Connection {
            hear: Box::new(move |note| {
                while !hears.has_some(LOOK).map_err(|_| Over::Closed)? {}
                *note = hears.receive_up_to(NOTE_BYTES_MAX as u64).map_err(|error| match error.kind() {
                    ErrorKind::InvalidData => Over::Wrong(error.to_string()),
                    _ => Over::Closed,
                })?;
                if note.is_empty() { Err(Over::Closed) } else { Ok(hears.has_some(Span::ZERO).unwrap_or(false)) }
            }),
            say: Box::new(move |note| says.send(note.map_or(&[], |note| &note[LENGTH_BYTES..]))),
            shut: Box::new(move || shuts.shut()),
        }
    }

    /// Nothing is said or heard any more.
    pub fn shut(&self) {
        // If that can't be, it is shut.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// What a tag of a message is over.
fn head(number: u64, length: &[u8], message: &[u8]) -> Vec<u8> {
    [&number.to_be_bytes()[..], length, message].concat()
}

#[cfg(test)]
mod tests;
