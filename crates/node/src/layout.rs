//! The layout of headers on a wire, described as data, for programs that read captures without this code. A header's
//! [`emit`](crate::Header::emit) and [`parse`](crate::Header::parse) are authoritative; tests compare its layout with
//! them.

/// The messages of a scheme.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Each message; the first that fits a header's bytes is what they are.
    pub messages: &'static [Message],
}

/// A message: how it is recognised, and what it says.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Its name.
    pub name: &'static str,
    /// Both of these hold.
    pub when: [Test; 2],
    /// Bytes of the header.
    pub bytes: u16,
    /// Its fields, in the order in which they are said.
    pub fields: &'static [Field],
}

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// What stands in front of its value. A list begins with `[` at its end, and ends with a label that ends in `]`,
    /// which stands behind the value.
    pub label: &'static str,
    /// Where it stands.
    pub at: Bits,
    /// How it is said.
    pub shown: Shown,
}

/// Some bits of a header: of the number of `bytes` bytes in network byte order that begins at byte `at`, those from
/// `shift` on, `count` of them.
#[derive(Clone, Copy, Debug)]
pub struct Bits {
    /// The first byte.
    pub at: u16,
    /// How many bytes, 8 at most.
    pub bytes: u8,
    /// The lowest bit, from the end.
    pub shift: u8,
    /// How many bits.
    pub count: u8,
}

/// Whether some bits are in a range, of which both ends belong to it.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// Which bits.
    pub bits: Bits,
    /// The least.
    pub from: u64,
    /// The greatest.
    pub to: u64,
}

/// How a field's number is said.
#[derive(Clone, Copy, Debug)]
pub enum Shown {
    /// As it is.
    Number,
    /// As a word of these, or "?".
    Word(&'static [(u64, &'static str)]),
    /// As it is if this holds, and as "None" otherwise.
    If(Test),
    /// As it is if this holds, and as 0 otherwise.
    OrZero(Test),
    /// In the largest of these units that is not larger than it: units by size, the largest first.
    Written(&'static [(&'static str, u64)]),
    /// The field is `count` numbers of two bytes: a bit for each that is not 0, the first lowest, of those in `mask`.
    NotZero {
        /// How many numbers.
        count: u8,
        /// Which bits can be set.
        mask: Bits,
    },
}

/// Whether something is so: one bit.
pub const BOOL: Shown = Shown::Word(&[(0, "false"), (1, "true")]);
/// Times and durations, in picoseconds.
pub const TIME: Shown =
    Shown::Written(&[("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)]);
/// Rates, in bits per second.
pub const RATE: Shown = Shown::Written(&[
    ("Tbps", 1_000_000_000_000),
    ("Gbps", 1_000_000_000),
    ("Mbps", 1_000_000),
    ("Kbps", 1_000),
    ("bps", 1),
]);

impl Bits {
    const fn of(at: u16, bytes: u8) -> Bits {
        Bits { at, bytes, shift: 0, count: bytes * 8 }
    }

    /// A byte.
    pub const fn u8(at: u16) -> Bits {
        Bits::of(at, 1)
    }

    /// Two bytes.
    pub const fn u16(at: u16) -> Bits {
        Bits::of(at, 2)
    }

    /// Four bytes.
    pub const fn u32(at: u16) -> Bits {
        Bits::of(at, 4)
    }

    /// Eight bytes.
    pub const fn u64(at: u16) -> Bits {
        Bits::of(at, 8)
    }

    /// Some bits of these.
    pub const fn bits(self, shift: u8, count: u8) -> Bits {
        Bits { shift, count, ..self }
    }

    /// That they are a number.
    pub const fn are(self, value: u64) -> Test {
        Test { bits: self, from: value, to: value }
    }

    /// That they are between two numbers, or one of both.
    pub const fn within(self, from: u64, to: u64) -> Test {
        Test { bits: self, from, to }
    }

    /// Their value, if the header is so long.
    pub fn read(self, header: &[u8]) -> Option<u64> {
        let (at, bytes) = (usize::from(self.at), usize::from(self.bytes));
        let number = header.get(at..at + bytes)?.iter().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
        let mask = u64::MAX.checked_shr(64 - u32::from(self.count)).unwrap_or(0);
        Some(number.checked_shr(self.shift.into()).unwrap_or(0) & mask)
    }
}

impl Message {
    /// One that is recognised by a test.
    pub const fn new(name: &'static str, when: Test, bytes: u16, fields: &'static [Field]) -> Message {
        Message { name, when: [when, when], bytes, fields }
    }

    /// One for which another test holds too.
    pub const fn and(self, test: Test) -> Message {
        Message { when: [self.when[0], test], ..self }
    }

    /// One of 32 bytes, which is recognised by its first.
    pub const fn of_kind(name: &'static str, kind: u8, fields: &'static [Field]) -> Message {
        Message::new(name, Bits::u8(0).are(kind as u64), 32, fields)
    }
}

impl Test {
    /// Whether it holds of a header.
    pub fn holds(&self, header: &[u8]) -> bool {
        self.bits.read(header).is_some_and(|value| (self.from..=self.to).contains(&value))
    }
}

impl Field {
    /// A number.
    pub const fn number(label: &'static str, at: Bits) -> Field {
        Field { label, at, shown: Shown::Number }
    }

    /// Something else.
    pub const fn new(label: &'static str, at: Bits, shown: Shown) -> Field {
        Field { label, at, shown }
    }

    /// Its value in words.
    fn said(&self, header: &[u8]) -> Option<String> {
        if let Shown::NotZero { count, mask } = self.shown {
            let set = (0..count).filter(|&index| Bits::u16(self.at.at + 2 * u16::from(index)).read(header) != Some(0));
            return Some((set.fold(0, |sum, index| sum | 1u64 << index) & mask.read(header)?).to_string());
        }
        let value = self.at.read(header)?;
        Some(match self.shown {
            Shown::Word(words) => words.iter().find(|word| word.0 == value).map_or("?", |word| word.1).to_owned(),
            Shown::If(test) if !test.holds(header) => "None".to_owned(),
            Shown::OrZero(test) if !test.holds(header) => "0".to_owned(),
            Shown::Written(units) => written(value, units),
            _ => value.to_string(),
        })
    }
}

/// A number in the largest unit that is not larger than it.
fn written(value: u64, units: &[(&str, u64)]) -> String {
    let known = units.iter().find(|unit| value >= unit.1).or(units.last());
    let Some((name, scale)) = known else { return value.to_string() };
    let rest = value % scale;
    let places = scale.ilog10() as usize;
    let fraction = if rest == 0 { String::new() } else { format!(".{rest:0places$}") };
    format!("{}{}{name}", value / scale, fraction.trim_end_matches('0'))
}

impl Layout {
    /// What a header says, as its scheme says it; nothing if it is none of the messages.
    pub fn says(&self, header: &[u8]) -> Option<String> {
        let fits = |message: &&Message| {
            header.len() >= usize::from(message.bytes) && message.when.iter().all(|test| test.holds(header))
        };
        let message = self.messages.iter().find(fits)?;
        let mut said = message.name.to_owned();
        for (index, field) in message.fields.iter().enumerate() {
            let (label, closes) = field.label.strip_suffix(']').map_or((field.label, ""), |label| (label, "]"));
            said.push_str(if index == 0 { " " } else { ", " });
            said.push_str(label);
            said.push_str(if label.is_empty() || label.ends_with('[') { "" } else { " " });
            said.push_str(&field.said(header)?);
            said.push_str(closes);
        }
        Some(said)
    }
}

#[cfg(test)]
mod tests;
