use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{HostId, Problem, Stream};

use crate::{FabricView, Hosts};

/// Between which hosts messages go. `senders`, `receivers` and `avoid` of the class restrict every pattern to parts of
/// the fabric.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Pattern {
    /// Single messages, each to a receiver drawn uniformly among all hosts but the sender.
    AllToAll,
    /// Single messages. Each sender has one receiver and each receiver at most one sender, drawn once for the class.
    Permutation,
    /// Single messages. Each sender sends to the host a fixed number of places further on.
    Stride(Stride),
    /// Single messages, of which a share goes to a few hot receivers.
    HotSpots(HotSpots),
    /// Single messages whose receivers are drawn by these weights, one for each receiver in the order of host ids. A
    /// draw of the sender itself is repeated (the MoE traffic of Pyrrha's authors, figures 3 and 21).
    Weighted(Vec<f64>),
    /// Groups: several senders to one receiver.
    Incast(Incast),
    /// Groups: one sender to several receivers.
    Outcast(Outcast),
    /// Groups: a message from every sender to every receiver (dcPIM section 4.1's dense traffic matrix).
    Dense,
    /// Groups: every host of a rack to every host of another rack.
    RackShuffle(RackShuffle),
    /// Groups: an all-to-all in which a few hot experts get most bytes (Pyrrha section 2.2).
    Moe(Moe),
}

/// Sender i (in the order of host ids) sends to host `(i + by) mod n` of the n hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stride {
    /// Number of places to the receiver.
    pub by: u32,
}

/// A few receivers that many hosts send to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HotSpots {
    /// The hot receivers.
    pub hosts: Hosts,
    /// Share of the messages that goes to hot receivers, uniformly. The rest goes to the other receivers, uniformly.
    pub share: f64,
}

/// N to 1. Each group draws its receiver uniformly, then its senders without replacement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Incast {
    /// Number of senders in a group.
    pub degree: u32,
    /// Messages from each sender of a group. 5 with a degree of 144 makes Pyrrha's 720-to-1 on 160 hosts. Default: 1.
    #[serde(default = "one")]
    pub flows_per_sender: u32,
}

/// 1 to N. Each group draws its sender uniformly, then its receivers without replacement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outcast {
    /// Number of receivers in a group.
    pub degree: u32,
}

/// Rack r sends to rack `(r + by) mod racks`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RackShuffle {
    /// Number of racks to the receiving rack. Default: 1.
    #[serde(default = "one")]
    pub by: u32,
}

/// Every sender to every receiver, with more bytes to the hot ones.
///
/// For each sender, messages to hot receivers are enlarged and the others reduced, so that `share` of the sender's
/// bytes goes to hot receivers and its mean total stays as `sizes` says. With periodic arrivals this is the on-off
/// traffic of a training job: silence from when the last expert is done until the next step. Two such classes with
/// different starts have colliding or interleaved phases (Pyrrha figures 3 and 21).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Moe {
    /// Number of hot experts.
    pub hot: u32,
    /// Share of the bytes that goes to them.
    pub share: f64,
    /// Number of rounds after which other experts become hot. Default: never.
    pub redraw_every: Option<u32>,
}

fn one() -> u32 {
    1
}

/// A message of a round: sender, receiver and factor of its size.
pub(crate) type RoundMessage = (HostId, HostId, f64);

/// A pattern with its hosts and random stream.
pub(crate) struct Picker<'a> {
    kind: Kind<'a>,
    pub senders: Vec<HostId>,
    receivers: Vec<HostId>,
    stream: Stream,
}

enum Kind<'a> {
    AllToAll,
    /// By host: its receiver.
    Fixed(Vec<HostId>),
    HotSpots {
        hot: Vec<HostId>,
        cold: Vec<HostId>,
        share: f64,
    },
    /// By receiver: its weight.
    Weighted(&'a [f64]),
    Incast(Incast),
    Outcast(Outcast),
    Dense,
    RackShuffle {
        rack_of: &'a [u32],
        target: Vec<u32>,
    },
    Moe {
        moe: Moe,
        hot: Vec<bool>,
        rounds: u32,
    },
}

