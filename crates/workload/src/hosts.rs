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
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| fail("it is neither a number nor a range"));
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
mod tests {
    use super::*;
    use crate::testing::star_of_racks;

    #[test]
    fn hosts_and_racks_are_sets() {
        let view = star_of_racks(3, 4);
        let resolve = |text: &str| text.parse::<Hosts>().unwrap().resolve(&view);
        let ids = |list: &[u32]| list.iter().copied().map(HostId).collect::<Vec<_>>();
        assert_eq!(resolve("9, 0-2, 1").unwrap(), ids(&[0, 1, 2, 9]));
        assert_eq!(resolve("rack 2, 0").unwrap(), ids(&[0, 8, 9, 10, 11]));
        assert_eq!(resolve("racks 0-1").unwrap(), ids(&[0, 1, 2, 3, 4, 5, 6, 7]));
        assert!(resolve("12").unwrap_err().message.contains("no host 12: the fabric has 12"));
        assert!(resolve("rack 3").unwrap_err().message.contains("no rack 3"));
    }

    #[test]
    fn errors_name_the_part() {
        for wrong in ["", "a", "3-1", "1,,2", "rack", "-", "99999999999"] {
            let error = wrong.parse::<Hosts>().unwrap_err().to_string();
            assert!(error.contains("write hosts like"), "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics_and_good_text_round_trips(text in "[ 0-9a-z,-]{0,12}|(rack )?[0-9]{1,2}(-[0-9]{3})?") {
            if let Ok(hosts) = text.parse::<Hosts>() {
                proptest::prop_assert_eq!(hosts.to_string().parse::<Hosts>().unwrap(), hosts);
            }
        }
    }
}
