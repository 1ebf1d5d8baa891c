//! The content of messages in a live run, made so that every byte can be checked where it arrives.
//!
//! Byte i of flow f is a function of (f, i) alone, so a receiver knows what must arrive. Each word of eight bytes is a
//! number that belongs to the flow, plus a constant for each word before it. So eight bytes of another flow, or of
//! another place in the same flow, are recognised as wrong. A core writes or compares some 50 bytes a nanosecond, many
//! words at a time.

use run::FlowTable;
use scenario::ContentCheck;
use smallvec::SmallVec;
use units::{FlowId, mix};

/// What each word of a flow adds to the one before it: odd, so that all of 2^64 words differ.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// With [`ContentCheck::Sampled`], one packet in this many has content.
const SAMPLE: u64 = 16;

/// Words that are made at a time.
const LANES: usize = 8;

/// From one block's word to the next block's in the same place.
const BLOCK_STEP: u64 = STEP.wrapping_mul(LANES as u64);

/// The word of a message in which a part of it begins, without what comes before, and how many bytes of it belong to
/// the part; and the words that follow, of a block.
#[inline(always)]
fn words(flow: FlowId, offset: u64, bytes: usize) -> ([u8; 8], usize, [u64; LANES]) {
    let first = mix(u64::from(flow.0), 0);
    let word = |index: u64| first.wrapping_add(index.wrapping_mul(STEP));
    let skip = offset % 8;
    let begun = (word(offset / 8) >> (8 * skip)).to_le_bytes();
    let next = offset.div_ceil(8);
    let lanes = std::array::from_fn(|lane| word(next.wrapping_add(lane as u64)));
    (begun, ((8 - skip) as usize % 8).min(bytes), lanes)
}

/// The last words of a part, up to a block of them: computed anew, so that the lanes of a loop before stay in
/// registers.
#[inline(never)]
fn last(flow: FlowId, offset: u64) -> [u8; 8 * LANES] {
    let mut bytes = [0; 8 * LANES];
    for (place, lane) in bytes.as_chunks_mut().0.iter_mut().zip(words(flow, offset, 0).2) {
        *place = lane.to_le_bytes();
    }
    bytes
}

/// Writes a part of the flow's message over `out`, from the message's byte `offset` on.
#[inline(never)]
pub fn write(flow: FlowId, offset: u64, out: &mut [u8]) {
    let (begun, begun_bytes, mut lanes) = words(flow, offset, out.len());
    let (head, out) = out.split_at_mut(begun_bytes);
    head.copy_from_slice(&begun[..begun_bytes]);
    // Each lane on its own, so that compilers use vectors.
    let (blocks, rest) = out.as_chunks_mut::<{ 8 * LANES }>();
    let count = blocks.len();
    for block in blocks {
        for (place, lane) in block.as_chunks_mut().0.iter_mut().zip(&mut lanes) {
            *place = lane.to_le_bytes();
            *lane = lane.wrapping_add(BLOCK_STEP);
        }
    }
    let at = offset.wrapping_add((begun_bytes + 8 * LANES * count) as u64);
    rest.copy_from_slice(&last(flow, at)[..rest.len()]);
}

/// Whether this is what [`write()`] writes.
pub fn is_right(flow: FlowId, offset: u64, content: &[u8]) -> bool {
    let (begun, begun_bytes, lanes) = words(flow, offset, content.len());
    let (head, content) = content.split_at(begun_bytes);
    let (blocks, _) = content.as_chunks::<8>().0.as_chunks::<LANES>();
    let rest = &content[8 * LANES * blocks.len()..];
    let at = offset.wrapping_add((begun_bytes + 8 * LANES * blocks.len()) as u64);
    let right = differences(lanes[0], blocks) == 0;
    right && *head == begun[..begun_bytes] && *rest == last(flow, at)[..rest.len()]
}

/// Bits in which blocks differ from those that begin with this word. A function of its own: where it is part of
/// another, the lanes go through memory.
#[inline(never)]
fn differences(first: u64, blocks: &[[[u8; 8]; LANES]]) -> u64 {
    let mut lanes: [u64; LANES] = std::array::from_fn(|lane| first.wrapping_add((lane as u64).wrapping_mul(STEP)));
    let mut wrong = [0; LANES];
    for block in blocks {
        for ((place, lane), wrong) in block.iter().zip(&mut lanes).zip(&mut wrong) {
            *wrong |= u64::from_le_bytes(*place) ^ *lane;
            *lane = lane.wrapping_add(BLOCK_STEP);
        }
    }
    wrong.iter().fold(0, |all, lane| all | lane)
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
    /// Bytes that were correct.
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

    /// A packet has arrived without its content.
    pub fn lacks(&mut self) {
        self.wrong_packets += 1;
    }

    /// The receiver has told its application that all of the flow is there.
    pub fn delivered(&mut self, table: &FlowTable, flow: FlowId) {
        self.delivered += 1;
        self.incomplete += u64::from(!self.flows[flow.index()].is_whole(table.get(flow).bytes));
    }
}

/// The bytes of a message that have arrived: disjoint spans in order, never touching. The first span has its place from
/// the beginning: a worker that asked the machine for memory with each message would wait for it.
#[derive(Clone, Default)]
pub(crate) struct Pieces(SmallVec<[(u64, u64); 1]>);

impl Pieces {
    /// Whether this many bytes are there.
    pub fn is_whole(&self, bytes: u64) -> bool {
        *self.0 == [(0, bytes)]
    }

    pub fn add(&mut self, begin: u64, end: u64) {
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
        if first == last {
            self.0.insert(first, (begin, end));
            return;
        }
        begin = begin.min(self.0[first].0);
        end = end.max(self.0[last - 1].1);
        self.0[first] = (begin, end);
        self.0.drain(first + 1..last);
    }
}

#[cfg(test)]
mod tests;
