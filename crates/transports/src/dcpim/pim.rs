//! Parallel Iterative Matching on any bipartite demand (Anderson, Owicki, Saxe, Thacker, 1993), as dcPIM reverses it
//! (sections 2, 3.1 and 3.4): receivers request, senders grant, receivers accept.
//!
//! No hosts, no messages, no time: all requests of a round arrive, and choices are uniformly random. The transport adds
//! what a network does (delays, the first round by size, lost control packets). With one channel for each host this is
//! PIM itself with inputs and outputs exchanged: PIM's inputs request and its outputs grant, so pass the transposed
//! demand to get it exactly. With k channels a host takes part until k of its channels are matched, and one pair of
//! hosts may have several of them.
//!
//! The cost of a round depends on the open pairs: pairs in which one host has no free channel are dropped when they are
//! met, so that a million hosts with five flows each take well below a second.

use units::Stream;

/// The demand: which sender has data for which receiver, and for how many channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    receivers: u32,
    /// By sender: start of its part of `pairs`; one more entry at the end.
    first: Vec<u32>,
    pairs: Vec<Pair>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    receiver: u32,
    channels: u32,
}

impl Demand {
    /// A demand between `senders` and `receivers` from triples (sender, receiver, channels requested). Each pair may
    /// occur once; pairs without channels are left out.
    ///
    /// Panics on a sender or receiver out of range.
    pub fn new(senders: u32, receivers: u32, triples: &[(u32, u32, u32)]) -> Demand {
        let mut sorted: Vec<_> = triples.iter().copied().filter(|triple| triple.2 > 0).collect();
        sorted.sort_unstable();
        let mut demand = Demand { receivers, first: vec![0], pairs: Vec::with_capacity(sorted.len()) };
        for (sender, receiver, channels) in sorted {
            assert!(sender < senders && receiver < receivers, "pair {sender}, {receiver} is out of range");
            demand.begin(sender);
            demand.pairs.push(Pair { receiver, channels });
        }
        demand.end(senders)
    }

    /// A random demand among `hosts` hosts, for one channel a pair: each pair of different hosts, in each direction,
    /// independently with the probability that gives `degree` receivers a sender on average (Erdős and Rényi's model).
    ///
    /// Degrees are then Poisson distributed for many hosts. The time is proportional to the number of pairs, since the
    /// gaps between pairs are drawn (Batagelj and Brandes, 2005).
    pub fn random(hosts: u32, degree: f64, random: &mut Stream) -> Demand {
        let others = u64::from(hosts.saturating_sub(1));
        let cells = u64::from(hosts) * others;
        let absent = libm::log(1.0 - (degree / others.max(1) as f64).clamp(0.0, 1.0));
        let mut demand = Demand { receivers: hosts, first: vec![0], pairs: Vec::new() };
        if absent == 0.0 {
            return demand.end(hosts);
        }
        let mut cell = 0u64;
        loop {
            let skip = libm::log(1.0 - random.unit()) / absent;
            cell = cell.saturating_add(skip as u64);
            if cell >= cells {
                return demand.end(hosts);
            }
            let (sender, other) = ((cell / others) as u32, (cell % others) as u32);
            demand.begin(sender);
            demand.pairs.push(Pair { receiver: other + u32::from(other >= sender), channels: 1 });
            cell += 1;
        }
    }

    /// From every sender to every receiver, one channel a pair: dcPIM section 4.1's dense matrix, with each host
    /// sending to itself as there. At most 65,535 hosts, since pairs are numbered in 32 bits.
    pub fn dense(hosts: u32) -> Demand {
        let pair = |receiver| Pair { receiver, channels: 1 };
        Demand {
            receivers: hosts,
            first: (0..=hosts).map(|sender| sender * hosts).collect(),
            pairs: (0..hosts).flat_map(|_| (0..hosts).map(pair)).collect(),
        }
    }