impl<'a> Picker<'a> {
    /// Prepares `pattern`, which uses `stream` alone.
    pub fn new(
        pattern: &'a Pattern,
        mut senders: Vec<HostId>,
        receivers: Vec<HostId>,
        view: &'a FabricView,
        mut stream: Stream,
    ) -> Result<Picker<'a>, Problem> {
        if receivers.is_empty() {
            return Err(Problem::new(
                "receivers",
                "leaves no receiver once the hosts of `avoid` are taken out; name more",
            ));
        }
        if let [lone] = receivers[..] {
            senders.retain(|sender| *sender != lone);
        }
        if senders.is_empty() {
            return Err(Problem::new("senders", "has no host with a receiver other than itself; name more hosts"));
        }
        let kind = match pattern {
            Pattern::AllToAll => Kind::AllToAll,
            Pattern::Permutation => Kind::Fixed(permutation(&senders, &receivers, view, &mut stream)?),
            Pattern::Stride(stride) => Kind::Fixed(stride.targets(&senders, &receivers, view)?),
            Pattern::HotSpots(spots) => spots.bind(&receivers, view)?,
            Pattern::Weighted(weights) => {
                check_weights(weights, &senders, &receivers)?;
                Kind::Weighted(weights)
            }
            Pattern::Incast(incast) => {
                // The receiver may be one of the senders.
                let most = senders.len() - usize::from(receivers.iter().any(|r| senders.binary_search(r).is_ok()));
                degree("incast", incast.degree, most, "senders")?;
                if incast.flows_per_sender == 0 {
                    return Err(Problem::new(
                        "pattern.incast.flows_per_sender",
                        "0 would send nothing; write at least 1",
                    ));
                }
                Kind::Incast(*incast)
            }
            Pattern::Outcast(outcast) => {
                let most = receivers.len() - usize::from(senders.iter().any(|s| receivers.binary_search(s).is_ok()));
                degree("outcast", outcast.degree, most, "receivers")?;
                Kind::Outcast(*outcast)
            }
            Pattern::Dense => Kind::Dense,
            Pattern::RackShuffle(RackShuffle { by }) => {
                let racks = view.rack_of.iter().max().map_or(0, |last| last + 1);
                if by.checked_rem(racks) == Some(0) {
                    let message = format!(
                        "{by} is a multiple of {racks}, the number of racks, so that a rack would send to itself; \
                         write another number"
                    );
                    return Err(Problem::new("pattern.rack_shuffle.by", message));
                }
                let target = (0..racks).map(|rack| ((u64::from(rack) + u64::from(*by)) % u64::from(racks)) as u32);
                Kind::RackShuffle { rack_of: &view.rack_of, target: target.collect() }
            }
            Pattern::Moe(moe) => {
                share("moe", moe.share)?;
                degree_named("pattern.moe.hot", moe.hot, receivers.len() - 1, "number of receivers less one")?;
                if moe.redraw_every == Some(0) {
                    return Err(Problem::new(
                        "pattern.moe.redraw_every",
                        "0 rounds make no sense; leave it out to draw only once",
                    ));
                }
                Kind::Moe { moe: *moe, hot: vec![false; view.rack_of.len()], rounds: 0 }
            }
        };
        let mut picker = Picker { kind, senders, receivers, stream };
        // A host without a receiver would take a share of the load and never send.
        if let Kind::Fixed(target) = &picker.kind {
            picker.senders.retain(|sender| target[sender.index()] != *sender);
        }
        if picker.round_flows() == 0.0 {
            return Err(Problem::new("pattern", "no sender has a receiver other than itself; name more receivers"));
        }
        Ok(picker)
    }

    /// Whether an arrival is a group instead of a single message.
    pub fn groups(&self) -> bool {
        !matches!(self.kind, Kind::AllToAll | Kind::Fixed(_) | Kind::HotSpots { .. } | Kind::Weighted(_))
    }

    /// The hosts whose links limit the groups of an incast or outcast.
    pub fn bottleneck(&self) -> Option<&[HostId]> {
        match self.kind {
            Kind::Incast(_) => Some(&self.receivers),
            Kind::Outcast(_) => Some(&self.senders),
            _ => None,
        }
    }

    /// Number of messages in a round, weighted: its size in mean message sizes.
    pub fn round_flows(&self) -> f64 {
        let (senders, receivers) = (self.senders.len() as f64, self.receivers.len() as f64);
        match &self.kind {
            Kind::AllToAll | Kind::Fixed(_) | Kind::HotSpots { .. } | Kind::Weighted(_) => senders,
            Kind::Incast(incast) => f64::from(incast.degree) * f64::from(incast.flows_per_sender),
            Kind::Outcast(outcast) => f64::from(outcast.degree),
            Kind::Dense | Kind::Moe { .. } => {
                let both = self.senders.iter().filter(|s| self.receivers.binary_search(s).is_ok()).count();
                senders * receivers - both as f64
            }
            Kind::RackShuffle { rack_of, target } => {
                let mut receivers_in = vec![0u64; target.len()];
                self.receivers.iter().for_each(|r| receivers_in[rack_of[r.index()] as usize] += 1);
                let of = |s: &HostId| receivers_in[target[rack_of[s.index()] as usize] as usize];
                self.senders.iter().map(of).sum::<u64>() as f64
            }
        }
    }

    /// The receiver of a single message; only for patterns without groups.
    pub fn target(&mut self, src: HostId) -> HostId {
        match &self.kind {
            Kind::Fixed(target) => target[src.index()],
            Kind::HotSpots { hot, cold, share } => {
                let (first, second) = if self.stream.chance(*share) { (hot, cold) } else { (cold, hot) };
                let drawn = other_than(src, first, &mut self.stream);
                drawn.or_else(|| other_than(src, second, &mut self.stream)).expect("both kinds have a receiver")
            }
            Kind::Weighted(weights) => weighted(src, weights, &self.receivers, &mut self.stream),
            _ => other_than(src, &self.receivers, &mut self.stream).expect("a lone receiver sends nothing"),
        }
    }

    /// Writes the messages of the next round into `round`.
    pub fn round(&mut self, round: &mut Vec<RoundMessage>) {
        round.clear();
        match &mut self.kind {
            Kind::AllToAll | Kind::Fixed(_) | Kind::HotSpots { .. } | Kind::Weighted(_) => {
                for index in 0..self.senders.len() {
                    let src = self.senders[index];
                    round.push((src, self.target(src), 1.0));
                }
            }
            Kind::Incast(incast) => {
                let dst = *self.stream.choose(&self.receivers).expect("there are receivers");
                let mut chosen = sample(&self.senders, dst, incast.degree, &mut self.stream);
                chosen.sort_unstable();
                for src in chosen {
                    round.extend((0..incast.flows_per_sender).map(|_| (src, dst, 1.0)));
                }
            }
            Kind::Outcast(outcast) => {
                let src = *self.stream.choose(&self.senders).expect("there are senders");
                let mut chosen = sample(&self.receivers, src, outcast.degree, &mut self.stream);
                chosen.sort_unstable();
                round.extend(chosen.into_iter().map(|dst| (src, dst, 1.0)));
            }
            Kind::Dense => pairs(&self.senders, &self.receivers, |_, _| true, round),
            Kind::RackShuffle { rack_of, target } => {
                let rack = |host: HostId| rack_of[host.index()];
                pairs(&self.senders, &self.receivers, |src, dst| target[rack(src) as usize] == rack(dst), round);
            }
            Kind::Moe { moe, hot, rounds } => {
                if *rounds == 0 || moe.redraw_every.is_some_and(|every| *rounds % every == 0) {
                    hot.fill(false);
                    let mut order = self.receivers.clone();
                    self.stream.shuffle(&mut order);
                    order[..moe.hot as usize].iter().for_each(|host| hot[host.index()] = true);
                }
                *rounds = rounds.wrapping_add(1).max(1);
                pairs(&self.senders, &self.receivers, |_, _| true, round);
                weigh(round, hot, moe.share);
            }
        }
    }
}

