use std::fmt;

/// The error of a malformed quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{value}\" is not a {what}: {why}; write it like {example}")]
pub struct ParseQuantityError {
    /// The text found.
    pub value: String,
    /// The kind of quantity: "duration", "rate" or "size".
    pub what: &'static str,
    /// The fault.
    pub why: String,
    /// A correct example.
    pub example: &'static str,
}

/// The notation of one kind of quantity: its units, as multiples of the smallest.
pub(crate) struct Notation {
    pub what: &'static str,
    pub example: &'static str,
    pub units: &'static [(&'static str, u64)],
}

impl Notation {
    /// Parses "12.5us" exactly: the value must be a whole number of the smallest unit.
    pub fn parse(&self, text: &str) -> Result<u64, ParseQuantityError> {
        let fail =
            |why: String| ParseQuantityError { value: text.to_owned(), what: self.what, why, example: self.example };
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(trimmed.len());
        let (number, unit) = (trimmed[..split].replace('_', ""), trimmed[split..].trim());
        if number.is_empty() {
            return Err(fail("it does not begin with a number".into()));
        }
        let known = || self.units.iter().map(|u| u.0).collect::<Vec<_>>().join(", ");
        if unit.is_empty() {
            return Err(fail(format!("it has no unit (one of {})", known())));
        }
        let Some(&(_, scale)) = self.units.iter().find(|u| u.0 == unit) else {
            return Err(fail(format!("unit \"{unit}\" is not one of {}", known())));
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        let digits = |s: &str| if s.is_empty() { Some(0) } else { s.parse::<u128>().ok() };
        let too_large = || fail("it is too large".into());
        let places = u32::try_from(fraction.len()).map_err(|_| too_large())?;
        let power = 10u128.checked_pow(places).ok_or_else(too_large)?;
        let (Some(whole), Some(fraction)) = (digits(whole), digits(fraction)) else {
            return Err(fail("its number is malformed".into()));
        };
        let scaled = fraction.checked_mul(u128::from(scale)).ok_or_else(too_large)?;
        if scaled % power != 0 {
            let smallest = self.units.last().map_or("", |u| u.0);
            return Err(fail(format!("it is finer than 1 {smallest}")));
        }
        whole
            .checked_mul(u128::from(scale))
            .and_then(|w| w.checked_add(scaled / power))
            .and_then(|v| u64::try_from(v).ok())
            .ok_or_else(too_large)
    }

    /// Writes the exact value in the largest decimal unit that is not larger than it.
    pub fn write(&self, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimal = |scale: u64| {
            let mut s = scale;
            while s > 1 && s.is_multiple_of(10) {
                s /= 10;
            }
            s == 1
        };
        let &(unit, scale) = self
            .units
            .iter()
            .filter(|u| decimal(u.1))
            .find(|u| value >= u.1)
            .or(self.units.last())
            .expect("a notation has units");
        let (whole, rest) = (value / scale, value % scale);
        if rest == 0 {
            return write!(f, "{whole}{unit}");
        }
        let places = scale.ilog10() as usize;
        let fraction = format!("{rest:0places$}");
        write!(f, "{whole}.{}{unit}", fraction.trim_end_matches('0'))
    }
}

/// Implements the text forms of a quantity: `Display`, `FromStr`, serde strings and a JSON schema.
macro_rules! written_as {
    ($name:ident, $notation:expr) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $notation.write(self.0, f)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::ParseQuantityError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $notation.parse(text).map(Self)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(f, "a {} with its unit, like {}", $notation.what, $notation.example)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                d.deserialize_str(Visitor)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let units = $notation.units.iter().map(|u| u.0).collect::<Vec<_>>().join("|");
                schemars::json_schema!({
                    "type": "string",
                    "description": format!("a {} with its unit, like {}", $notation.what, $notation.example),
                    "pattern": format!("^[0-9][0-9_]*(\\.[0-9]+)? *({units})$"),
                })
            }
        }
    };
}
pub(crate) use written_as;

const SIZE: Notation = Notation {
    what: "size",
    example: "\"1500B\" or \"64KB\"",
    units: &[
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
        ("TB", 1_000_000_000_000),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("KB", 1_000),
        ("B", 1),
    ],
};

/// A number of bytes; KB is 1,000 of them, KiB is 1,024.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);
written_as!(Bytes, SIZE);

impl Bytes {
    /// The plain count.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests;
