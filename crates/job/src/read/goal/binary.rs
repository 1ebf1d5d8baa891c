//! GOAL's binary form, as LogGOPSim's `txt2bin` writes it on machines of little endian (its `Parser.hpp`):
//!
//! - 8 bytes with the number 4223;
//! - the file's own data, from which positions are counted: the number of ranks (4 bytes), the highest cpu and nic
//!   (1 byte each), and for each rank where its data begin and end (8 bytes each);
//! - for each rank: how many nodes (4), how many of them wait for nothing (4) and which (4 each), the nodes (39 each),
//!   and the nodes that wait for others (4 each).
//!
//! A node: for how many it waits (4); 1 send, 2 receive, 3 calculation (1); the other rank (4); size (8); tag (4); cpu
//! and nic (1 each); how many wait for its end (4), and where in the list (4); how many for its begin (4), and where
//! (4).

use super::super::assemble::{Op, RankOps, What};
use super::super::{RANKS_MAX, TraceError};
use super::GoalTrace;

const MAGIC: u64 = 4223;
/// The values that LogGOPSim uses after the end of a file.
const USED: u64 = 2342;
const NODE_BYTES: u64 = 39;
/// Any source, or any tag.
const ANY: u32 = u32::MAX;

/// No text begins like this: it has bytes of 0.
pub(super) fn is_binary(content: &[u8]) -> bool {
    content.first_chunk().is_some_and(|bytes| [MAGIC, USED].contains(&u64::from_le_bytes(*bytes)))
}

/// Bytes of the file from a position on.
struct Bytes<'a> {
    trace: &'a GoalTrace,
    all: &'a [u8],
    at: u64,
}

impl<'a> Bytes<'a> {
    fn take<const N: usize>(&mut self, what: &str) -> Result<[u8; N], TraceError> {
        let begin = usize::try_from(self.at).ok();
        let found = begin.and_then(|begin| self.all.get(begin..)).and_then(|rest| rest.first_chunk::<N>());
        let Some(bytes) = found else {
            let expected = format!("longer: {what} stands at byte {}", self.at);
            return Err(TraceError::whole(&self.trace.path, "file", &format!("{} B", self.all.len()), &expected));
        };
        self.at += N as u64;
        Ok(*bytes)
    }

    fn u8(&mut self, what: &str) -> Result<u8, TraceError> {
        self.take::<1>(what).map(|[byte]| byte)
    }

    fn u32(&mut self, what: &str) -> Result<u32, TraceError> {
        self.take(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &str) -> Result<u64, TraceError> {
        self.take(what).map(u64::from_le_bytes)
    }

    /// The same bytes at another position, if `bytes` of them are there.
    fn part(&self, at: u64, bytes: u64, what: &str) -> Result<Bytes<'a>, TraceError> {
        if at.checked_add(bytes).is_none_or(|end| end > self.all.len() as u64) {
            let expected = format!("longer: {what} has {bytes} bytes from {at}");
            return Err(TraceError::whole(&self.trace.path, "file", &format!("{} B", self.all.len()), &expected));
        }
        Ok(Bytes { at, ..*self })
    }
}

/// The work of each rank.
pub(super) fn read(trace: &GoalTrace, content: &[u8]) -> Result<Vec<RankOps>, TraceError> {
    let mut head = Bytes { trace, all: content, at: 0 };
    if head.u64("the number 4223")? == USED {
        let expected = "4223: a run of LogGOPSim with --save-mem has used this file up, make it anew";
        return Err(TraceError::whole(&trace.path, "first bytes", "2342", expected));
    }
    let base = head.at;
    let ranks = head.u32("the number of ranks")?;
    if ranks > RANKS_MAX {
        let expected = format!("at most {RANKS_MAX}");
        return Err(TraceError::whole(&trace.path, "number of ranks", &ranks.to_string(), &expected));
    }
    let (_cpus, _nics) = (head.u8("the highest cpu")?, head.u8("the highest nic")?);
    head.part(head.at, 16 * u64::from(ranks), "the table of ranks")?;
    let mut all = Vec::new();
    let mut so_far = head.at + 16 * u64::from(ranks) - base;
    for rank in 0..ranks {
        let (begin, end) = (head.u64("the begin of a rank")?, head.u64("the end of a rank")?);
        // Ranks that share bytes could make a small file a large job.
        if begin < so_far || end < begin {
            let expected = format!("after {so_far}, where the rank before ends");
            let place = format!("rank {rank}");
            return Err(TraceError::new(&trace.path, place, "begin and end", &format!("{begin}, {end}"), &expected));
        }
        so_far = end;
        let bytes = head.part(base.saturating_add(begin), end - begin, &format!("rank {rank}"))?;
        all.push(read_rank(trace, rank, bytes, end - begin)?);
    }
    Ok(all)
}

