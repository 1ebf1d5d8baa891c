//! How `clearway live` runs a scenario on the machine. A simulation reads none of it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use catalogue::Transport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Problem;

/// How a live run uses the machine; a simulation does not read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LiveSpec {
    /// How many times slower than real time the network runs: with 1000, a second of the machine is a millisecond of
    /// the network. Rates, delays, timers and all times in the results are in network time. Default: 1.
    pub dilation: u32,
    /// Threads that share the nodes. There are no more than the fabric has racks. Default: 1.
    pub workers: u32,
    /// What a thread does while nothing is due. Default: `poll`.
    pub wait: Wait,
    /// How much of the content of packets is written at the source and checked at the destination. Default: `all`.
    pub content: ContentCheck,
    /// What links consist of. Default: `memory`.
    pub links: LiveLinks,
    /// Hosts that are attached to this machine, by name: by an existing TUN or TAP device (`host3 = "tap0"`), or by a
    /// network namespace, which gets a TUN device (`host3 = "netns:red"`). Packets between such hosts travel over the
    /// fabric. Needs Linux and CAP_NET_ADMIN. The command line has to name the devices, too: `--attach host3=tap0`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attach: BTreeMap<String, String>,
    /// IPv4 addresses of attached hosts: host `n` has address number `n + 1` of this network. Default: `10.77.0.0/16`.
    pub network: String,
    /// IPv6 addresses of attached hosts, by the same rule. Default: `fd77::/64`.
    pub network6: String,
    /// Links whose packets are written to files in the format pcapng, by name: `spine0-leaf2 = "out.pcapng"` is what
    /// spine0 sends to leaf2: the names of both ends, joined by a hyphen. Or a node, such as "host3", for all of its
    /// links, both ways. A file is made in the folder of the results, and can't be outside of it; `--capture` names one
    /// anywhere.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub capture: BTreeMap<String, String>,
    /// Classes of messages that programs send by sockets (`cw.Maze`), by name: `rpc.transport = "harmony"`. Default for
    /// such a program: one class, `socket`, over the scenario's `transport`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sockets: BTreeMap<String, SocketSpec>,
}

/// A class of messages that programs send.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SocketSpec {
    /// Transport of the class's messages. Default: the scenario's `transport`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<Transport>,
}

/// The addresses of attached hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Networks {
    /// Where IPv4 addresses begin, and how many bits all of them have in common.
    pub v4: (Ipv4Addr, u8),
    /// The same of IPv6 addresses.
    pub v6: (Ipv6Addr, u8),
}

impl Networks {
    /// The IPv4 address of a host, by number.
    pub fn v4_of(&self, host: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.v4.0).wrapping_add(host).wrapping_add(1))
    }

    /// The IPv6 address of a host, by number.
    pub fn v6_of(&self, host: u32) -> Ipv6Addr {
        Ipv6Addr::from(u128::from(self.v6.0).wrapping_add(u128::from(host) + 1))
    }

    /// The number of the host that has an IPv4 address, if there were hosts without end.
    pub fn host_v4(&self, address: [u8; 4]) -> Option<u32> {
        u32::from_be_bytes(address).checked_sub(u32::from(self.v4.0))?.checked_sub(1)
    }

    /// The number of the host that has an IPv6 address, if there were hosts without end.
    pub fn host_v6(&self, address: [u8; 16]) -> Option<u32> {
        let beyond = u128::from_be_bytes(address).checked_sub(u128::from(self.v6.0))?.checked_sub(1)?;
        u32::try_from(beyond).ok()
    }

    /// Whether there are addresses for this many hosts, none of them the last, which is for broadcast.
    pub fn has_room(&self, hosts: u32) -> bool {
        let (v4, v6) = (32 - u32::from(self.v4.1), 128 - u32::from(self.v6.1));
        1u64 << v4 > u64::from(hosts) + 1 && (v6 > 32 || 1u64 << v6 > u64::from(hosts) + 1)
    }
}

