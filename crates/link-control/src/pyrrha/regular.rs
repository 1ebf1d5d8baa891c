//! The onward path on a fat-tree with regular addresses: Algorithm 1 and Table 1 (appendix E.1.3).
//!
//! If a host's address tells its position, no forwarding table is needed: an edge switch finds the five hops with two
//! hashes and one look-up of a seed. Switches have 16-bit ids and ports 8-bit ids, in fat-trees up to k = 128. Two
//! switches may have equal ids if no edge switch sees both at the same distance, since congestion roots are kept by
//! distance.
//!
//! The paper contradicts itself in two places. Table 1 gives the port of the destination's aggregation switch a highest
//! bit of 1, though it leads down and the text gives downlinks a 0. The text is followed here; otherwise that port
//! would coincide with an uplink of the source's aggregation switch. And Algorithm 1 computes the second hash, from a
//! port that does not exist, for a destination under the same edge switch; here it is not computed.

use node::balance::{hashed_choice, switch_seed};
use node::{Balancing, Packet};
use units::{HostId, Problem, SwitchId};

/// A host's address, 10.pod.switch.host, each counted from the left, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The pod.
    pub pod: u8,
    /// The edge switch's position in the pod.
    pub switch: u8,
    /// The host's position under the switch.
    pub host: u8,
}

/// An egress port by its regular ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// Edge: pod, then 1 and the position in the pod in the lower eight bits. Aggregation: pod, then 0 and the
    /// position. Core: the position of the aggregation switches that it joins, then its position among the cores of
    /// these.
    pub switch: u16,
    /// Edge and aggregation: [`UPLINK`] or not, and the position among uplinks or downlinks. Core: the pod.
    pub port: u8,
}

/// The highest bit of a port id, set for uplinks.
pub const UPLINK: u8 = 0x80;

/// The largest fat-tree that the ids can name.
pub const K_MAX: u32 = 128;

/// The path calculation of one edge switch.
#[derive(Clone, Debug)]
pub struct EdgeSwitch {
    half: u32,
    pod: u8,
    switch: u8,
    balancing: Balancing,
    seed: u64,
    /// The seed table: seeds of the pod's aggregation switches, by position.
    agg_seeds: Vec<u64>,
}

impl EdgeSwitch {
    /// Edge switch `edge` of the fat-tree of k-port switches, in a run with this `seed`. Switches choose by
    /// `balancing`, which must be by hash.
    pub fn new(k: u32, edge: u32, balancing: Balancing, seed: u64) -> Result<EdgeSwitch, Problem> {
        check_k(k)?;
        let half = k / 2;
        if edge >= k * half {
            return Err(Problem::new("edge", format!("is {edge}; k = {k} has edge switches 0 to {}", k * half - 1)));
        }
        if !balancing.by_hash() {
            return Err(Problem::new("balancing", "is adaptive; only choices by hash can be computed"));
        }
        // Switches are numbered edges first, then aggregation switches, both pod by pod.
        let (pod, aggs) = (edge / half, k * half);
        let agg_seeds = (0..half).map(|place| switch_seed(seed, SwitchId(aggs + pod * half + place))).collect();
        let own_seed = switch_seed(seed, SwitchId(edge));
        Ok(EdgeSwitch { half, pod: pod as u8, switch: (edge % half) as u8, balancing, seed: own_seed, agg_seeds })
    }

    /// The address of a host of this fat-tree.
    pub fn address(&self, host: HostId) -> Address {
        let half = self.half;
        let place = |at: u32| at as u8;
        Address { pod: place(host.0 / (half * half)), switch: place(host.0 / half % half), host: place(host.0 % half) }
    }

    /// The whole path of a packet from a host of this switch, its own port first.
    pub fn path(&self, packet: &Packet) -> impl Iterator<Item = Hop> + use<> {
        let dst = self.address(packet.dst);
        let last = Hop { switch: id(dst.pod, UPLINK | dst.switch), port: dst.host };
        let hops = match (dst.pod == self.pod, dst.switch == self.switch) {
            (true, true) => [Some(last), None, None, None, None],
            (same_pod, _) => {
                let edge_port = self.hash(packet, self.seed);
                let first = Hop { switch: id(self.pod, UPLINK | self.switch), port: UPLINK | edge_port };
                let down = Hop { switch: id(dst.pod, edge_port), port: dst.switch };
                if same_pod {
                    [Some(first), Some(down), Some(last), None, None]
                } else {
                    let agg_port = self.hash(packet, self.agg_seeds[usize::from(edge_port)]);
                    let up = Hop { switch: id(self.pod, edge_port), port: UPLINK | agg_port };
                    let core = Hop { switch: id(edge_port, agg_port), port: dst.pod };
                    [Some(first), Some(up), Some(core), Some(down), Some(last)]
                }
            }
        };
        hops.into_iter().flatten()
    }

    /// The uplink that the switch with this seed chooses.
    fn hash(&self, packet: &Packet, seed: u64) -> u8 {
        hashed_choice(self.balancing, packet, seed, self.half as usize).expect("checked when it was made") as u8
    }
}

/// Refuses a `k` that is no fat-tree or has more pods than ids.
pub(super) fn check_k(k: u32) -> Result<(), Problem> {
    if !(4..=K_MAX).contains(&k) || k % 2 == 1 {
        return Err(Problem::new("k", format!("is {k}; it must be even and from 4 to {K_MAX}")));
    }
    Ok(())
}

fn id(upper: u8, lower: u8) -> u16 {
    u16::from(upper) << 8 | u16::from(lower)
}

#[cfg(test)]
mod tests;