fn read_rank(trace: &GoalTrace, rank: u32, mut bytes: Bytes<'_>, length: u64) -> Result<RankOps, TraceError> {
    let error = |field: &str, value: &str, expected: &str| {
        Err(TraceError::new(&trace.path, format!("rank {rank}"), field, value, expected))
    };
    let (nodes, roots) = (bytes.u32("the number of nodes")?, bytes.u32("the number of first nodes")?);
    let list_at = 8 + 4 * u64::from(roots) + NODE_BYTES * u64::from(nodes);
    if list_at > length {
        return error("nodes", &format!("{nodes}, {roots} of them first"), &format!("fewer: they have {length} bytes"));
    }
    let listed = (length - list_at) / 4;
    let list = Bytes { at: bytes.at + list_at - 8, ..bytes };
    bytes.at += 4 * u64::from(roots);
    let mut own = RankOps::default();
    let mut given = 0u64;
    let mut waits_for = Vec::new();
    for node in 0..nodes {
        let at = |field: &str, value: u64, expected: &str| {
            let place = format!("node {node} of rank {rank}");
            Err(TraceError::new(&trace.path, place, field, &value.to_string(), expected))
        };
        waits_for.push(bytes.u32("a node")?);
        let (kind, other, size) = (bytes.u8("a node")?, bytes.u32("a node")?, bytes.u64("a node")?);
        let (tag, cpu, _nic) = (bytes.u32("a node")?, bytes.u8("a node")?, bytes.u8("a node")?);
        if matches!(kind, 1 | 2) && (other == ANY || tag == ANY) {
            let expected = "known: who any source or any tag is depends on the network";
            return at(if other == ANY { "rank" } else { "tag" }, u64::from(ANY), expected);
        }
        let what = match (kind, trace.calc(size)) {
            (1, _) => What::Send { to: other, tag, bytes: size },
            (2, _) => What::Receive { from: other, tag, room: size },
            (3, Some(time)) if cpu == 0 => What::Compute(time),
            (3, Some(time)) => What::Delay(time),
            (3, None) => return at("size", size, "less than 100 days"),
            _ => return at("type", u64::from(kind), "1 (send), 2 (receive) or 3 (calculation)"),
        };
        own.ops.push(Op { what, name: "".into(), at: u64::from(node) });
        for begin in [false, true] {
            let (count, first) = (bytes.u32("a node")?, bytes.u32("a node")?);
            if u64::from(count) + if count > 0 { u64::from(first) } else { 0 } > listed {
                return at("waiting nodes", u64::from(count), &format!("among the {listed} that the list has"));
            }
            given += u64::from(count);
            if given > listed {
                return at("waiting nodes", u64::from(count), "others than those of nodes before");
            }
            let mut waiting = Bytes { at: list.at + 4 * u64::from(first), ..list };
            for _ in 0..count {
                let after = waiting.u32("the list")?;
                if after >= nodes {
                    return at("waiting node", u64::from(after), &format!("one of the {nodes}, from 0"));
                }
                if begin { own.after_begin.push((after, node)) } else { own.after_end.push((after, node)) }
            }
        }
    }
    let mut found = vec![0; nodes as usize];
    own.after_end.iter().chain(&own.after_begin).for_each(|&(after, _)| found[after as usize] += 1);
    if let Some(node) = (0..nodes as usize).find(|&node| found[node] != waits_for[node]) {
        let (value, expected) = (waits_for[node].to_string(), format!("{}, as the lists of others say", found[node]));
        let place = format!("node {node} of rank {rank}");
        return Err(TraceError::new(&trace.path, place, "number of nodes before", &value, &expected));
    }
    Ok(own)
}