/// Scales sizes so that each sender's bytes go to hot receivers with the given share. Its total stays the same.
fn weigh(round: &mut [RoundMessage], hot: &[bool], share: f64) {
    for of_sender in round.chunk_by_mut(|a, b| a.0 == b.0) {
        let all = of_sender.len() as f64;
        let to_hot = of_sender.iter().filter(|part| hot[part.1.index()]).count() as f64;
        if to_hot > 0.0 && to_hot < all {
            for part in of_sender {
                part.2 = if hot[part.1.index()] { share * all / to_hot } else { (1.0 - share) * all / (all - to_hot) };
            }
        }
    }
}

/// Every sender in order with every receiver in order that `goes` allows.
fn pairs(
    senders: &[HostId],
    receivers: &[HostId],
    goes: impl Fn(HostId, HostId) -> bool,
    round: &mut Vec<RoundMessage>,
) {
    for &src in senders {
        let of_sender = receivers.iter().filter(|&&dst| dst != src && goes(src, dst));
        round.extend(of_sender.map(|&dst| (src, dst, 1.0)));
    }
}

/// A uniform draw from the ascending `hosts` except `host`.
fn other_than(host: HostId, hosts: &[HostId], stream: &mut Stream) -> Option<HostId> {
    let Ok(own) = hosts.binary_search(&host) else {
        return stream.choose(hosts).copied();
    };
    if hosts.len() == 1 {
        return None;
    }
    let drawn = stream.below(hosts.len() as u64 - 1) as usize;
    Some(hosts[drawn + usize::from(drawn >= own)])
}

