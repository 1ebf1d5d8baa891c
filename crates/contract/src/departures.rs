//! Sets of departures: the points in which a published program differs from its paper. A scenario lists the points, or
//! writes one name for all points of that program, or "paper" for none. Each scheme has its own points ([`Point`]);
//! some may be Clearway's own.

use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{DeserializeOwned, Error, SeqAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The departures of one scheme: an enum of at most 16 points.
pub trait Point: Copy + Serialize + DeserializeOwned + JsonSchema + 'static {
    /// All points.
    const ALL: &'static [Self];
    /// The points in which the published program departs from the paper.
    const PUBLISHED: &'static [Self] = Self::ALL;
    /// The name by which a scenario asks for [`Point::PUBLISHED`].
    const NAME: &'static str = "published";
    /// The name of the set in the JSON schema.
    const SCHEMA: &'static str;

    /// Index of the point in [`Point::ALL`].
    fn place(self) -> u16;
}

/// A set of departures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departures<P>(u16, PhantomData<P>);

/// The name of the empty set.
const PAPER: &str = "paper";

impl<P: Point> Departures<P> {
    /// The departures of the published program.
    pub fn published() -> Departures<P> {
        P::PUBLISHED.iter().copied().collect()
    }

    /// Whether `point` is in the set.
    #[inline]
    pub fn has(self, point: P) -> bool {
        self.0 >> point.place() & 1 == 1
    }

    /// The set without `point`.
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
                write!(f, "\"{}\", \"{PAPER}\" or a list of departures", P::NAME)
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<Departures<P>, E> {
                match name {
                    PAPER => Ok(Departures::default()),
                    name if name == P::NAME => Ok(Departures::published()),
                    _ => Err(E::unknown_variant(name, &[P::NAME, PAPER])),
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
        schemars::json_schema!({ "anyOf": [{ "enum": [P::NAME, PAPER] }, list] })
    }
}
