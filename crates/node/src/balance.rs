//! Load balancing: the choice among several shortest paths.

use units::{Duration, Stream, SwitchId, Time, mix};

use crate::{Balancing, Packet};

/// ECMP's hash: 32 bits from addresses, flow, flow label and a switch's seed. Any switch can compute any other switch's
/// choice.
#[inline]
pub fn path_hash(packet: &Packet, seed: u64) -> u32 {
    let addresses = u64::from(packet.src.0) << 32 | u64::from(packet.dst.0);
    let flow = u64::from(packet.flow_label()) << 32 | u64::from(packet.flow.0);
    (mix(mix(addresses, flow), seed) >> 32) as u32
}

/// The seed of a switch's hash in a run with this `seed`.
#[inline]
pub fn switch_seed(seed: u64, switch: SwitchId) -> u64 {
    mix(seed, u64::from(switch.0))
}

/// ECMP's choice.
#[inline]
fn ecmp_choice(packet: &Packet, seed: u64, candidates: usize) -> usize {
    ((u64::from(path_hash(packet, seed)) * candidates as u64) >> 32) as usize
}

/// The index below `candidates` (at least 2) that a packet takes at the switch with hash seed `seed`. `None` if the
/// hash alone does not decide.
#[inline]
pub fn hashed_choice(balancing: Balancing, packet: &Packet, seed: u64, candidates: usize) -> Option<usize> {
    match balancing {
        Balancing::Ecmp => Some(ecmp_choice(packet, seed, candidates)),
        Balancing::Skewed { skew } => {
            let weight = |ports: usize| 1.0 - powi(skew, ports);
            let point = f64::from(path_hash(packet, seed)) / (u64::from(u32::MAX) + 1) as f64;
            if skew >= 1.0 {
                return Some((point * candidates as f64) as usize);
            }
            let total = weight(candidates);
            Some((1..candidates).find(|&ports| point * total < weight(ports)).unwrap_or(candidates) - 1)
        }
        Balancing::Spray
        | Balancing::RoundRobin
        | Balancing::RoundRobinByLink
        | Balancing::Drill { .. }
        | Balancing::Adaptive { .. } => None,
    }
}

/// The load balancer of one switch for one transport.
#[derive(Clone, Debug, node::State)]
#[state(first(walk.refuse_if(!self.flowlets.is_empty(), "a switch keeps flowlets, for which it compares times")))]
pub struct Balancer {
    #[state(built("it never changes"))]
    balancing: Balancing,
    seed: u64,
    random: Stream,
    /// For round robin: the next turn by group.
    turns: Vec<u32>,
    /// For DRILL: the best ports of the previous packet, by first candidate.
    best: Vec<Vec<u16>>,
    /// For flowlets: by a hash of the flow, when it last sent, and the port that it took.
    #[state(skip("refused"))]
    flowlets: Vec<(Time, u16)>,
}

/// Entries of a table of flowlets, as many as CONGA's switches have (SIGCOMM 2014, section 3.4). Flows that share one
/// share its flowlets.
const FLOWLETS: usize = 1 << 16;
/// In place of the port of an entry that nobody has used.
const NO_PORT: u16 = u16::MAX;

impl Balancer {
    /// The balancer of a switch whose ECMP seed is `seed`.
    pub fn new(balancing: Balancing, seed: u64, random: Stream) -> Balancer {
        Balancer { balancing, seed, random, turns: Vec::new(), best: Vec::new(), flowlets: Vec::new() }
    }

    /// Whether packets are grouped by the link that they come over, and not by their destination's switch.
    #[inline]
    pub fn by_link(&self) -> bool {
        self.balancing == Balancing::RoundRobinByLink
    }

    /// Chooses an index below `candidates` (at least 2) for a packet of `group`, see [`Balancer::by_link`].
    /// `queue_bytes(i)` is the length of candidate i's queue.
    #[inline]
    pub fn choose(
        &mut self,
        now: Time,
        packet: &Packet,
        group: usize,
        candidates: usize,
        queue_bytes: impl Fn(usize) -> u32,
    ) -> usize {
        match self.balancing {
            Balancing::Ecmp => ecmp_choice(packet, self.seed, candidates),
            Balancing::Skewed { .. } => {
                hashed_choice(self.balancing, packet, self.seed, candidates).expect("it chooses by the hash")
            }
            Balancing::Spray => self.random.below(candidates as u64) as usize,
            Balancing::RoundRobin | Balancing::RoundRobinByLink => {
                while self.turns.len() <= group {
                    let start = self.random.bits() as u32;
                    self.turns.push(start);
                }
                // Kept small, so that it is what it was when all have had their turn.
                let turn = &mut self.turns[group];
                *turn = (*turn % candidates as u32 + 1) % candidates as u32;
                *turn as usize
            }
            Balancing::Drill { samples, memory } => self.drill(group, candidates, samples, memory, queue_bytes),
            Balancing::Adaptive { flowlet } => self.adaptive(now, packet, flowlet, candidates, queue_bytes),
        }
    }

    fn adaptive(
        &mut self,
        now: Time,
        packet: &Packet,
        flowlet: Duration,
        candidates: usize,
        queue_bytes: impl Fn(usize) -> u32,
    ) -> usize {
        if flowlet == Duration::ZERO {
            return self.shortest(candidates, queue_bytes);
        }
        if self.flowlets.is_empty() {
            self.flowlets.resize(FLOWLETS, (Time::ZERO, NO_PORT));
        }
        let entry = path_hash(packet, self.seed) as usize >> (u32::BITS - FLOWLETS.trailing_zeros());
        let (last, port) = self.flowlets[entry];
        // A failure may have taken candidates away.
        let stays = usize::from(port) < candidates && now.since(last) < flowlet;
        let choice = if stays { usize::from(port) } else { self.shortest(candidates, queue_bytes) };
        self.flowlets[entry] = (now, choice as u16);
        choice
    }

    /// The port with the shortest queue. Of equal ones a random one: the first would get all packets while queues are
    /// empty.
    fn shortest(&mut self, candidates: usize, queue_bytes: impl Fn(usize) -> u32) -> usize {
        let least = (0..candidates).map(&queue_bytes).min().unwrap_or(0);
        let equal = || (0..candidates).filter(|&port| queue_bytes(port) == least);
        match equal().count() {
            0 | 1 => equal().next().unwrap_or(0),
            count => equal().nth(self.random.below(count as u64) as usize).unwrap_or(0),
        }
    }

    fn drill(
        &mut self,
        group: usize,
        candidates: usize,
        samples: u8,
        memory: u8,
        queue_bytes: impl Fn(usize) -> u32,
    ) -> usize {
        if self.best.len() <= group {
            self.best.resize(group + 1, Vec::new());
        }
        let pool = &mut self.best[group];
        pool.retain(|&port| usize::from(port) < candidates); // a failure may have taken candidates away
        for _ in 0..samples {
            // The new draw goes first, so that it wins ties. Otherwise one port would win for ever while all queues are
            // empty.
            let drawn = self.random.below(candidates as u64) as u16;
            pool.retain(|&port| port != drawn);
            pool.insert(0, drawn);
        }
        pool.sort_by_key(|&port| queue_bytes(usize::from(port)));
        let choice = pool[0];
        pool.truncate(usize::from(memory));
        usize::from(choice)
    }
}

/// `base` to a small power by multiplication only, so that every machine gives the same result.
fn powi(base: f64, exponent: usize) -> f64 {
    (0..exponent).fold(1.0, |power, _| power * base)
}
