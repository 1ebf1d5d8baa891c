//! Where the program in which Pyrrha's authors run BFC (public as NASA-NJU/Pyrrha-NS3) departs from BFC.
//!
//! A scenario lists those that it wants, `departures = ["first_queue", "lowest_first"]`, or takes all of them as
//! `departures = "published"`. What else that program does is a setting elsewhere: 31 queues for data of its 32, acknowledgements in
//! them (`ack_class` of the transport), and no window.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One point of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BfcDeparture")]
pub enum Departure {
    /// A flow is given the first usable queue, in place of the empty ones in turn. A queue is usable if it is empty and not both
    /// paused and some flow's.
    FirstQueue,
    /// A flow that finds no usable queue shares one at random, in place of the one that its virtual flow id says.
    RandomSharing,
    /// The first queue that has packets and may send is served, in place of deficit round robin. Their round robin should go on from
    /// where it stopped, but what it remembers goes to another entry than it reads: its loop has counted on by one.
    LowestFirst,
    /// Frames to a host name flows, in place of virtual flow ids, and hold back data alone: answers always go.
    HostsByFlow,
}

impl Departure {
    const ALL: [Departure; 4] =
        [Departure::FirstQueue, Departure::RandomSharing, Departure::LowestFirst, Departure::HostsByFlow];
}

/// The name of all of them together.
const PUBLISHED: &str = "published";

/// A set of departures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departures(u8);

impl Departures {
    /// All of them: the published program.
    pub fn published() -> Departures {
        Departure::ALL.into_iter().collect()
    }

    /// Whether this one is among them.
    #[inline]
    pub fn has(self, departure: Departure) -> bool {
        self.0 >> departure as u8 & 1 == 1
    }

    fn iter(self) -> impl Iterator<Item = Departure> {
        Departure::ALL.into_iter().filter(move |&departure| self.has(departure))
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
            false => serializer.collect_seq(self.iter()),
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
        "BfcDepartures".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let list = generator.subschema_for::<Vec<Departure>>();
        schemars::json_schema!({ "anyOf": [{ "const": PUBLISHED }, list] })
    }
}
