use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, EnumAccess, Error, IntoDeserializer, MapAccess, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Entries of a list that are known only when the program runs, such as transports that a crate outside of Clearway
/// has registered.
pub trait Others<T> {
    /// Their names.
    fn names(&self) -> Vec<&'static str>;

    /// One of them, with its defaults.
    fn named(&self, name: &'static str) -> T;

    /// One of them, with the settings that are a table's next value.
    fn read<'de, A: MapAccess<'de>>(&self, name: &'static str, table: &mut A) -> Result<T, A::Error>;
}

/// None.
impl<T> Others<T> for () {
    fn names(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn named(&self, _: &'static str) -> T {
        unreachable!("there is none")
    }

    fn read<'de, A: MapAccess<'de>>(&self, _: &'static str, _: &mut A) -> Result<T, A::Error> {
        Err(A::Error::custom("there is none"))
    }
}

/// Reads a `T` that is written either as one of `names`, which takes all defaults, or as the table `R`; or that is one
/// of `others`.
pub fn name_or_table<'de, D: Deserializer<'de>, T, R: Deserialize<'de> + Into<T>>(
    deserializer: D,
    what: &'static str,
    names: &'static [&'static str],
    named: fn(&str) -> Option<T>,
    others: impl Others<T>,
) -> Result<T, D::Error> {
    let other_names = others.names();
    deserializer.deserialize_any(NameOrTable::<T, R, _> { what, names, named, others, other_names, table: PhantomData })
}

struct NameOrTable<T, R, O> {
    what: &'static str,
    names: &'static [&'static str],
    named: fn(&str) -> Option<T>,
    others: O,
    other_names: Vec<&'static str>,
    table: PhantomData<R>,
}

impl<T, R, O> NameOrTable<T, R, O> {
    fn other(&self, name: &str) -> Option<&'static str> {
        self.other_names.iter().find(|other| **other == name).copied()
    }

    /// As serde words it, whose lists of names can't grow.
    fn unknown<E: Error>(&self, name: &str) -> E {
        let known: Vec<String> = self.names.iter().chain(&self.other_names).map(|name| format!("`{name}`")).collect();
        E::custom(format!("unknown variant `{name}`, expected one of {}", known.join(", ")))
    }
}

impl<'de, T, R: Deserialize<'de> + Into<T>, O: Others<T>> Visitor<'de> for NameOrTable<T, R, O> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, or a table with one", self.what)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<T, E> {
        let other = || self.other(name).map(|name| self.others.named(name));
        (self.named)(name).or_else(other).ok_or_else(|| self.unknown(name))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let first = if self.other_names.is_empty() {
            R::deserialize(MapAccessDeserializer::new(&mut map))?.into()
        } else {
            match map.next_key_seed(NameOf(&self))? {
                Some(Name::Other(name)) => self.others.read(name, &mut map)?,
                Some(Name::Listed(name)) => R::deserialize(Named { name, map: &mut map })?.into(),
                None => R::deserialize(MapAccessDeserializer::new(&mut map))?.into(),
            }
        };
        // serde reads an enum from the first key and ignores the others, so a second key has to be refused here.
        match map.next_key::<String>()? {
            None => Ok(first),
            Some(more) => {
                let message = format!("\"{more}\" is a second name, and only one can be chosen; write one of them");
                Err(Error::custom(message))
            }
        }
    }
}

enum Name {
    Listed(String),
    Other(&'static str),
}

/// Reads a table's first key. One that is not known is refused here, where the error gets its place in the text.
struct NameOf<'a, T, R, O>(&'a NameOrTable<T, R, O>);

impl<'de, T, R, O> DeserializeSeed<'de> for NameOf<'_, T, R, O> {
    type Value = Name;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Name, D::Error> {
        let name = String::deserialize(deserializer)?;
        match self.0.other(&name) {
            Some(other) => Ok(Name::Other(other)),
            None if (self.0.named)(&name).is_some() => Ok(Name::Listed(name)),
            None => Err(self.0.unknown(&name)),
        }
    }
}

/// A table whose first key has been read, as the enum that it is.
struct Named<'a, A> {
    name: String,
    map: &'a mut A,
}

impl<'de, A: MapAccess<'de>> Deserializer<'de> for Named<'_, A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_enum(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, 'a, A: MapAccess<'de>> EnumAccess<'de> for Named<'a, A> {
    type Error = A::Error;
    type Variant = Settings<'a, A>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Settings<'a, A>), A::Error> {
        let name: StrDeserializer<'_, A::Error> = self.name.as_str().into_deserializer();
        Ok((seed.deserialize(name)?, Settings(self.map)))
    }
}

/// The value of that key.
struct Settings<'a, A>(&'a mut A);

impl<'de, A: MapAccess<'de>> VariantAccess<'de> for Settings<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.next_value()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, A::Error> {
        self.0.next_value_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, A::Error> {
        Err(Error::custom("a list of settings has none of these forms"))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, A::Error> {
        Err(Error::custom("a list of settings has none of these forms"))
    }
}
