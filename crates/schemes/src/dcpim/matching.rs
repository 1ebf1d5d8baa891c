//! The matching phase (sections 2, 3.1 and 3.4): what requests and grants have come in, and which of them to choose.
//!
//! A host plays both sides at once, independently: as a receiver it requests and accepts, as a sender it grants. Both
//! choices are the same: of the offers of this round pick channels until none is free, in the first round those of the
//! smallest remaining flow first, then channel by channel uniformly at random.

use units::{FlowId, HostId, Stream};

use super::terms::Terms;
use super::{Departure, Header};

/// A request or a grant that has come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub phase: i64,
    pub round: u8,
    /// Who made it.
    pub peer: HostId,
    /// The flow that it names.
    pub flow: FlowId,
    /// Channels asked for or granted.
    pub channels: u32,
    /// Remaining packets of the smallest flow between the two.
    pub remaining: u64,
}

/// Offers that wait for their stage.
#[derive(Debug, Default)]
pub(super) struct Offers {
    waiting: Vec<Offer>,
    /// Offers that came too late.
    pub stale: u64,
}

impl Offers {
    /// Takes in an offer that a packet brought; `phase_now` tells which phase its 32 bits mean.
    pub fn push(&mut self, header: &Header, peer: HostId, flow: FlowId, phase_now: i64) {
        self.waiting.push(Offer {
            phase: full_phase(header.phase, phase_now),
            round: header.round,
            peer,
            flow,
            channels: u32::from(header.channels),
            remaining: header.bytes,
        });
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Picks channels from the offers of this round, `free` at most: (offer, channels), each peer at most once.
    ///
    /// Offers that came too late for the round before are still good: without them two hosts whose clocks differ by
    /// more than the slack of a stage would never match (section 3.5: clocks need not agree, and who is unmatched in one
    /// round catches up in the next). Older ones are stale and dropped; those of later rounds, from hosts whose clocks
    /// are ahead, stay.
    pub fn pick(&mut self, phase: i64, round: u8, free: u32, terms: &Terms, random: &mut Stream) -> Vec<(Offer, u32)> {
        let mut offers: Vec<Offer> = Vec::new();
        let stale = &mut self.stale;
        self.waiting.retain(|&offer| {
            if (offer.phase, offer.round) > (phase, round) {
                return true;
            }
            let good = offer.phase == phase && offer.round + 1 >= round;
            match offers.iter_mut().find(|other| other.peer == offer.peer) {
                Some(other) if good && other.round < offer.round => *other = offer,
                None if good => offers.push(offer),
                _ => {}
            }
            *stale += u64::from(!good);
            false
        });
        // Ties of size must fall differently at each host, or all would choose the same partner.
        random.shuffle(&mut offers);
        if round == 1 && terms.sizes_known {
            offers.sort_by_key(|offer| offer.remaining);
            whole(offers, free)
        } else if terms.departs(Departure::RequestByFlow) {
            whole(offers, free)
        } else {
            by_channel(&offers, free, random)
        }
    }
}

/// Offers in this order, each with all its channels while there are any.
fn whole(offers: Vec<Offer>, mut free: u32) -> Vec<(Offer, u32)> {
    let take = |offer: Offer| {
        let taken = offer.channels.min(free);
        free -= taken;
        (offer, taken)
    };
    offers.into_iter().map(take).take_while(|(_, taken)| *taken > 0).collect()
}

/// Each channel drawn uniformly from all that are offered and not yet taken.
fn by_channel(offers: &[Offer], free: u32, random: &mut Stream) -> Vec<(Offer, u32)> {
    let mut left: Vec<u32> = offers.iter().map(|offer| offer.channels).collect();
    let mut total: u32 = left.iter().sum();
    for _ in 0..free.min(total) {
        let mut drawn = random.below(u64::from(total)) as u32;
        let chosen = left.iter_mut().find(|left| {
            let here = drawn < **left;
            drawn = drawn.wrapping_sub(**left);
            here
        });
        *chosen.expect("drawn below the total") -= 1;
        total -= 1;
    }
    let taken = offers.iter().zip(left).map(|(offer, left)| (*offer, offer.channels - left));
    taken.filter(|(_, taken)| *taken > 0).collect()
}

/// The phase nearest to `now` with these low 32 bits.
pub(super) fn full_phase(low: u32, now: i64) -> i64 {
    now + i64::from(low.wrapping_sub(now as u32) as i32)
}
