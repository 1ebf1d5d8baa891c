//! What the applications of a live run say to each other, so that every byte can be checked where it arrives.
//!
//! Byte i of flow f is a function of (f, i) alone: a receiver knows what must come without having been told. A flow's
//! words of eight bytes are a number of the flow's own, plus a constant for each word before: so eight bytes that belong
//! to another flow, or to another place in the same one, are wrong, and a core writes or compares some 30 bytes a
//! nanosecond, many words at a time.

use run::FlowTable;
use scenario::ContentCheck;
use units::{FlowId, mix};

/// What each word of a flow adds to the one before it: odd, so that no two of 2^64 are the same, and with as many ones
/// as zeros in each byte.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// With [`ContentCheck::Sampled`], one packet in so many has content.
const SAMPLE: u64 = 16;

/// A message's words from some byte on: those that begin a whole number of words behind it.
#[derive(Clone, Copy)]
struct Words {
    /// The word of the message in which the next begins.
    low: u64,
    /// How many of its bits come before.
    shift: u32,
}

impl Words {
    #[inline]
    fn of(flow: FlowId, offset: u64) -> Words {
        let low = mix(u64::from(flow.0), 0).wrapping_add((offset / 8).wrapping_mul(STEP));
        Words { low, shift: (offset % 8 * 8) as u32 }
    }

    #[inline]
    fn next(&mut self) -> [u8; 8] {
        let (low, high) = (self.low, self.low.wrapping_add(STEP));
        self.low = high;
        // In two steps, as a shift by 64 is none.
        (low >> self.shift | high << 1 << (63 - self.shift)).to_le_bytes()
    }
}

/// Writes a part of the flow's message over `out`, from the message's byte `offset` on.
pub fn write(flow: FlowId, offset: u64, out: &mut [u8]) {
    let mut words = Words::of(flow, offset);
    let (whole, rest) = out.as_chunks_mut();
    whole.iter_mut().for_each(|word| *word = words.next());
    rest.copy_from_slice(&words.next()[..rest.len()]);
}

/// Whether this is what [`write()`] writes.
pub fn is_right(flow: FlowId, offset: u64, content: &[u8]) -> bool {
    let mut words = Words::of(flow, offset);
    let (whole, rest) = content.as_chunks();
    let wrong =
        whole.iter().fold(0, |wrong, word| wrong | (u64::from_le_bytes(*word) ^ u64::from_le_bytes(words.next())));
    wrong == 0 && *rest == words.next()[..rest.len()]
}

/// Whether a packet with the flow's bytes from `offset` on has content.
#[inline]
pub(crate) fn is_carried(check: ContentCheck, flow: FlowId, offset: u64) -> bool {
    match check {
        ContentCheck::All => true,
        ContentCheck::Sampled => mix(u64::from(flow.0), offset).is_multiple_of(SAMPLE),
        ContentCheck::None => false,
    }
}

/// What has arrived of every flow, and how much of it was wrong.
pub(crate) struct Inbox {
    flows: Vec<Pieces>,
    /// Bytes that were what they must be.
    pub right_bytes: u64,
    /// Packets with a byte that was not, or that is no byte of any message.
    pub wrong_packets: u64,
    /// Flows that a receiver said were delivered.
    pub delivered: u64,
    /// Those of them of which a byte had not arrived.
    pub incomplete: u64,
}

impl Inbox {
    pub fn new(flows: usize) -> Inbox {
        let flows = vec![Pieces::default(); flows];
        Inbox { flows, right_bytes: 0, wrong_packets: 0, delivered: 0, incomplete: 0 }
    }

    /// So many bytes have arrived at their flow's destination, with this content if they have any.
    pub fn take(&mut self, table: &FlowTable, flow: FlowId, offset: u64, count: u16, content: Option<&[u8]>) {
        let end = offset.checked_add(u64::from(count));
        let inside = |end: &u64| self.flows.len() > flow.index() && *end <= table.get(flow).bytes;
        let right = content.is_none_or(|content| is_right(flow, offset, content));
        let Some(end) = end.filter(inside).filter(|_| right) else {
            self.wrong_packets += 1;
            return;
        };
        self.right_bytes += content.map_or(0, |content| content.len() as u64);
        self.flows[flow.index()].add(offset, end);
    }

    /// A packet has come whose content is gone.
    pub fn lacks(&mut self) {
        self.wrong_packets += 1;
    }

    /// The receiver has told its application that all of the flow is there.
    pub fn delivered(&mut self, table: &FlowTable, flow: FlowId) {
        self.delivered += 1;
        let whole = [(0, table.get(flow).bytes)];
        self.incomplete += u64::from(self.flows[flow.index()].0 != whole);
    }
}

/// Which bytes of a message are there: disjoint spans in order, never touching.
#[derive(Clone, Default)]
struct Pieces(Vec<(u64, u64)>);

impl Pieces {
    fn add(&mut self, begin: u64, end: u64) {
        // Mostly what comes is next.
        if let Some(last) = self.0.last_mut()
            && last.1 == begin
        {
            last.1 = end;
            return;
        }
        // All that overlap or touch become one.
        let first = self.0.partition_point(|span| span.1 < begin);
        let last = self.0.partition_point(|span| span.0 <= end);
        let (mut begin, mut end) = (begin, end);
        if first < last {
            begin = begin.min(self.0[first].0);
            end = end.max(self.0[last - 1].1);
        }
        self.0.splice(first..last, [(begin, end)]);
    }
}

#[cfg(test)]
mod tests;