/// A draw by weight from `hosts` except `host`.
fn weighted(host: HostId, weights: &[f64], hosts: &[HostId], stream: &mut Stream) -> HostId {
    let others = || hosts.iter().zip(weights).filter(|(other, weight)| **other != host && **weight > 0.0);
    let mut left = stream.unit() * others().map(|(_, weight)| weight).sum::<f64>();
    let drawn = others().find(|(_, weight)| {
        left -= **weight;
        left < 0.0
    });
    // Rounding may leave a small remainder after the last.
    *drawn.or(others().next_back()).expect("checked").0
}

/// Checks that there is a weight for each receiver, and a receiver other than itself for each sender.
fn check_weights(weights: &[f64], senders: &[HostId], receivers: &[HostId]) -> Result<(), Problem> {
    let key = "pattern.weighted";
    if weights.len() != receivers.len() {
        let message =
            format!("has {} weights for {} receivers; write one for each receiver", weights.len(), receivers.len());
        return Err(Problem::new(key, message));
    }
    if let Some(weight) = weights.iter().find(|weight| !(**weight >= 0.0 && **weight <= 1e12)) {
        return Err(Problem::new(key, format!("{weight} is not a weight between 0 and 1e12")));
    }
    let alone =
        |sender: &&HostId| receivers.iter().zip(weights).all(|(host, weight)| host == *sender || *weight == 0.0);
    match senders.iter().find(alone) {
        Some(sender) => Err(Problem::new(
            key,
            format!(
                "host {sender} has nobody to send to: all other receivers have weight 0; give one of them a weight \
                 above 0"
            ),
        )),
        None => Ok(()),
    }
}

