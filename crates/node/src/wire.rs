//! Bytes as they stand on a wire: in network byte order (RFC 1700), the highest byte of a number first.
//!
//! Every format of the simulator (headers of transports, frames between neighbours, telemetry, datagrams of the live
//! driver) is written by a [`Writer`] and read by a [`Reader`], field after field in the order of its figure. What is
//! read may come from a socket, so that a reader never panics.

/// Bytes that are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what}")]
pub struct Malformed {
    /// What could not be read, such as "dcPIM kind".
    pub what: &'static str,
}

/// Reads fields from bytes of any length and content.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    taken: usize,
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// A reader of all `bytes`; `what` it reads is what errors name.
    pub const fn new(bytes: &'a [u8], what: &'static str) -> Reader<'a> {
        Reader { bytes, taken: 0, what }
    }

    /// Names what is read from here on.
    pub const fn begin(&mut self, what: &'static str) {
        self.what = what;
    }

    /// How many bytes have been read.
    pub const fn taken(&self) -> usize {
        self.taken
    }

    /// What has not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.taken..]
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let bytes = self.rest().get(..count).ok_or(Malformed { what: self.what })?;
        self.taken += count;
        Ok(bytes)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let bytes = *self.rest().first_chunk().ok_or(Malformed { what: self.what })?;
        self.taken += N;
        Ok(bytes)
    }

    /// A number of one byte.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    /// A number of two bytes.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    /// A number of four bytes.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// A number of eight bytes.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// A number of sixteen bytes.
    pub fn u128(&mut self) -> Result<u128, Malformed> {
        self.array().map(u128::from_be_bytes)
    }
}

/// Appends fields to bytes.
#[derive(Debug)]
pub struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
    begin: usize,
}

impl<'a> Writer<'a> {
    /// A writer that appends to `bytes`.
    pub const fn new(bytes: &'a mut Vec<u8>) -> Writer<'a> {
        Writer { begin: bytes.len(), bytes }
    }

    /// What has been written by this writer.
    pub fn written(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }

    /// These bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A number of one byte.
    pub fn u8(&mut self, number: u8) {
        self.bytes.push(number);
    }

    /// A number of two bytes.
    pub fn u16(&mut self, number: u16) {
        self.bytes(&number.to_be_bytes());
    }

    /// A number of four bytes.
    pub fn u32(&mut self, number: u32) {
        self.bytes(&number.to_be_bytes());
    }

    /// A number of eight bytes.
    pub fn u64(&mut self, number: u64) {
        self.bytes(&number.to_be_bytes());
    }

    /// A number of sixteen bytes.
    pub fn u128(&mut self, number: u128) {
        self.bytes(&number.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