    /// How many senders there are, with or without demand.
    pub fn senders(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    /// How many receivers there are.
    pub fn receivers(&self) -> u32 {
        self.receivers
    }

    /// The average degree: pairs a sender.
    pub fn degree(&self) -> f64 {
        self.pairs.len() as f64 / f64::from(self.senders().max(1))
    }

    /// The receivers that `sender` has something for, with the channels it asks for, in ascending order.
    pub fn of(&self, sender: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let [begin, end] = [sender, sender + 1].map(|index| self.first[index as usize] as usize);
        self.pairs[begin..end].iter().map(|pair| (pair.receiver, pair.channels))
    }

    fn begin(&mut self, sender: u32) {
        while self.senders() < sender {
            self.first.push(self.pairs.len() as u32);
        }
    }

    fn end(mut self, senders: u32) -> Demand {
        self.begin(senders);
        self
    }
}

/// A matching in progress.
#[derive(Clone, Debug)]
pub struct Pim {
    channels: u32,
    /// Senders that may still be matched.
    open: Vec<Open>,
    /// Their pairs; dropped pairs are overwritten.
    pairs: Vec<Pair>,
    /// Per receiver, channels that are free.
    free: Vec<u32>,
    grants: Grants,
    matched: Vec<(u32, u32)>,
}

/// A sender that may still be matched, and its remaining pairs.
#[derive(Clone, Copy, Debug)]
struct Open {
    sender: u32,
    free: u32,
    begin: u32,
    end: u32,
}

/// By receiver: a uniform sample of its grants in this round, at most as many as it has free channels.
#[derive(Clone, Debug)]
struct Grants {
    /// Channels granted so far.
    offered: Vec<u32>,
    /// Per receiver and channel, a granting sender: its index in `Pim::open` and that of its pair.
    sample: Vec<(u32, u32)>,
    /// Receivers that got any.
    receivers: Vec<u32>,
}

impl Pim {
    /// The state before the first round; `channels` is k, the number of channels of a host, at least 1.
    pub fn new(demand: &Demand, channels: u32) -> Pim {
        let open = |sender: u32| Open {
            sender,
            free: channels,
            begin: demand.first[sender as usize],
            end: demand.first[sender as usize + 1],
        };
        let receivers = demand.receivers as usize;
        Pim {
            channels,
            open: (0..demand.senders()).map(open).collect(),
            pairs: demand.pairs.clone(),
            free: vec![channels; receivers],
            grants: Grants {
                offered: vec![0; receivers],
                sample: vec![(0, 0); receivers * channels as usize],
                receivers: Vec::new(),
            },
            matched: Vec::new(),
        }
    }

    /// The pairs matched so far as (sender, receiver), once a channel.
    pub fn matched(&self) -> &[(u32, u32)] {
        &self.matched
    }

    /// One round of request, grant and accept. Returns the number of channels matched. It is 0 exactly if the matching
    /// is maximal: no pair that wants a channel has one free at both ends.
    pub fn round(&mut self, random: &mut Stream) -> usize {
        self.request_and_grant(random);
        self.accept()
    }

    /// Each sender grants a uniformly random choice among the channels that receivers request of it: for each pair as
    /// many as the pair wants and the receiver has free.
    fn request_and_grant(&mut self, random: &mut Stream) {
        let Pim { channels, open, pairs, free, grants, .. } = self;
        let mut chosen = Vec::with_capacity(*channels as usize);
        open.retain_mut(|sender| {
            let mut end = sender.begin;
            for index in sender.begin..sender.end {
                let pair = pairs[index as usize];
                if pair.channels > 0 && free[pair.receiver as usize] > 0 {
                    pairs[end as usize] = pair;
                    end += 1;
                }
            }
            sender.end = end;
            sender.free > 0 && sender.begin < end
        });
        for (index, sender) in open.iter().enumerate() {
            let mut requested = 0;
            chosen.clear();
            for pair in sender.begin..sender.end {
                let Pair { receiver, channels } = pairs[pair as usize];
                for _ in 0..channels.min(free[receiver as usize]) {
                    match sampled(&mut requested, sender.free, random) {
                        Some(place) if place as usize == chosen.len() => chosen.push(pair),
                        Some(place) => chosen[place as usize] = pair,
                        None => {}
                    }
                }
            }
            for &pair in &chosen {
                let receiver = pairs[pair as usize].receiver;
                let offered = &mut grants.offered[receiver as usize];
                if *offered == 0 {
                    grants.receivers.push(receiver);
                }
                if let Some(place) = sampled(offered, free[receiver as usize], random) {
                    grants.sample[receiver as usize * *channels as usize + place as usize] = (index as u32, pair);
                }
            }
        }
    }

    /// Each receiver accepts the sample of its grants.
    fn accept(&mut self) -> usize {
        let before = self.matched.len();
        for receiver in self.grants.receivers.drain(..) {
            let accepted = self.grants.offered[receiver as usize].min(self.free[receiver as usize]);
            let first = receiver as usize * self.channels as usize;
            for &(sender, pair) in &self.grants.sample[first..first + accepted as usize] {
                let sender = &mut self.open[sender as usize];
                sender.free -= 1;
                self.pairs[pair as usize].channels -= 1;
                self.matched.push((sender.sender, receiver));
            }
            self.free[receiver as usize] -= accepted;
            self.grants.offered[receiver as usize] = 0;
        }
        self.matched.len() - before
    }
}

/// Where to put the next of a row of candidates in a uniform sample of at most `room` of them, if anywhere (reservoir
/// sampling, Vitter's algorithm R). `seen` counts them.
fn sampled(seen: &mut u32, room: u32, random: &mut Stream) -> Option<u32> {
    let place = if *seen < room { *seen } else { random.below(u64::from(*seen) + 1) as u32 };
    *seen += 1;
    (place < room).then_some(place)
}

/// Sizes of the matching after each of `rounds` rounds, or until it is maximal and no longer grows; of a full run if
/// `rounds` is none.
pub fn sizes(demand: &Demand, channels: u32, rounds: Option<u32>, random: &mut Stream) -> Vec<usize> {
    let mut pim = Pim::new(demand, channels);
    let mut sizes = Vec::new();
    while rounds.is_none_or(|rounds| sizes.len() < rounds as usize) && pim.round(random) > 0 {
        sizes.push(pim.matched().len());
    }
    sizes
}

#[cfg(test)]
mod tests;
