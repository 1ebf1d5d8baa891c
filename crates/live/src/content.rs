//! What the applications of a live run say to each other, so that every byte can be checked where it arrives.
//!
//! Byte i of flow f is a function of (f, i) alone: a receiver knows what must come without having been told, and a byte
//! of another flow, or of another place in the same one, is a wrong byte.

use run::FlowTable;
use units::{FlowId, mix};

/// Writes `count` bytes of the flow's message, from `offset` on, over `out`.
pub fn write(flow: FlowId, offset: u64, count: usize, out: &mut Vec<u8>) {
    out.clear();
    // Whole words, and then without what comes before and after.
    let end = offset.saturating_add(count as u64);
    for word in offset / 8..end.div_ceil(8) {
        out.extend_from_slice(&mix(u64::from(flow.0), word).to_le_bytes());
    }
    out.drain(..(offset % 8) as usize);
    out.truncate(count);
}

/// What has arrived of every flow, and how much of it was wrong.
pub(crate) struct Inbox {
    flows: Vec<Pieces>,
    expected: Vec<u8>,
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
        Inbox { flows, expected: Vec::new(), right_bytes: 0, wrong_packets: 0, delivered: 0, incomplete: 0 }
    }

    /// Content has arrived at its flow's destination.
    pub fn take(&mut self, table: &FlowTable, flow: FlowId, offset: u64, content: &[u8]) {
        let end = offset.checked_add(content.len() as u64);
        let inside = |end: &u64| self.flows.len() > flow.index() && *end <= table.get(flow).bytes;
        let Some(end) = end.filter(inside) else {
            self.wrong_packets += 1;
            return;
        };
        write(flow, offset, content.len(), &mut self.expected);
        if self.expected != content {
            self.wrong_packets += 1;
            return;
        }
        self.right_bytes += content.len() as u64;
        self.flows[flow.index()].add(offset, end);
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
