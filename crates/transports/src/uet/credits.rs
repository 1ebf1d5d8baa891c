//! RCCC, the receiver's credits: receiver-credit congestion control.
//!
//! Senders say how much credit they want (a *pull target*), and a receiver gives out as much as its link can receive,
//! for a few packets at a time, to all senders that want some in turn. If none wants any, it gives credit in advance to
//! senders that have received what they wanted, up to a window each, so that their next packets need not wait for
//! credit. It gives no more than the whole message can use: in `uet-htsim` a connection may always have more to send,
//! while here a message is one, and over a long way a window is thousands of pulls.
//!
//! In an oversubscribed network the receiver's link may not be the bottleneck. There a receiver adapts the rate of its
//! credits about once every one and a half round trips. It lowers the rate by the share of packets that were trimmed
//! before the last link, and also if too many of the others are marked. Otherwise it raises the rate, faster and faster
//! while nothing is marked. Constants are those of `uet-htsim`.

use std::collections::VecDeque;

use node::FlowMap;
use units::{Duration, FlowId, Rate, Stream, Time};

use super::header::{CREDIT, CREDIT_UNIT};
use super::receiver::Incoming;

/// Packets' worth of credit in one pull.
pub(super) const PACKETS_PER_PULL: u64 = 4;
/// Part of the link's rate for which there is credit.
const LINK_SHARE: f64 = 0.99;
/// A pull without credit takes the time of this many bytes.
const EMPTY_PULL_BYTES: u64 = 1_024;

/// A flow's credit at its receiver, in units of [`CREDIT_UNIT`].
#[derive(Clone, Copy, Debug, Default, node::State)]
pub(super) struct Account {
    /// Given so far.
    #[state(measured(CREDIT))]
    pub given: u32,
    /// Wanted in all.
    #[state(measured(CREDIT))]
    pub target: u32,
    /// The credit that the whole message needs, with what was trimmed.
    whole: u32,
    /// Whether it waits for credit that it wants, or for some ahead.
    wants: bool,
    ahead: bool,
}

impl Account {
    /// That of a message of this many bytes with headers.
    pub fn new(wire_bytes: u64) -> Account {
        let whole = u32::try_from(wire_bytes.div_ceil(CREDIT_UNIT)).unwrap_or(u32::MAX);
        Account { whole, ..Account::default() }
    }
}

/// The credits of a host.
#[derive(Debug, node::State)]
pub(super) struct Credits {
    /// Units of a pull.
    units: u32,
    /// The most units ahead of what is wanted.
    ahead_max: u32,
    rate: Rate,
    wanting: VecDeque<FlowId>,
    ahead: VecDeque<FlowId>,
    /// When the next pull may leave.
    #[state(when(self.wanting.is_empty() && self.ahead.is_empty(), expired, time))]
    next_at: Time,
    pub control: Option<RateControl>,
}

impl Credits {
    /// The credits of a host with a link of this rate, for full packets with `payload` bytes and windows of
    /// `window_max` bytes.
    pub fn new(rate: Rate, payload: u64, window_max: u64, control: Option<RateControl>) -> Credits {
        let units = |bytes: u64| u32::try_from(bytes / CREDIT_UNIT).unwrap_or(u32::MAX).max(1);
        Credits {
            units: units(PACKETS_PER_PULL * payload),
            ahead_max: units(window_max),
            rate,
            wanting: VecDeque::new(),
            ahead: VecDeque::new(),
            next_at: Time::ZERO,
            control,
        }
    }

    /// A packet was trimmed. Its sender has to send it with new credit, and may have none left to say so with: all that
    /// the message needed may have been given.
    pub fn trimmed(&self, account: &mut Account) {
        account.whole = account.whole.saturating_add(self.units.div_ceil(PACKETS_PER_PULL as u32));
    }

    /// A sender wants this much credit in all, or had a packet trimmed (`again`), which it has to send with new credit.
    pub fn ask(&mut self, flow: FlowId, account: &mut Account, target: u32, again: bool) {
        let more = target > account.target;
        account.target = account.target.max(target);
        if (more || again) && !account.wants {
            account.wants = true;
            self.wanting.push_back(flow);
        }
    }

    /// The next pull that is due: the flow, and its credit including this pull.
    pub fn next(&mut self, now: Time, flows: &mut FlowMap<Incoming>) -> Option<(FlowId, u32)> {
        if now < self.next_at {
            return None;
        }
        let (flow, given, units) = match self.take_wanting(flows) {
            Some(pull) => pull,
            None => self.take_ahead(flows)?,
        };
        let bytes = if units == 0 { EMPTY_PULL_BYTES } else { u64::from(units) * CREDIT_UNIT };
        let share = LINK_SHARE * self.control.as_ref().map_or(1.0, |control| control.rate);
        let pause = self.rate.transmit(bytes).ps() as f64 / share;
        self.next_at = now + Duration::from_ps(pause as u64);
        Some((flow, given))
    }