/// An address and the length of its prefix, with nothing behind the prefix.
fn network<A: std::str::FromStr + Copy>(text: &str, bits: u8, to_bits: fn(A) -> u128) -> Option<(A, u8)> {
    let (address, length) = text.split_once('/')?;
    let (address, length) = (address.parse::<A>().ok()?, length.parse::<u8>().ok()?);
    let behind = bits.checked_sub(length).filter(|&behind| behind >= 2)?;
    let free = to_bits(address) & 1u128.checked_shl(behind.into()).map_or(u128::MAX, |end| end - 1) == 0;
    free.then_some((address, length))
}

/// What a thread does while nothing is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// It checks the clock all the time, and keeps a core busy: events are some 100 ns late.
    #[default]
    Poll,
    /// It sleeps until the next event, for machines that have other work: events are some 50 us late.
    Sleep,
}

/// How much of the content of packets is written and checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentCheck {
    /// Every byte.
    #[default]
    All,
    /// All bytes of one packet in 16.
    Sampled,
    /// Nothing: packets have no content. That all parts of each message arrive is checked nevertheless.
    None,
}

/// What links consist of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LiveLinks {
    /// Memory: a packet stays where it is and its address is passed on, from thread to thread by rings.
    #[default]
    Memory,
    /// UDP sockets on loopback, one a node: every packet passes the kernel at each hop. Needs `workers = 1`.
    Datagrams,
}

impl Default for LiveSpec {
    fn default() -> LiveSpec {
        LiveSpec {
            dilation: 1,
            workers: 1,
            wait: Wait::default(),
            content: ContentCheck::default(),
            links: LiveLinks::default(),
            attach: BTreeMap::new(),
            network: "10.77.0.0/16".to_owned(),
            network6: "fd77::/64".to_owned(),
            capture: BTreeMap::new(),
            sockets: BTreeMap::new(),
        }
    }
}

impl LiveSpec {
    /// More threads than any machine of today has cores.
    const WORKERS_MAX: u32 = 1024;

    pub(crate) fn is_default(&self) -> bool {
        *self == LiveSpec::default()
    }

    pub(crate) fn check(&self) -> Result<(), Problem> {
        if self.dilation == 0 {
            return Err(Problem::new("live.dilation", "0 is not at least 1, which is real time"));
        }
        if !(1..=Self::WORKERS_MAX).contains(&self.workers) {
            let message = format!("{} is not between 1 and {}", self.workers, Self::WORKERS_MAX);
            return Err(Problem::new("live.workers", message));
        }
        if self.links == LiveLinks::Datagrams && self.workers > 1 {
            let message = "one thread reads all sockets, so that links = \"datagrams\" needs 1; or write links = \
                           \"memory\"";
            return Err(Problem::new("live.workers", message));
        }
        self.networks()?;
        for (host, device) in &self.attach {
            let key = format!("live.attach.{host}");
            let name = device.strip_prefix("netns:");
            let longest = if name.is_some() { 255 } else { 15 };
            let name = name.unwrap_or(device);
            if name.is_empty() || name.len() > longest || name.contains(['/', ' ', '\0']) || name.starts_with('.') {
                let message = format!(
                    "\"{device}\" is neither a network device, such as \"tap0\", nor a network namespace, such as \
                     \"netns:red\""
                );
                return Err(Problem::new(key, message));
            }
            if let Some((other, _)) = self.attach.iter().find(|(other, known)| *known == device && *other < host) {
                return Err(Problem::new(key, format!("\"{device}\" is {other} already; a device is one host")));
            }
        }
        Ok(())
    }

    /// The addresses of attached hosts.
    pub fn networks(&self) -> Result<Networks, Problem> {
        let wrong = |key: &str, given: &str, right: &str| {
            let message =
                format!("\"{given}\" is not a network with room for hosts behind its prefix, such as \"{right}\"");
            Problem::new(format!("live.{key}"), message)
        };
        let v4 = network::<Ipv4Addr>(&self.network, 32, |address| u32::from(address).into());
        let v6 = network::<Ipv6Addr>(&self.network6, 128, u128::from);
        Ok(Networks {
            v4: v4.ok_or_else(|| wrong("network", &self.network, "10.77.0.0/16"))?,
            v6: v6.ok_or_else(|| wrong("network6", &self.network6, "fd77::/64"))?,
        })
    }
}
