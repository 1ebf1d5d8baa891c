//! Which tenant a packet belongs to: the conditions of `match` in tenants.toml.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The match of a tenant's packets. A packet is the tenant's if any entry of any kind matches. If entries of two
/// tenants match, the kind decides, in the order of the fields; of two cgroups the deeper, of two prefixes the longer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Matches {
    /// Paths of cgroups (version 2) below its mount, with all that is inside: `"/system.slice/web.service"`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cgroup: Vec<String>,
    /// Firewall marks (`SO_MARK`, `nft ... meta mark set`), above 0. The kernel clears them between network namespaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mark: Vec<u32>,
    /// VLAN ids, 1 to 4094.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vlan: Vec<u16>,
    /// Prefixes of the destination: `"10.1.0.0/16"`, `"2001:db8::/32"`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub destination: Vec<Prefix>,
    /// Prefixes of the source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<Prefix>,
    /// Destination ports of TCP and UDP: `"5201"`, `"8000-8099"`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Ports>,
    /// Source ports of TCP and UDP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_ports: Vec<Ports>,
    /// Prefixes of either address, the source first, of packets that have ports which can't be known: a later fragment
    /// whose first was not seen, too many IPv6 headers. Without it these are the default entity's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub portless: Vec<Prefix>,
}

impl Matches {
    /// Whether nothing matches.
    pub fn is_empty(&self) -> bool {
        *self == Matches::default()
    }

    /// Whether it matches nothing but packets whose ports can't be known.
    pub fn only_portless(&self) -> bool {
        Matches { portless: Vec::new(), ..self.clone() } == Matches::default()
    }

    /// Every entry but ports, with its kind: equal text is the same entry.
    pub fn entries(&self) -> impl Iterator<Item = (Kind, String)> + '_ {
        let path = |path: &String| {
            let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
            (Kind::Cgroup, format!("/{}", names.join("/")))
        };
        let prefix = |kind: Kind| move |prefix: &Prefix| (kind, prefix.to_string());
        let cgroups = self.cgroup.iter().map(path);
        let marks = self.mark.iter().map(|mark| (Kind::Mark, mark.to_string()));
        let vlans = self.vlan.iter().map(|id| (Kind::Vlan, id.to_string()));
        cgroups
            .chain(marks)
            .chain(vlans)
            .chain(self.destination.iter().map(prefix(Kind::Destination)))
            .chain(self.source.iter().map(prefix(Kind::Source)))
            .chain(self.portless.iter().map(prefix(Kind::Portless)))
    }

    /// The number of hash keys.
    pub fn keys(&self) -> usize {
        self.cgroup.len() + self.mark.len() + self.vlan.len()
    }

    /// The number of prefixes.
    pub fn prefixes(&self) -> usize {
        self.destination.len() + self.source.len() + self.portless.len()
    }
}

/// The kinds of match, in order of precedence and as the program numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Kind {
    /// By cgroup.
    Cgroup,
    /// By mark.
    Mark,
    /// By VLAN.
    Vlan,
    /// By destination prefix.
    Destination,
    /// By source prefix.
    Source,
    /// By destination port.
    Port,
    /// By source port.
    SourcePort,
    /// By either address, of packets with ports that can't be known.
    Portless,
}

impl Kind {
    /// Its bit among the kinds that a program looks at.
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Its key in `match`.
    pub const fn key(self) -> &'static str {
        match self {
            Kind::Cgroup => "cgroup",
            Kind::Mark => "mark",
            Kind::Vlan => "vlan",
            Kind::Destination => "destination",
            Kind::Source => "source",
            Kind::Port => "ports",
            Kind::SourcePort => "source_ports",
            Kind::Portless => "portless",
        }
    }
}

/// A range of addresses with the same first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// As the program's trie has it: bits of the key that count, then the key without them. The key's first word is
    /// family and kind.
    pub fn key(self, kind: Kind) -> (u32, [u32; 5]) {
        let (version, bytes) = match self.address {
            IpAddr::V4(address) => {
                let mut bytes = [0; 16];
                bytes[..4].copy_from_slice(&address.octets());
                (4, bytes)
            }
            IpAddr::V6(address) => (6, address.octets()),
        };
        let mut key = [version << 8 | kind as u32, 0, 0, 0, 0];
        for (word, chunk) in key[1..].iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_ne_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        }
        (32 + u32::from(self.length), key)
    }
}

impl From<IpAddr> for Prefix {
    /// The one address.
    fn from(address: IpAddr) -> Prefix {
        Prefix { address, length: if address.is_ipv4() { 32 } else { 128 } }
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Prefix, String> {
        let wrong = |why: String| format!("\"{text}\" is no prefix: {why}; write it like \"10.1.0.0/16\"");
        let (address, length) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(|_| wrong("the address is malformed".to_owned()))?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => longest,
            Some(length) => length
                .parse()
                .ok()
                .filter(|&l| l <= longest)
                .ok_or_else(|| wrong(format!("its length is not a number from 0 to {longest}")))?,
        };
        let masked = match address {
            IpAddr::V4(a) => {
                IpAddr::V4(Ipv4Addr::from(u32::from(a) & u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)))
            }
            IpAddr::V6(a) => {
                IpAddr::V6((u128::from(a) & u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)).into())
            }
        };
        if masked != address {
            return Err(wrong(format!("it has bits behind its length; {masked}/{length} has none")));
        }
        Ok(Prefix { address, length })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// A range of ports, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Ports {
    first: u16,
    last: u16,
}

impl Ports {
    /// The first port.
    pub fn first(self) -> u16 {
        self.first
    }

    /// The last port.
    pub fn last(self) -> u16 {
        self.last
    }

    /// Every port.
    pub fn each(self) -> impl Iterator<Item = u16> {
        self.first..=self.last
    }
}

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Ports, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.trim().parse().ok().filter(|&port: &u16| port > 0);
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Ports { first, last }),
            _ => Err(format!("\"{text}\" is no range of ports from 1 to 65535; write it like \"8000-8099\"")),
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { write!(f, "{}", self.first) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}

/// Conversions that serde asks for, by way of text.
macro_rules! as_text {
    ($($of:ty),*) => {$(
        impl TryFrom<String> for $of {
            type Error = String;
            fn try_from(text: String) -> Result<$of, String> {
                text.parse()
            }
        }
        impl From<$of> for String {
            fn from(value: $of) -> String {
                value.to_string()
            }
        }
    )*};
}
as_text!(Prefix, Ports);

#[cfg(test)]
mod tests;
