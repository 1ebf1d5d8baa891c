//! A trunk: a reliable, ordered stream from one machine to another over datagrams.
//!
//! It is a stream of bytes. A *segment* carries some of them, behind a header and before a tag ([`token`]):
//!
//! | bytes | what |
//! |---|---|
//! | 4, 1, 1 | `CLTK`, the version, the number of the machine that it is from |
//! | 8 | the session: drawn for this run |
//! | 8 | where in the stream its bytes begin |
//! | 8, 8 | what has come of the other direction, and how far its sender may go |
//! | 4, 4 | when it was sent, in microseconds, and the same of the last segment that has come |
//! | rest | bytes of the stream |
//! | 16 | the tag of all that |
//!
//! A segment that was not acknowledged in time, or was overtaken three times, is sent again. The receiver accepts only
//! as many bytes as it has granted, so that no sender can make it store more. Duplicate segments have no effect. This
//! file does no input or output and reads no clock: `courier.rs` does.

use std::collections::{BTreeMap, VecDeque};

use node::wire::{Malformed, Reader, Writer};

use super::token::{Key, TAG_BYTES};
use crate::frame::Refusal;

/// What every segment begins with.
pub const MAGIC: [u8; 4] = *b"CLTK";
/// The version of the format, behind that.
pub const VERSION: u8 = 1;

/// Bytes in front of those of the stream.
pub(crate) const HEADER_BYTES: usize = 4 + 1 + 1 + 8 + 8 + 8 + 8 + 4 + 4;

/// The most bytes of the stream in a segment: with headers of IPv6 and UDP it fits into 1,500 B.
pub(crate) const DATA_BYTES: usize = 1_380;

/// The longest segment.
pub(crate) const SEGMENT_BYTES: usize = HEADER_BYTES + DATA_BYTES + TAG_BYTES;

/// What a receiver keeps that has not been read: more than the longest record.
const KEPT_BYTES: u64 = 1 << 20;

/// The most segments on their way.
const FLIGHT: usize = 256;

/// How long a sender waits for an acknowledgement before it sends again, in microseconds: at first, and after doublings
/// at most. The least is longer than a busy machine's time slice.
const AGAIN_MIN_US: u64 = 20_000;
const AGAIN_MAX_US: u64 = 320_000;

/// The longest silence: after it a segment is sent even without data, in microseconds.
const ALIVE_US: u64 = 100_000;

/// What has been sent and received, for the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub sent: u64,
    pub sent_bytes: u64,
    /// Segments that were sent again.
    pub again: u64,
    pub received: u64,
    /// Segments with data that brought nothing new.
    pub repeated: u64,
}

/// One end of a trunk.
pub(crate) struct Trunk {
    me: u8,
    session: u64,
    keys: Keys,
    /// The stream to the other: from `acked` on, what has not been acknowledged.
    out: VecDeque<u8>,
    acked: u64,
    /// Where the next segment begins, the end of what was ever sent, and how far the receiver lets us go.
    next: u64,
    furthest: u64,
    granted: u64,
    /// The most bytes on their way, so that they fit into the receiver's socket buffer.
    most: u64,
    /// The ends of the segments on their way.
    flight: VecDeque<u64>,
    /// How often the last acknowledgement was repeated; and `furthest` when a loss was last found.
    same: u32,
    recovers: u64,
    again_us: u64,
    /// When something was acknowledged, or first sent; when anything was sent; when anything came.
    moved_at: u64,
    sent_at: u64,
    pub heard_at: u64,
    /// The stream from the other: what has come in order and not been read, up to `expected`; what overtook it.
    pub inbox: VecDeque<u8>,
    expected: u64,
    early: BTreeMap<u64, Vec<u8>>,
    /// Data came that must be acknowledged.
    answers: bool,
    echo: u32,
    /// The least round trip, in microseconds.
    pub trip_us: Option<u32>,
    pub counts: Counts,
}

/// What a machine's segments to another are tagged with, and what the other's are.
pub(crate) struct Keys {
    pub to: Key,
    pub from: Key,
}

/// A segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub from: u8,
    pub session: u64,
    pub at: u64,
    pub acked: u64,
    pub granted: u64,
    pub stamp: u32,
    pub echo: u32,
}

