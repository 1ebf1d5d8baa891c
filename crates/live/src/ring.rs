//! A ring of packets in memory that two processes share: one writes, one reads.
//!
//! An entry is the body of a [frame](crate::frame), content included. The writer copies it in. The reader copies it out
//! into memory of its own before it checks it, so that it can't change after the check. And there are no pages that a
//! process could return twice, or never. The copies cost some 10 ns a line of 128 bytes.
//!
//! Each side has its own count of entries and does not trust the other's. An impossible count is [`Refusal::Index`];
//! then the ring is not used any more, since its content is unknown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::frame::Refusal;
use crate::shared::{Line, Lines, WORDS};

/// Packets that may be under way. So few in tests that rings are full time and again.
pub(crate) const RING: usize = if cfg!(test) { 4 } else { 512 };

/// The longest fields: telemetry of many hops has some 600 bytes.
pub(crate) const FIELDS_BYTES_MAX: usize = 1_024;

const LINE_BYTES: usize = 8 * WORDS;

/// One end of a ring.
pub(crate) struct Ring {
    lines: Arc<Lines>,
    /// The line in which it begins: how many entries have been written, how many read, then entries.
    at: usize,
    /// What this end has written or read.
    count: u64,
    /// The most bytes of content.
    room: usize,
}

/// Lines of an entry for contents with this many bytes.
const fn entry_lines(room: usize) -> usize {
    (8 + FIELDS_BYTES_MAX + room + 8).div_ceil(LINE_BYTES)
}

/// Lines of a ring for such entries.
pub(crate) const fn ring_lines(room: usize) -> usize {
    2 + RING * entry_lines(room)
}

impl Ring {
    /// An end of the ring that begins at a line.
    pub fn new(lines: Arc<Lines>, at: usize, room: usize) -> Ring {
        Ring { lines, at, count: 0, room }
    }

    fn written(&self) -> &AtomicU64 {
        &self.lines[self.at].0[0]
    }

    fn read(&self) -> &AtomicU64 {
        &self.lines[self.at + 1].0[0]
    }

    fn entry(&self) -> &[Line] {
        let lines = entry_lines(self.room);
        let first = self.at + 2 + (self.count % RING as u64) as usize * lines;
        &self.lines[first..first + lines]
    }

    /// Whether the other end has written something, or says so.
    #[inline]
    pub fn has_some(&self) -> bool {
        self.written().load(Ordering::Relaxed) != self.count
    }

    /// Writes an entry. False if there is no room for it now.
    ///
    /// # Errors
    /// Where the reader says that it has read what is not written, or it is too long.
    pub fn push(&mut self, bytes: &[u8]) -> Result<bool, Refusal> {
        if bytes.len() > FIELDS_BYTES_MAX + self.room {
            return Err(Refusal::Length);
        }
        let under_way = self.count.wrapping_sub(self.read().load(Ordering::Acquire));
        if under_way >= RING as u64 {
            return if under_way == RING as u64 { Ok(false) } else { Err(Refusal::Index) };
        }
        let mut words = self.entry().iter().flat_map(|line| &line.0);
        write(&mut words, &(bytes.len() as u64).to_le_bytes());
        write(&mut words, bytes);
        self.count = self.count.wrapping_add(1);
        self.written().store(self.count, Ordering::Release);
        Ok(true)
    }

    /// Reads the next entry, if there is one.
    ///
    /// # Errors
    /// Where what the writer says can't be. If that is [`Refusal::Index`] there is nothing more to be read.
    pub fn pop(&mut self, entry: &mut Vec<u8>) -> Result<bool, Refusal> {
        let there = self.written().load(Ordering::Acquire).wrapping_sub(self.count);
        if there == 0 {
            return Ok(false);
        }
        if there > RING as u64 {
            return Err(Refusal::Index);
        }
        entry.clear();
        let mut words = self.entry().iter().flat_map(|line| &line.0).map(|word| word.load(Ordering::Relaxed));
        // Read once: it may be another number the next time.
        let length = words.next().unwrap_or(0);
        let fits = length <= (FIELDS_BYTES_MAX + self.room) as u64;
        if fits {
            entry.extend(words.take(length.div_ceil(8) as usize).flat_map(u64::to_le_bytes));
            entry.truncate(length as usize);
        }
        self.count = self.count.wrapping_add(1);
        self.read().store(self.count, Ordering::Release);
        if fits { Ok(true) } else { Err(Refusal::Length) }
    }
}

fn write<'a>(words: &mut impl Iterator<Item = &'a AtomicU64>, bytes: &[u8]) {
    let (whole, rest) = bytes.as_chunks::<8>();
    for bytes in whole {
        if let Some(word) = words.next() {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
    }
    if !rest.is_empty()
        && let Some(word) = words.next()
    {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        word.store(u64::from_le_bytes(last), Ordering::Relaxed);
    }
}

/// What a reader makes of a ring in which there are these bytes, whatever they are: what it took and what it refused.
/// For fuzzing.
pub fn read_any(bytes: &[u8], mut take: impl FnMut(&[u8])) -> Vec<Refusal> {
    let room = 256;
    let lines = Arc::new(Lines::own(ring_lines(room)));
    write(&mut lines.iter().flat_map(|line| &line.0), bytes);
    let mut ring = Ring::new(lines, 0, room);
    let (mut refused, mut entry) = (Vec::new(), Vec::new());
    loop {
        match ring.pop(&mut entry) {
            Ok(false) => return refused,
            Ok(true) => take(&entry),
            Err(refusal) => {
                refused.push(refusal);
                if refusal == Refusal::Index {
                    return refused;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
