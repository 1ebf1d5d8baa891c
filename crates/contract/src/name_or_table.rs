use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer};

/// Reads a `T` that is written either as one of `names`, which takes all defaults, or as the table `R`.
pub fn name_or_table<'de, D: Deserializer<'de>, T, R: Deserialize<'de> + Into<T>>(
    deserializer: D,
    what: &'static str,
    names: &'static [&'static str],
    named: fn(&str) -> Option<T>,
) -> Result<T, D::Error> {
    struct Visitor<T, R> {
        what: &'static str,
        names: &'static [&'static str],
        named: fn(&str) -> Option<T>,
        table: PhantomData<R>,
    }
    impl<'de, T, R: Deserialize<'de> + Into<T>> serde::de::Visitor<'de> for Visitor<T, R> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{}, or a table with one", self.what)
        }
        fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<T, E> {
            (self.named)(name).ok_or_else(|| E::unknown_variant(name, self.names))
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
            let first = R::deserialize(MapAccessDeserializer::new(&mut map)).map(R::into)?;
            // serde reads an enum from the first key and ignores the others, so a second key has to be refused here.
            match map.next_key::<String>()? {
                None => Ok(first),
                Some(more) => {
                    let message = format!("\"{more}\" is a second name, and only one can be chosen; write one of them");
                    Err(serde::de::Error::custom(message))
                }
            }
        }
    }
    deserializer.deserialize_any(Visitor::<T, R> { what, names, named, table: PhantomData })
}
