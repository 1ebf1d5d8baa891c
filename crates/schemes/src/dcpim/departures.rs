//! Where the authors' simulator (artifact of June 2022) departs from the paper's text.
//!
//! A scenario lists those that it wants, `departures = ["even_phase", "any_token"]`, or takes all of them as
//! `departures = "authors_2022"`. That program also sends nothing of long flows during the first matching phase; so does
//! the paper (footnote 3), and so do we.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One point of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Departure {
    /// A phase has 2r stages in place of 2r + 1: data begins as the last accepts are sent. Clocks agree exactly.
    EvenPhase,
    /// Channels are asked for by the smallest flow of a sender in place of all its outstanding bytes, less the channels
    /// held in this and the next phase; in rounds 2 to r a drawn entry takes all the channels that it asked for.
    RequestByFlow,
    /// Classes by a flow's total packets (up to 7, 49, 343, 2401, 16807, more: 1 to 6) in place of remaining size.
    PriorityBySize,
    /// A full buffer loses its lowest-priority packet; packets are sprayed round robin from a random start.
    PushOut,
    /// No ack of notifications, no finish of senders, no timers: the receiver says when it has everything.
    NoHandshakes,
    /// The token window looks at the highest token answered, and is relaxed after 1.1 windows' time without a token. Tokens
    /// live longer, by the time of a packet on one channel.
    LooseWindow,
    /// Packets that are missing, lost or of unused tokens, are admitted again only when all of the flow have been admitted
    /// once and one window's time has passed since, in place of as soon as its sender is matched again. With `loose_window`.
    RetokenAtEnd,
    /// A sender obeys any token, matched or not.
    AnyToken,
    /// A short flow of n packets makes its receiver skip the next n tokens.
    ShortFlowsHoldTokens,
}

impl Departure {
    const ALL: [Departure; 9] = [
        Departure::EvenPhase,
        Departure::RequestByFlow,
        Departure::PriorityBySize,
        Departure::PushOut,
        Departure::NoHandshakes,
        Departure::LooseWindow,
        Departure::RetokenAtEnd,
        Departure::AnyToken,
        Departure::ShortFlowsHoldTokens,
    ];
}

/// The name of all of them together.
const AUTHORS: &str = "authors_2022";

/// A set of departures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departures(u16);

impl Departures {
    /// All of them: the authors' program.
    pub fn authors_2022() -> Departures {
        Departure::ALL.into_iter().collect()
    }

    /// Whether this one is among them.
    #[inline]
    pub fn has(self, departure: Departure) -> bool {
        self.0 >> departure as u16 & 1 == 1
    }

    /// The others.
    pub fn without(self, departure: Departure) -> Departures {
        Departures(self.0 & !(1 << departure as u16))
    }

    fn iter(self) -> impl Iterator<Item = Departure> {
        Departure::ALL.into_iter().filter(move |&departure| self.has(departure))
    }
}

impl FromIterator<Departure> for Departures {
    fn from_iter<I: IntoIterator<Item = Departure>>(departures: I) -> Departures {
        Departures(departures.into_iter().fold(0, |set, departure| set | 1 << departure as u16))
    }
}

impl Serialize for Departures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self == Departures::authors_2022() {
            true => serializer.serialize_str(AUTHORS),
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
                write!(f, "\"{AUTHORS}\" or a list of departures")
            }
            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Departures, E> {
                match name {
                    AUTHORS => Ok(Departures::authors_2022()),
                    _ => Err(E::unknown_variant(name, &[AUTHORS])),
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
        "Departures".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let list = generator.subschema_for::<Vec<Departure>>();
        schemars::json_schema!({ "anyOf": [{ "const": AUTHORS }, list] })
    }
}