/// `count` hosts other than `host`, without replacement (a partial Fisher-Yates shuffle).
fn sample(hosts: &[HostId], host: HostId, count: u32, stream: &mut Stream) -> Vec<HostId> {
    let mut pool: Vec<HostId> = hosts.iter().copied().filter(|other| *other != host).collect();
    for index in 0..count as usize {
        let other = index + stream.below((pool.len() - index) as u64) as usize;
        pool.swap(index, other);
    }
    pool.truncate(count as usize);
    pool
}

/// The receiver of each sender (other hosts map to themselves): uniform among the one-to-one maps without fixed points,
/// by drawing until one has none (about e draws on average if senders and receivers are the same hosts).
fn permutation(
    senders: &[HostId],
    receivers: &[HostId],
    view: &FabricView,
    stream: &mut Stream,
) -> Result<Vec<HostId>, Problem> {
    if receivers.len() < senders.len() {
        let message = format!(
            "a permutation needs a receiver for each sender, and there are {} senders for {} receivers; name more \
             receivers",
            senders.len(),
            receivers.len()
        );
        return Err(Problem::new("receivers", message));
    }
    let mut order = receivers.to_vec();
    loop {
        stream.shuffle(&mut order);
        if senders.iter().zip(&order).all(|(src, dst)| src != dst) {
            let mut target: Vec<HostId> = (0..view.hosts()).map(HostId).collect();
            senders.iter().zip(&order).for_each(|(src, dst)| target[src.index()] = *dst);
            return Ok(target);
        }
    }
}

impl Stride {
    fn targets(self, senders: &[HostId], receivers: &[HostId], view: &FabricView) -> Result<Vec<HostId>, Problem> {
        let hosts = u64::from(view.hosts());
        if u64::from(self.by) % hosts == 0 {
            let message = format!(
                "{} is a multiple of {hosts}, the number of hosts, so that a host would send to itself; write another \
                 number",
                self.by
            );
            return Err(Problem::new("pattern.stride.by", message));
        }
        let mut target: Vec<HostId> = (0..view.hosts()).map(HostId).collect();
        for src in senders {
            let dst = HostId(((u64::from(src.0) + u64::from(self.by)) % hosts) as u32);
            if receivers.binary_search(&dst).is_ok() {
                target[src.index()] = dst;
            }
        }
        Ok(target)
    }
}

impl HotSpots {
    fn bind<'a>(&self, receivers: &[HostId], view: &FabricView) -> Result<Kind<'a>, Problem> {
        share("hot_spots", self.share)?;
        let hot = self.hosts.resolve(view).map_err(|p| p.under("pattern.hot_spots.hosts"))?;
        if let Some(stranger) = hot.iter().find(|host| receivers.binary_search(host).is_err()) {
            let message = format!("host {stranger} is not among the receivers; add it there or leave it out here");
            return Err(Problem::new("pattern.hot_spots.hosts", message));
        }
        let cold: Vec<HostId> = receivers.iter().copied().filter(|host| hot.binary_search(host).is_err()).collect();
        if cold.is_empty() {
            return Err(Problem::new(
                "pattern.hot_spots.hosts",
                "every receiver is hot; leave some out of the hot ones",
            ));
        }
        Ok(Kind::HotSpots { hot, cold, share: self.share })
    }
}

fn degree(pattern: &str, degree: u32, most: usize, noun: &str) -> Result<(), Problem> {
    degree_named(&format!("pattern.{pattern}.degree"), degree, most, &format!("number of {noun}"))
}

fn degree_named(key: &str, degree: u32, most: usize, noun: &str) -> Result<(), Problem> {
    if degree == 0 || degree as usize > most {
        return Err(Problem::new(key, format!("{degree} is not between 1 and {most}, the {noun}")));
    }
    Ok(())
}

fn share(pattern: &str, share: f64) -> Result<(), Problem> {
    if share > 0.0 && share < 1.0 {
        return Ok(());
    }
    Err(Problem::new(format!("pattern.{pattern}.share"), format!("{share} is not a share between 0 and 1")))
}
