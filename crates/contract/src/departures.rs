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
    /// Names of other sets, and their points.
    const OTHERS: &'static [(&'static str, &'static [Self])] = &[];
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

    /// The set of this name, if it is one.
    pub fn named(name: &str) -> Option<Departures<P>> {
        match name {
            PAPER => Some(Departures::default()),
            name if name == P::NAME => Some(Departures::published()),
            name => P::OTHERS.iter().find(|other| other.0 == name).map(|other| other.1.iter().copied().collect()),
        }
    }

    /// The names of sets.
    fn names() -> Vec<&'static str> {
        let others = P::OTHERS.iter().map(|other| other.0);
        [P::NAME].into_iter().chain(others).chain([PAPER]).collect()
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
        let named = Self::names()
            .into_iter()
            .find(|name| *name != PAPER && Self::named(name).is_some_and(|set| set.0 == self.0));
        match named {
            Some(name) => serializer.serialize_str(name),
            None => serializer.collect_seq(P::ALL.iter().filter(|point| self.has(**point))),
        }
    }
}

impl<'de, P: Point> Deserialize<'de> for Departures<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Departures<P>, D::Error> {
        struct Visitor<P>(PhantomData<P>);
        impl<'de, P: Point> serde::de::Visitor<'de> for Visitor<P> {
            type Value = Departures<P>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "\"{}\" or a list of departures", Departures::<P>::names().join("\", \""))
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<Departures<P>, E> {
                Departures::named(name).ok_or_else(|| {
                    let expected = match &Departures::<P>::names()[..] {
                        [one, other] => format!("`{one}` or `{other}`"),
                        several => format!("one of `{}`", several.join("`, `")),
                    };
                    E::custom(format_args!("unknown variant `{name}`, expected {expected}"))
                })
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
        schemars::json_schema!({ "anyOf": [{ "enum": Departures::<P>::names() }, list] })
    }
}
