//! Where the authors' ns-3 (github.com/NASA-NJU/Pyrrha-NS3, `switch-node.cc` and `switch-mmu.cc`) departs from the paper's text.
//!
//! A scenario lists those that it wants, `departures = ["merge_at_down_ports"]`, or takes what that program does as it was
//! published: `departures = "published"`.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One point of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Departure {
    /// A port that leads up nominates itself, and pauses, only while its output queue is above twice the mean of all the
    /// switch's ports that lead up: load without imbalance makes no root there. Not part of "published": the program compares
    /// with a sum (`bytes_up_data`) that nothing in it ever adds to, so that the rule always passes.
    UplinksAboveMean,
    /// A root that leads up stays one, whatever root further downstream it hears of; only those that lead down merge.
    MergeAtDownPorts,
    /// What one neighbour sent and waits in isolation queues of a root, over all ports of the switch, pauses that neighbour, in
    /// place of the length of the queue, which pauses whoever adds to it (section 4.3).
    PauseByIngress,
}

impl Departure {
    const ALL: [Departure; 3] = [Departure::UplinksAboveMean, Departure::MergeAtDownPorts, Departure::PauseByIngress];
    const PUBLISHED: [Departure; 2] = [Departure::MergeAtDownPorts, Departure::PauseByIngress];
}

/// The name of what the program does.
const PUBLISHED: &str = "published";

/// A set of departures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departures(u8);

impl Departures {
    /// What the authors' program does.
    pub fn published() -> Departures {
        Departure::PUBLISHED.into_iter().collect()
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
            false => serializer.collect_seq(Departure::ALL.into_iter().filter(|departure| self.has(*departure))),
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
        "PyrrhaDepartures".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let list = generator.subschema_for::<Vec<Departure>>();
        schemars::json_schema!({ "anyOf": [{ "const": PUBLISHED }, list] })
    }
}