impl Header {
    /// Reads what any datagram begins with.
    pub fn parse(bytes: &[u8]) -> Result<Header, Refusal> {
        if bytes.len() < HEADER_BYTES + TAG_BYTES || bytes.len() > SEGMENT_BYTES {
            return Err(Refusal::Length);
        }
        let mut from = Reader::new(bytes, "segment");
        if from.array::<4>().is_ok_and(|magic| magic != MAGIC) {
            return Err(Refusal::Magic);
        }
        if from.u8().is_ok_and(|version| version != VERSION) {
            return Err(Refusal::Version);
        }
        Header::fields(&mut from).map_err(|_| Refusal::Length)
    }

    fn fields(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        Ok(Header {
            from: from.u8()?,
            session: from.u64()?,
            at: from.u64()?,
            acked: from.u64()?,
            granted: from.u64()?,
            stamp: from.u32()?,
            echo: from.u32()?,
        })
    }

    fn emit(&self, to: &mut Writer<'_>) {
        to.bytes(&MAGIC);
        to.u8(VERSION);
        to.u8(self.from);
        [self.session, self.at, self.acked, self.granted].into_iter().for_each(|number| to.u64(number));
        to.u32(self.stamp);
        to.u32(self.echo);
    }
}

impl Trunk {
    /// Machine `me`'s end, with at most this many bytes under way.
    pub fn new(me: u8, session: u64, keys: Keys, most: u64, now_us: u64) -> Trunk {
        Trunk {
            me,
            session,
            keys,
            out: VecDeque::new(),
            acked: 0,
            next: 0,
            furthest: 0,
            granted: KEPT_BYTES,
            most: most.max(DATA_BYTES as u64),
            flight: VecDeque::new(),
            same: 0,
            recovers: 0,
            again_us: AGAIN_MIN_US,
            moved_at: now_us,
            sent_at: 0,
            heard_at: now_us,
            inbox: VecDeque::new(),
            expected: 0,
            early: BTreeMap::new(),
            answers: true,
            echo: 0,
            trip_us: None,
            counts: Counts::default(),
        }
    }

    /// One to which these bytes have come, and no one else can send. For fuzzing.
    pub fn unkeyed(bytes: &[u8]) -> Trunk {
        let nobody = Keys { to: Key::nobodys(), from: Key::nobodys() };
        let (inbox, expected) = (bytes.iter().copied().collect(), bytes.len() as u64);
        Trunk { inbox, expected, ..Trunk::new(0, 0, nobody, 0, 0) }
    }

    /// Appends to what the other will read.
    pub fn write(&mut self, bytes: &[u8]) {
        self.out.extend(bytes);
    }

    /// Bytes that the other has not acknowledged.
    pub fn unread(&self) -> usize {
        self.out.len()
    }

    /// Bytes that the other has acknowledged.
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// Removes bytes that were read from the inbox.
    pub fn read(&mut self, bytes: usize) {
        let before = self.inbox.len() as u64;
        self.inbox.drain(..bytes);
        // A sender that was told of little room learns when there is more.
        self.answers |= before > KEPT_BYTES / 2 && (self.inbox.len() as u64) <= KEPT_BYTES / 2;
    }

    fn may_come(&self) -> u64 {
        self.expected - self.inbox.len() as u64 + KEPT_BYTES
    }

    /// Takes in a datagram.
    ///
    /// Why the datagram is refused. Nothing has changed then.
    pub fn take(&mut self, now_us: u64, datagram: &[u8]) -> Result<(), Refusal> {
        let header = Header::parse(datagram)?;
        let (bytes, tag) = datagram.split_last_chunk::<TAG_BYTES>().ok_or(Refusal::Length)?;
        if header.session != self.session || !self.keys.from.is_right(bytes, tag) {
            return Err(Refusal::Stranger);
        }
        let data = bytes.get(HEADER_BYTES..).unwrap_or_default();
        let end = header.at.checked_add(data.len() as u64).ok_or(Refusal::Index)?;
        if header.acked > self.furthest || end > self.may_come() {
            return Err(Refusal::Index);
        }
        self.counts.received += 1;
        self.heard_at = now_us;
        self.take_answer(now_us, &header, data.is_empty());
        if !data.is_empty() {
            self.answers = true;
            self.take_data(header.at, end, data);
        }
        Ok(())
    }

