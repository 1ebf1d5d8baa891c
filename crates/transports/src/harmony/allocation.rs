//! Theorem 3.2 (section 3.3) by simulation: how many slots Harmony fills when all of them are requested.
//!
//! [`thrown`] is the theorem's model. [`leaf_spine`] is the protocol's rule of section 3.1 without time: a leaf chooses
//! among its *free* virtual links, so that rsvps of one leaf never collide on its own links, and a refused rsvp may try
//! again. Deliberately absent: time, hosts' choice of requests, and loads below a full one.

use units::Stream;

/// A mean over independent trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Its standard error.
    pub standard_error: f64,
}

impl Estimate {
    /// The mean of independent samples, at least two, and its standard error.
    fn of(samples: &[f64]) -> Estimate {
        let n = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / n;
        let variance = samples.iter().map(|sample| (sample - mean) * (sample - mean)).sum::<f64>() / (n - 1.0);
        Estimate { mean, standard_error: (variance / n).sqrt() }
    }
}

/// The share of slots that are filled in the theorem's model: K C rsvps go towards a leaf, each by one of C cores drawn
/// uniformly, and a core refuses those beyond K. Means over at least two `trials`.
pub fn thrown(k: u32, cores: u32, trials: u32, random: &mut Stream) -> Estimate {
    let rsvps = u64::from(k) * u64::from(cores);
    let mut samples = Vec::new();
    for _ in 0..trials.max(2) {
        let mut taken = vec![0; cores as usize];
        let mut filled = 0u64;
        for _ in 0..rsvps {
            let core = &mut taken[random.below(u64::from(cores)) as usize];
            filled += u64::from(*core < k);
            *core += 1;
        }
        samples.push(filled as f64 / rsvps as f64);
    }
    Estimate::of(&samples)
}

/// Leaves that have as many hosts as there are cores: full bisection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafSpine {
    /// Leaves; at least two.
    pub leaves: u32,
    /// Core switches, and hosts under each leaf; at least one.
    pub cores: u32,
}

/// The share of slots that are filled in `fabric` by the protocol's rule, after each try from the first to the
/// `tries`-th.
///
/// The demands are such that an ideal arbiter could satisfy them all: each of a receiver's K slots asks for a slot of a
/// sender under another leaf, and each sender's slot is asked for once, drawn at random. In each try all rsvps that
/// have not yet succeeded start together and arrive in random order: the receiver's leaf takes one of its free virtual
/// links for each, uniformly, and the core takes one towards the sender's leaf, if one is free. The virtual link of a
/// refused rsvp is free again in the next try and not before, since a reject takes a round trip. Means over at least
/// two `trials`.
pub fn leaf_spine(fabric: LeafSpine, k: u32, tries: u32, trials: u32, random: &mut Stream) -> Vec<Estimate> {
    let slots = fabric.leaves as usize * fabric.cores as usize * k as usize;
    let mut samples = vec![Vec::new(); tries as usize];
    for _ in 0..trials.max(2) {
        let mut pending = demands(fabric, k, random);
        let mut links = Links::new(fabric, k);
        for samples in &mut samples {
            random.shuffle(&mut pending);
            links.offer(&mut pending, random);
            samples.push((slots - pending.len()) as f64 / slots as f64);
        }
    }
    samples.iter().map(|samples| Estimate::of(samples)).collect()
}

/// A receiver's leaf and a sender's.
type Demand = (usize, usize);

/// One demand for each slot, never with both hosts under one leaf.
fn demands(fabric: LeafSpine, k: u32, random: &mut Stream) -> Vec<Demand> {
    let slots_a_leaf = fabric.cores as usize * k as usize;
    let receiver = |slot: usize| slot / slots_a_leaf;
    let mut sender: Vec<usize> = (0..fabric.leaves as usize * slots_a_leaf).map(receiver).collect();
    random.shuffle(&mut sender);
    for slot in 0..sender.len() {
        while sender[slot] == receiver(slot) {
            let other = random.below(sender.len() as u64) as usize;
            if sender[other] != receiver(slot) && sender[slot] != receiver(other) {
                sender.swap(slot, other);
            }
        }
    }
    sender.into_iter().enumerate().map(|(slot, sender)| (receiver(slot), sender)).collect()
}

/// Free virtual links, by leaf and core.
struct Links {
    cores: usize,
    /// Of the links from a core to a leaf, by which its hosts receive. The leaf reserves them.
    down: Vec<u32>,
    /// Of the links from a leaf to a core, by which its hosts send. The core reserves them.
    up: Vec<u32>,
}

impl Links {
    fn new(fabric: LeafSpine, k: u32) -> Links {
        let cores = fabric.cores as usize;
        let free = vec![k; fabric.leaves as usize * cores];
        Links { cores, down: free.clone(), up: free }
    }

    /// One try of all pending demands; the refused ones stay pending.
    fn offer(&mut self, pending: &mut Vec<Demand>, random: &mut Stream) {
        let mut freed = Vec::new();
        pending.retain(|&(receiver, sender)| {
            let down = &mut self.down[receiver * self.cores..][..self.cores];
            let core = draw(down, random);
            down[core] -= 1;
            let up = &mut self.up[sender * self.cores + core];
            let refused = *up == 0;
            if refused {
                freed.push(receiver * self.cores + core);
            } else {
                *up -= 1;
            }
            refused
        });
        freed.into_iter().for_each(|link| self.down[link] += 1);
    }
}

/// The core of a free virtual link, drawn uniformly. A leaf has at least one for each of its pending slots.
fn draw(free: &[u32], random: &mut Stream) -> usize {
    let mut drawn = random.below(free.iter().map(|&free| u64::from(free)).sum());
    let mut core = 0;
    while drawn >= u64::from(free[core]) {
        drawn -= u64::from(free[core]);
        core += 1;
    }
    core
}

#[cfg(test)]
mod tests;
