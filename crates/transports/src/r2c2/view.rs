//! A node's view of the rack's flows, from what it has heard (sections 3.1 and 3.2).
//!
//! Announcements are states, not changes: a duplicate changes nothing, and of two about one flow the later version
//! counts. A flow that has not been announced for a while is forgotten (soft state), so that views converge whatever
//! was lost.

use std::collections::BTreeMap;

use fabric::Routing;
use units::{Duration, HostId, Time, mix};

use super::header::UNLIMITED;

/// A flow's name, the same at all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, node::State)]
pub struct Key {
    /// Its sender.
    pub src: HostId,
    /// Its receiver.
    pub dst: HostId,
    /// Its number among the flows between the two.
    pub number: u8,
}

/// Most nodes whose flows have an identifier ([`Key::identifier`]).
pub const IDENTIFIED_NODES_MAX: u32 = 1 << 12;

impl Key {
    /// The flow's identifier in assignments: "four bytes" (section 3.4), with 12 bits for each end and 8 for the
    /// number. `None` beyond [`IDENTIFIED_NODES_MAX`] nodes.
    pub fn identifier(self) -> Option<u32> {
        let fits = self.src.0 < IDENTIFIED_NODES_MAX && self.dst.0 < IDENTIFIED_NODES_MAX;
        fits.then_some(self.src.0 << 20 | self.dst.0 << 8 | u32::from(self.number))
    }

    /// The flow with this identifier.
    pub fn identified(identifier: u32) -> Key {
        let node = |shift: u32| HostId(identifier >> shift & (IDENTIFIED_NODES_MAX - 1));
        Key { src: node(20), dst: node(8), number: identifier as u8 }
    }
}

/// What rates depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Params {
    /// Its weight relative to others of its priority; at least 1.
    pub weight: u8,
    /// 0 is served first.
    pub priority: u8,
    /// The most that it can use, in Kbps; [`UNLIMITED`] if unknown.
    pub demand_kbps: u32,
    /// How its packets are routed.
    #[state(same(self.routing.code()))]
    pub routing: Routing,
}

impl Params {
    /// The demand in bits per second, infinite without one.
    pub fn demand_bps(&self) -> f64 {
        if self.demand_kbps == UNLIMITED { f64::INFINITY } else { f64::from(self.demand_kbps) * 1_000.0 }
    }
}

/// What is known of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
#[state(given((bool, Duration)))]
pub struct Known {
    /// Its parameters.
    pub params: Params,
    /// When it was first heard of.
    #[state(past)]
    pub since: Time,
    #[state(when(given.0, past, later(given.1, time)))]
    heard: Time,
    version: u8,
}

/// Number of versions: an announcement has four bits for its version (Figure 6, [`wire`](super::wire)).
pub const VERSIONS: u8 = 16;

/// The version after this one.
pub fn next_version(version: u8) -> u8 {
    version.wrapping_add(1) % VERSIONS
}

/// Whether a version is one of the seven after another, or equal to it.
fn follows(version: u8, other: u8) -> bool {
    version.wrapping_sub(other) % VERSIONS < VERSIONS / 2
}

/// The flows that a node knows of.
#[derive(Clone, Debug, Default, node::State)]
#[state(given((HostId, Duration)))]
pub struct View {
    #[state(each((_, given(&(part_0.src == given.0, given.1)))))]
    flows: BTreeMap<Key, Known>,
    digest: u128,
}

impl View {
    /// An announcement has arrived, or a node's own flow has changed. Returns whether anything that rates depend on has
    /// changed.
    pub fn hear(&mut self, key: Key, params: Params, version: u8, now: Time) -> bool {
        let fresh = Known { params, since: now, heard: now, version };
        let Some(known) = self.flows.get_mut(&key) else {
            self.flows.insert(key, fresh);
            self.digest = self.digest.wrapping_add(digest(key, params));
            return true;
        };
        if !follows(version, known.version) {
            return false;
        }
        let before = std::mem::replace(known, Known { since: known.since, ..fresh }).params;
        self.digest = self.digest.wrapping_sub(digest(key, before)).wrapping_add(digest(key, params));
        before != params
    }

    /// A flow has finished. Returns whether it was known.
    pub fn finish(&mut self, key: Key, version: u8) -> bool {
        let newer = |known: &Known| follows(version, known.version);
        self.flows.get(&key).is_some_and(newer) && self.remove(key)
    }

    /// A flow changes its routing protocol. Returns whether that is new.
    pub fn assign(&mut self, key: Key, routing: Routing) -> bool {
        let Some(known) = self.flows.get_mut(&key).filter(|known| known.params.routing != routing) else {
            return false;
        };
        let before = known.params;
        known.params.routing = routing;
        let after = known.params;
        self.digest = self.digest.wrapping_sub(digest(key, before)).wrapping_add(digest(key, after));
        true
    }

    /// Forgets flows that have not been heard of for this long, except for the node's own, and those that `gone`
    /// selects.
    pub fn forget(&mut self, own: HostId, now: Time, silent: Duration, gone: impl Fn(&Key) -> bool) {
        let old = |known: &Known| now.since(known.heard) > silent;
        let lost = self.flows.iter().filter(|(key, known)| key.src != own && (old(known) || gone(key)));
        for key in lost.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.remove(key);
        }
    }

    fn remove(&mut self, key: Key) -> bool {
        let known = self.flows.remove(&key);
        if let Some(known) = known {
            self.digest = self.digest.wrapping_sub(digest(key, known.params));
        }
        known.is_some()
    }

    /// All flows in order of their keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Key, Known)> + '_ {
        self.flows.iter().map(|(key, known)| (*key, *known))
    }

    /// One flow.
    pub fn get(&self, key: Key) -> Option<&Known> {
        self.flows.get(&key)
    }

    /// How many flows there are.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// A digest of all known flows and their parameters. It does not depend on the order in which they were heard of.
    /// Views that differ have equal digests with a probability of 2^-128.
    pub fn digest(&self) -> u128 {
        self.digest
    }
}

fn digest(Key { src, dst, number }: Key, params: Params) -> u128 {
    let ends = u64::from(src.0) << 32 | u64::from(dst.0);
    let [number, weight, priority, code] =
        [number, params.weight, params.priority, params.routing.code()].map(u64::from);
    let rest = number << 56 | weight << 48 | priority << 40 | code << 32 | u64::from(params.demand_kbps);
    let half = |salt| u128::from(mix(mix(salt, ends), rest));
    half(1) << 64 | half(2)
}

#[cfg(test)]
mod tests;
