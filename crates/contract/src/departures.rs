//! Sets of points in which a published program departs from its paper: what a scenario writes as a list, or by one name
//! as what that program does. Each scheme has points of its own ([`Point`]).

use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{DeserializeOwned, Error, SeqAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One point of difference of a scheme: up to 16 of them.
pub trait Point: Copy + Serialize + DeserializeOwned + JsonSchema + 'static {
    /// All of them.
    const ALL: &'static [Self];
    /// Those of the published program.
    const PUBLISHED: &'static [Self] = Self::ALL;
    /// By what name a scenario asks for those.
    const NAME: &'static str = "published";
    /// What a set of them is called in the schema.
    const SCHEMA: &'static str;

    /// Its place among all, from 0 on.
    fn place(self) -> u16;
}

/// A set of departures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departures<P>(u16, PhantomData<P>);

impl<P: Point> Departures<P> {
    /// What the published program does.
    pub fn published() -> Departures<P> {
        P::PUBLISHED.iter().copied().collect()
    }

    /// Whether this one is among them.
    #[inline]
    pub fn has(self, point: P) -> bool {
        self.0 >> point.place() & 1 == 1
    }

    /// The others.
    pub fn without(self, point: P) -> Departures<P> {
        Departures(self.0 & !(1 << point.place()), PhantomData)
    }
}

impl<P> Default for Departures<P> {
    fn default() -> Departures<P> {
        Departures(0, PhantomData)
    }
}

impl<P: Point> FromIterator<P> for Departures<P> {
    fn from_iter<I: IntoIterator<Item = P>>(points: I) -> Departures<P> {
        Departures(points.into_iter().fold(0, |set, point| set | 1 << point.place()), PhantomData)
    }
}

impl<P: Point> Serialize for Departures<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 == Departures::<P>::published().0 {
            true => serializer.serialize_str(P::NAME),
            false => serializer.collect_seq(P::ALL.iter().filter(|point| self.has(**point))),
        }
    }
}

impl<'de, P: Point> Deserialize<'de> for Departures<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Departures<P>, D::Error> {
        struct Visitor<P>(PhantomData<P>);
        impl<'de, P: Point> serde::de::Visitor<'de> for Visitor<P> {
            type Value = Departures<P>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "\"{}\" or a list of departures", P::NAME)
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<Departures<P>, E> {
                match name == P::NAME {
                    true => Ok(Departures::published()),
                    false => Err(E::unknown_variant(name, &[P::NAME])),
                }
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Departures<P>, A::Error> {
                Vec::<P>::deserialize(SeqAccessDeserializer::new(seq)).map(Departures::from_iter)
            }
        }
        deserializer.deserialize_any(Visitor(PhantomData))
    }
}

impl<P: Point> JsonSchema for Departures<P> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        P::SCHEMA.into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let list = generator.subschema_for::<Vec<P>>();
        schemars::json_schema!({ "anyOf": [{ "const": P::NAME }, list] })
    }
}
