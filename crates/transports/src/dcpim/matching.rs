//! The matching phase (sections 2, 3.1 and 3.4): requests and grants that have arrived, and the choice among them.
//!
//! A host plays both sides at once, independently: as a receiver it requests and accepts, as a sender it grants. Both
//! choices work the same way: pick channels from the received offers until none is free, in the first round by the
//! smallest remaining flow, then channel by channel uniformly at random.
//!
//! No host compares another host's clock with its own (section 3.5: "each host [...] uses its local view of the
//! stage/round/phase"). A request carries its receiver's phase and round. At its own next grant stage, the sender uses
//! the requests that have arrived, and returns phase and round with the grant. Only the receiver decides whether a
//! grant is late, by the clock of its request.

use units::{FlowId, HostId, Stream};

use super::Departure;
use super::header::Proposal;
use super::params::{Free, Pair, Params};

/// A request or grant that has arrived.
#[derive(Clone, Copy, node::Saved)]
pub(super) struct Offer {
    /// Phase and round of the request, by the clock of the host that made it.
    pub phase: i64,
    pub round: u8,
    /// The host that made it.
    pub peer: HostId,
    /// The flow that it names.
    pub flow: FlowId,
    /// Channels requested or granted.
    pub channels: u32,
    /// Remaining packets of the smallest flow between the two.
    pub remaining: u64,
    /// Channels of these that would begin at once.
    pub prompt: u32,
    /// This host and the one that made it.
    pub pair: Pair,
}

/// Offers that wait for their stage.
#[derive(Default, node::Saved)]
pub(super) struct Offers {
    waiting: Vec<Offer>,
    /// Number of offers that had expired.
    pub stale: u64,
}

impl Offers {
    /// Adds an offer from a packet; `phase_now` resolves its 32 bits to a phase.
    pub fn push(&mut self, proposal: Proposal, peer: HostId, flow: FlowId, phase_now: i64, params: &Params) {
        let Proposal { phase, round, channels, remaining, prompt, kbps } = proposal;
        let (phase, pair) = (full_phase(phase, phase_now), params.pair(kbps));
        let (channels, prompt) = (u32::from(channels), u32::from(prompt));
        self.waiting.push(Offer { phase, round, peer, flow, channels, remaining, prompt, pair });
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Picks channels that fit into `free` from the offers that are `good`: (offer, channels), each peer at most once,
    /// by its latest request. No offer is kept for another round. Offers whose requests belong to a first round are
    /// picked by the first round's rule, whenever they arrive.
    pub fn pick(
        &mut self,
        good: impl Fn(&Offer) -> bool,
        mut free: Free,
        params: &Params,
        random: &mut Stream,
    ) -> Vec<(Offer, u32)> {
        let mut offers: Vec<Offer> = Vec::new();
        for offer in self.waiting.drain(..) {
            if !good(&offer) {
                self.stale += 1;
                continue;
            }
            match offers.iter_mut().find(|other| other.peer == offer.peer) {
                Some(other) if (other.phase, other.round) < (offer.phase, offer.round) => *other = offer,
                None => offers.push(offer),
                Some(_) => {}
            }
        }
        // Ties of size must be broken differently at each host, or all would choose the same partner.
        random.shuffle(&mut offers);
        offers.sort_by_key(|offer| if by_size(offer, params) { (0, offer.remaining) } else { (1, 0) });
        let others = offers.split_off(offers.partition_point(|offer| by_size(offer, params)));
        let mut picked = whole(offers, &mut free);
        if params.departs(Departure::RequestByFlow) {
            picked.extend(whole(others, &mut free));
        } else {
            picked.extend(by_channel(&others, free, random));
        }
        picked
    }
}

impl Offer {
    /// Of channels that were picked from it, those that begin at once: as many as it has of these and are idle.
    pub fn prompt(&self, channels: u32, idle: &mut Free) -> u32 {
        let prompt = channels.min(self.prompt).min(idle.channels(&self.pair));
        idle.take(prompt, &self.pair);
        prompt
    }
}

/// Whether an offer belongs to the round that picks by remaining size.
fn by_size(offer: &Offer, params: &Params) -> bool {
    offer.round == 1 && params.sizes_known
}

/// Offers in this order, each with all its channels while they fit.
fn whole(offers: Vec<Offer>, free: &mut Free) -> Vec<(Offer, u32)> {
    let take = |offer: Offer| {
        let taken = offer.channels.min(free.channels(&offer.pair));
        free.take(taken, &offer.pair);
        (offer, taken)
    };
    offers.into_iter().map(take).filter(|(_, taken)| *taken > 0).collect()
}

/// Each channel drawn uniformly from all that are offered, not yet taken, and fit.
fn by_channel(offers: &[Offer], mut free: Free, random: &mut Stream) -> Vec<(Offer, u32)> {
    let mut left: Vec<u32> = offers.iter().map(|offer| offer.channels).collect();
    loop {
        let fit = |(offer, left): (&Offer, &u32)| if free.channels(&offer.pair) > 0 { *left } else { 0 };
        let fitting: Vec<u32> = offers.iter().zip(&left).map(fit).collect();
        let total: u32 = fitting.iter().sum();
        if total == 0 {
            break;
        }
        let mut drawn = random.below(u64::from(total)) as u32;
        let chosen = fitting.iter().position(|fitting| {
            let here = drawn < *fitting;
            drawn = drawn.wrapping_sub(*fitting);
            here
        });
        let chosen = chosen.expect("drawn below the total");
        left[chosen] -= 1;
        free.take(1, &offers[chosen].pair);
    }
    let taken = offers.iter().zip(left).map(|(offer, left)| (*offer, offer.channels - left));
    taken.filter(|(_, taken)| *taken > 0).collect()
}

/// The phase nearest to `now` with these low 32 bits.
pub(super) fn full_phase(low: u32, now: i64) -> i64 {
    now + i64::from(low.wrapping_sub(now as u32) as i32)
}
