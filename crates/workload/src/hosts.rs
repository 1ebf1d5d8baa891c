use std::fmt;
use std::str::FromStr;

use units::{HostId, Problem};

use crate::FabricView;

/// A set of hosts in text form: `"0-15, 40, racks 3-4"`, ends included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hosts(Vec<Span>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Span {
    racks: bool,
    first: u32,
    last: u32,
}

/// The error of a malformed set of hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{part}\" names no hosts: {why}; write hosts like \"0-15, 40\" or \"rack 0, racks 3-4\"")]
pub struct ParseHostsError {
    /// The part between commas that is wrong.
    pub part: String,
    /// The defect.
    pub why: &'static str,
}

impl Hosts {
    /// One host.
    pub fn one(host: HostId) -> Hosts {
        Hosts(vec![Span { racks: false, first: host.0, last: host.0 }])
    }

    /// The hosts of this set in ascending order, each once. A host or rack that does not exist is an error.
    pub fn resolve(&self, view: &FabricView) -> Result<Vec<HostId>, Problem> {
        let racks = view.rack_of.iter().max().map_or(0, |&last| u64::from(last) + 1);
        let mut member = vec![false; view.rack_of.len()];
        for span in &self.0 {
            let (noun, count) = if span.racks { ("rack", racks) } else { ("host", u64::from(view.hosts())) };
            if u64::from(span.last) >= count {
                let message = format!("there is no {noun} {}: the fabric has {count}, counted from 0", span.last);
                return Err(Problem::new("", message));
            }
            let within = |value: u32| (span.first..=span.last).contains(&value);
            for (host, member) in member.iter_mut().enumerate() {
                *member |= within(if span.racks { view.rack_of[host] } else { host as u32 });
            }
        }
        Ok((0..view.hosts()).map(HostId).filter(|host| member[host.index()]).collect())
    }
}

impl FromStr for Hosts {
    type Err = ParseHostsError;
    fn from_str(text: &str) -> Result<Hosts, ParseHostsError> {
        text.split(',').map(|part| part.trim().parse()).collect::<Result<_, _>>().map(Hosts)
    }
}

impl FromStr for Span {
    type Err = ParseHostsError;
    fn from_str(part: &str) -> Result<Span, ParseHostsError> {
        let fail = |why| ParseHostsError { part: part.to_owned(), why };
        let (racks, range) = match part.strip_prefix("racks ").or(part.strip_prefix("rack ")) {
            Some(range) => (true, range),
            None => (false, part),
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let is_name = part.starts_with(|first: char| first.is_alphabetic());
        let why = match is_name {
            true if part.starts_with("host") => "hosts are given by their numbers alone, so host3 is \"3\"",
            true => "hosts are given by number, and switches send and receive no messages",
            false => "it is neither a number nor a range",
        };
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| fail(why));
        let (first, last) = (number(first)?, number(last)?);
        if first > last { Err(fail("the range runs backwards")) } else { Ok(Span { racks, first, last }) }
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Span { racks, first, last }) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            match (racks, first == last) {
                (false, true) => write!(f, "{comma}{first}")?,
                (false, false) => write!(f, "{comma}{first}-{last}")?,
                (true, true) => write!(f, "{comma}rack {first}")?,
                (true, false) => write!(f, "{comma}racks {first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl serde::Serialize for Hosts {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Hosts {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Hosts, D::Error> {
        let text = <std::borrow::Cow<'_, str>>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Hosts {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Hosts".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "hosts and racks, ends included, like \"0-15, 40\" or \"rack 0, racks 3-4\"",
        })
    }
}

#[cfg(test)]
mod tests;