    fn take_answer(&mut self, now_us: u64, header: &Header, bare: bool) {
        // A segment that arrives after a later one must not lower the grant.
        self.granted = self.granted.max(header.granted);
        self.echo = header.stamp;
        if header.echo != 0 {
            let trip = (now_us as u32).wrapping_sub(header.echo);
            self.trip_us = Some(self.trip_us.map_or(trip, |least| least.min(trip)));
        }
        if header.acked > self.acked {
            self.out.drain(..(header.acked - self.acked) as usize);
            self.acked = header.acked;
            self.next = self.next.max(self.acked);
            while self.flight.front().is_some_and(|&end| end <= self.acked) {
                self.flight.pop_front();
            }
            (self.moved_at, self.again_us, self.same) = (now_us, AGAIN_MIN_US, 0);
        } else if header.acked == self.acked && bare && self.acked < self.next {
            self.same += 1;
            if self.same >= 3 && self.acked >= self.recovers {
                self.send_again();
                self.moved_at = now_us;
            }
        }
    }

    /// All that is not acknowledged is to be sent again.
    fn send_again(&mut self) {
        (self.recovers, self.same) = (self.furthest, 0);
        self.next = self.acked;
        self.flight.clear();
    }

    fn take_data(&mut self, at: u64, end: u64, data: &[u8]) {
        if end <= self.expected || self.early.get(&at).is_some_and(|known| known.len() >= data.len()) {
            self.counts.repeated += 1;
            return;
        }
        if at > self.expected {
            // An honest sender never has more segments on their way.
            if self.early.len() < FLIGHT {
                self.early.insert(at, data.to_vec());
            }
            return;
        }
        self.append(at, data);
        while let Some(entry) = self.early.first_entry().filter(|entry| *entry.key() <= self.expected) {
            let (at, data) = entry.remove_entry();
            if at + data.len() as u64 > self.expected {
                self.append(at, &data);
            }
        }
    }

    fn append(&mut self, at: u64, data: &[u8]) {
        let new = &data[(self.expected - at) as usize..];
        self.inbox.extend(new);
        self.expected += new.len() as u64;
    }

    /// The next segment that is to be sent now, written over `segment`; false if there is none.
    pub fn next(&mut self, now_us: u64, segment: &mut Vec<u8>) -> bool {
        if self.acked < self.next && now_us.saturating_sub(self.moved_at) > self.again_us {
            self.send_again();
            (self.moved_at, self.again_us) = (now_us, (2 * self.again_us).min(AGAIN_MAX_US));
        }
        let written = self.acked + self.out.len() as u64;
        let upto = written.min(self.granted).min(self.acked + self.most).min(self.next + DATA_BYTES as u64);
        let some = upto > self.next && self.flight.len() < FLIGHT;
        if !some && !self.answers && now_us.saturating_sub(self.sent_at) < ALIVE_US {
            return false;
        }
        let upto = if some { upto } else { self.next };
        if self.acked == self.next {
            self.moved_at = now_us;
        }
        let header = Header {
            from: self.me,
            session: self.session,
            at: self.next,
            acked: self.expected,
            granted: self.may_come(),
            stamp: (now_us as u32).max(1),
            echo: self.echo,
        };
        segment.clear();
        header.emit(&mut Writer::new(segment));
        let (from, to) = ((self.next - self.acked) as usize, (upto - self.acked) as usize);
        let (front, back) = self.out.as_slices();
        let cut = |bytes: usize| bytes.clamp(front.len(), self.out.len()) - front.len();
        segment.extend(&front[from.min(front.len())..to.min(front.len())]);
        segment.extend(&back[cut(from)..cut(to)]);
        let tag = self.keys.to.tag(segment);
        segment.extend(tag);
        if some {
            self.counts.again += u64::from(self.next < self.furthest);
            self.flight.push_back(upto);
        }
        self.next = upto;
        self.furthest = self.furthest.max(upto);
        self.counts.sent += 1;
        self.counts.sent_bytes += segment.len() as u64;
        (self.sent_at, self.answers) = (now_us, false);
        true
    }
}

#[cfg(test)]
mod tests;
