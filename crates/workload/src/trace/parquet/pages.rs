//! The unpacked size of the pages of a column, by their headers alone: a few bytes can unpack to gigabytes.
//!
//! A header is a struct in Thrift's compact protocol, and the library keeps its own reader of it to itself. Of its
//! fields the second is the page's size unpacked and the third its size in the file (parquet.thrift, `PageHeader`).

/// The largest page of a column that lies at these bytes, unpacked; none if they are no pages.
pub(super) fn largest(mut column: &[u8]) -> Option<u64> {
    let mut largest = 0;
    while !column.is_empty() {
        let (unpacked, packed) = header(&mut column)?;
        largest = largest.max(unpacked);
        column = column.get(usize::try_from(packed).ok()?..)?;
    }
    Some(largest)
}

/// Reads a page's header: its size unpacked, and its size in the file.
fn header(from: &mut &[u8]) -> Option<(u64, u64)> {
    let (mut unpacked, mut packed) = (None, None);
    let mut id = 0i64;
    while let Some((next, kind)) = field(from, id)? {
        id = next;
        match (id, kind) {
            (2, INT32) => unpacked = Some(signed(from)?),
            (3, INT32) => packed = Some(signed(from)?),
            _ => skip(from, kind, 0)?,
        }
    }
    Some((u64::try_from(unpacked?).ok()?, u64::try_from(packed?).ok()?))
}

const BOOLEANS: [u8; 2] = [1, 2];
const BYTE: u8 = 3;
const INT32: u8 = 5;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LISTS: [u8; 2] = [9, 10];
const STRUCT: u8 = 12;
/// No header goes deeper.
const DEPTH: u32 = 16;

/// The number and the type of a struct's next field; none at its end.
fn field(from: &mut &[u8], last: i64) -> Option<Option<(i64, u8)>> {
    let head = byte(from)?;
    match (head >> 4, head & 15) {
        (_, 0) => Some(None),
        (0, kind) => Some(Some((signed(from)?, kind))),
        (more, kind) => Some(Some((last.checked_add(i64::from(more))?, kind))),
    }
}

fn skip(from: &mut &[u8], kind: u8, depth: u32) -> Option<()> {
    match kind {
        kind if BOOLEANS.contains(&kind) => Some(()),
        BYTE => byte(from).map(drop),
        4..=6 => varint(from).map(drop),
        DOUBLE => take(from, 8),
        BINARY => {
            let length = varint(from)?;
            take(from, length)
        }
        kind if LISTS.contains(&kind) && depth < DEPTH => {
            let head = byte(from)?;
            let count = if head >> 4 == 15 { varint(from)? } else { u64::from(head >> 4) };
            // A boolean of a list has a byte of its own.
            let inner = if BOOLEANS.contains(&(head & 15)) { BYTE } else { head & 15 };
            (0..count).try_for_each(|_| skip(from, inner, depth + 1))
        }
        STRUCT if depth < DEPTH => {
            let mut id = 0;
            while let Some((next, kind)) = field(from, id)? {
                id = next;
                skip(from, kind, depth + 1)?;
            }
            Some(())
        }
        _ => None,
    }
}

fn byte(from: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = from.split_first()?;
    *from = rest;
    Some(first)
}

fn take(from: &mut &[u8], count: u64) -> Option<()> {
    *from = from.get(usize::try_from(count).ok()?..)?;
    Some(())
}

fn varint(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let next = byte(from)?;
        value |= u64::from(next & 127) << shift;
        if next < 128 {
            return Some(value);
        }
    }
    None
}

/// A signed number, in zigzag.
fn signed(from: &mut &[u8]) -> Option<i64> {
    let value = varint(from)?;
    Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
}
