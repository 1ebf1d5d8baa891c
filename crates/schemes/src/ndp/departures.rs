//! Where the authors' program (published with the paper in 2017) departs from the paper's text, or does what the text leaves open.
//!
//! A scenario lists those that it wants, `departures = ["in_order"]`, or takes all of them as `departures = "published"`.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One point of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Departure {
    /// A host sends packets in the order in which they were pushed and pulled, what is sent again first: a short message waits for
    /// all that longer ones of its host may send. Without it messages take turns, as in the authors' later program.
    InOrder,
    /// Headers are not counted: pulls are as far apart as a full packet's payload takes, and a queue of eight packets has room for the
    /// payload of eight.
    PayloadOnly,
    /// Pulls go on until a message is whole: that its sender has marked its last packet removes none.
    PullsToTheEnd,
}

impl Departure {
    const ALL: [Departure; 3] = [Departure::InOrder, Departure::PayloadOnly, Departure::PullsToTheEnd];
}

/// The name of all of them together.
const PUBLISHED: &str = "published";

/// A set of departures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departures(u8);

impl Departures {
    /// All of them: the authors' program.
    pub fn published() -> Departures {
        Departure::ALL.into_iter().collect()
    }

    /// Whether this one is among them.
    #[inline]
    pub fn has(self, departure: Departure) -> bool {
        self.0 >> departure as u8 & 1 == 1
    }
}

impl FromIterator<Departure> for Departures {
    fn from_iter<I: IntoIterator<Item = Departure>>(departures: I) -> Departures {
        Departures(departures.into_iter().fold(0, |set, departure| set | 1 << departure as u8))
    }
}

impl Serialize for Departures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self == Departures::published() {
            true => serializer.serialize_str(PUBLISHED),
            false => serializer.collect_seq(Departure::ALL.into_iter().filter(|&departure| self.has(departure))),
        }
    }
}

impl<'de> Deserialize<'de> for Departures {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Departures, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Departures;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "\"{PUBLISHED}\" or a list of departures")
            }
            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Departures, E> {
                match name {
                    PUBLISHED => Ok(Departures::published()),
                    _ => Err(E::unknown_variant(name, &[PUBLISHED])),
                }
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, seq: A) -> Result<Departures, A::Error> {
                Vec::<Departure>::deserialize(SeqAccessDeserializer::new(seq)).map(Departures::from_iter)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Departures {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NdpDepartures".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let list = generator.subschema_for::<Vec<Departure>>();
        schemars::json_schema!({ "anyOf": [{ "const": PUBLISHED }, list] })
    }
}