    /// A pull for a flow that wants credit, and how many units are in it.
    fn take_wanting(&mut self, flows: &mut FlowMap<Incoming>) -> Option<(FlowId, u32, u32)> {
        loop {
            let flow = self.wanting.pop_front()?;
            let Some(account) = account(flows, flow) else { continue };
            let before = account.given;
            account.given = account.target.max(before).min(before.saturating_add(self.units));
            if account.target > account.given {
                self.wanting.push_back(flow);
            } else {
                account.wants = false;
                if !account.ahead {
                    account.ahead = true;
                    self.ahead.push_back(flow);
                }
            }
            return Some((flow, account.given, account.given - before));
        }
    }

    fn take_ahead(&mut self, flows: &mut FlowMap<Incoming>) -> Option<(FlowId, u32, u32)> {
        loop {
            let flow = self.ahead.pop_front()?;
            let Some(account) = account(flows, flow) else { continue };
            account.ahead = false;
            let most = account.target.saturating_add(self.ahead_max).min(account.whole.max(account.target));
            let room = most.saturating_sub(account.given);
            if room == 0 {
                continue;
            }
            let units = self.units.min(room);
            account.given += units;
            if room > units {
                account.ahead = true;
                self.ahead.push_back(flow);
            }
            return Some((flow, account.given, units));
        }
    }

    /// When a pull is due.
    pub fn next_at(&self) -> Time {
        if self.wanting.is_empty() && self.ahead.is_empty() { Time::MAX } else { self.next_at }
    }
}

/// The account of a flow that is not complete.
fn account(flows: &mut FlowMap<Incoming>, flow: FlowId) -> Option<&mut Account> {
    let slot = flows.slot(flow)?;
    flows.get_mut(slot).map(|(_, incoming)| &mut incoming.account)
}

/// Share of marked packets that a receiver aims at.
const TARGET_MARKED: f64 = 0.3;
/// Weight of a sample in the mean share.
const MARKED_WEIGHT: f64 = 0.5;
/// Least additive increase, of the link's rate.
const INCREASE: f64 = 0.01;
/// How far beyond the target the share of marked packets decides a decrease.
const DECREASE: f64 = 0.5;
/// Round trips between two decisions, on average.
const PERIOD_RTTS: f64 = 1.5;

/// The rate of a receiver's credits in an oversubscribed network.
#[derive(Clone, Debug, node::State)]
pub(super) struct RateControl {
    /// Part of the full rate.
    pub rate: f64,
    rate_min: f64,
    rtt: Duration,
    /// The mean share of marked packets.
    marked_share: f64,
    /// The next increase while nothing is marked.
    step: f64,
    /// When to decide; none while nothing comes in.
    decides_at: Option<Time>,
    packets: u32,
    marked: u32,
    trimmed_last_hop: u32,
    trimmed_before: u32,
}

impl RateControl {
    /// In a network that is oversubscribed this many times to one.
    pub fn new(oversubscription: f64, rtt: Duration) -> RateControl {
        RateControl {
            rate: 1.0,
            rate_min: (0.9 / oversubscription).max(0.01),
            rtt,
            marked_share: 0.0,
            step: INCREASE,
            decides_at: None,
            packets: 0,
            marked: 0,
            trimmed_last_hop: 0,
            trimmed_before: 0,
        }
    }

    /// A data packet, whole or trimmed.
    pub fn count(&mut self, now: Time, marked: bool, trimmed: Option<bool>, random: &mut Stream) {
        self.packets += 1;
        match trimmed {
            None => self.marked += u32::from(marked),
            Some(true) => self.trimmed_last_hop += 1,
            Some(false) => self.trimmed_before += 1,
        }
        if self.decides_at.is_none() {
            self.decides_at = Some(now + self.period(random));
        }
    }

    /// Receivers decide at random times, so that they do not all act at once.
    fn period(&self, random: &mut Stream) -> Duration {
        Duration::from_ps((self.rtt.ps() as f64 * PERIOD_RTTS * (0.75 + 0.5 * random.unit())) as u64)
    }

    pub fn decides_at(&self) -> Time {
        self.decides_at.unwrap_or(Time::MAX)
    }

    /// Decides on the rate, if it is time.
    pub fn decide(&mut self, now: Time, random: &mut Stream) {
        if self.decides_at.is_none_or(|at| now < at) {
            return;
        }
        let whole = self.packets.saturating_sub(self.trimmed_last_hop + self.trimmed_before);
        let share = if whole == 0 { 0.0 } else { f64::from(self.marked) / f64::from(whole) };
        self.marked_share = MARKED_WEIGHT * share + (1.0 - MARKED_WEIGHT) * self.marked_share;
        let mut decreased = false;
        if self.trimmed_before > 0 {
            self.rate -= f64::from(self.trimmed_before) / f64::from(self.packets);
            decreased = true;
        }
        if self.marked_share > TARGET_MARKED {
            self.rate *= 1.0 - (self.marked_share - TARGET_MARKED) * DECREASE;
            decreased = true;
        }
        if decreased {
            self.step = INCREASE;
        } else {
            self.rate += if self.marked == 0 { self.step } else { INCREASE };
            self.step = (2.0 * self.step).min(1.0);
        }
        self.rate = self.rate.clamp(self.rate_min, 1.0);
        // While nothing comes in there is nothing to decide.
        self.decides_at = (self.packets > 0).then(|| now + self.period(random));
        (self.packets, self.marked, self.trimmed_last_hop, self.trimmed_before) = (0, 0, 0, 0);
    }
}

#[cfg(test)]
mod tests;
