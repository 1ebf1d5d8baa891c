//! PRL, a pre-determined rate limiter (Augmented Queue, section 5.1): everything that a host sends passes one token
//! bucket.
//!
//! It models Linux HTB with one class: wire bytes are counted, packets that exceed the rate wait in one queue, and
//! packets that find the queue full are dropped. Incoming packets are not limited, which is why it fails in Table 3 of
//! the paper.
//!
//! Decided here: a packet passes only when there are tokens for all of it. HTB lets one pass with any positive number
//! of tokens and goes into debt. The long-run rate is the same, and the bound of rate * t + burst is exact.

use std::collections::VecDeque;

use node::{EndpointParams, Packet, Shaper};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, FlowId, Problem, Rate, Time};

use super::TokenBucket;
use contract::About;
use contract::sharing::{Hose, SharingScheme};

/// Configuration of the rate limiter. The rate itself follows from the grants of entities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Bytes that may be sent at once after a pause, at least one full packet. Default: one full packet, as `tc` sets
    /// it with fine-grained timers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Bytes>,
    /// Longest queue in packets (Linux `txqueuelen`); further packets are dropped. Default: 1000.
    pub queue_packets: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { burst: None, queue_packets: 1000 }
    }
}

impl SharingScheme for Config {
    fn about(&self) -> About {
        About {
            title: "Pre-determined rate limiter (PRL)",
            source: "Linux HTB, as Augmented Queue section 5.1 measures it",
            summary: "Each host sends through a token bucket whose rate is set once.",
            needs: "hosts: a hypervisor each",
        }
    }

    fn check(&self) -> Result<(), Problem> {
        check(self.burst, self.queue_packets)
    }

    fn limits_hosts(&self) -> bool {
        true
    }

    fn shaper(&self, site: &EndpointParams, hose: Hose) -> Option<Box<dyn Shaper>> {
        Some(self.limiter(site, hose.outbound?))
    }

    fn longest_wait(&self, site: &EndpointParams, hose: Hose) -> Duration {
        longest_wait(self.queue_packets, site, hose.outbound)
    }
}

impl Config {
    /// The limiter of the host at `site`.
    pub fn limiter(&self, site: &EndpointParams, rate: Rate) -> Box<dyn Shaper> {
        Box::new(RateLimiter {
            bucket: TokenBucket::new(rate, burst(self.burst, site)),
            queue: VecDeque::new(),
            queue_packets: self.queue_packets as usize,
            seen: Time::ZERO,
            passed: 0,
            dropped: 0,
        })
    }
}

/// Checks the two settings that both limiters have.
pub(super) fn check(burst: Option<Bytes>, queue_packets: u32) -> Result<(), Problem> {
    if burst == Some(Bytes(0)) {
        return Err(Problem::new("burst", "at 0 nothing would pass; leave it out for one full packet"));
    }
    if queue_packets == 0 {
        return Err(Problem::new("queue_packets", "at 0 no packet could wait; write at least 1"));
    }
    Ok(())
}

/// How long a full queue takes at this rate.
pub(super) fn longest_wait(queue_packets: u32, site: &EndpointParams, rate: Option<Rate>) -> Duration {
    let bytes = u64::from(queue_packets) * u64::from(site.mtu_bytes);
    rate.map_or(Duration::ZERO, |rate| rate.transmit(bytes))
}

pub(super) fn burst(burst: Option<Bytes>, site: &EndpointParams) -> Bytes {
    burst.unwrap_or_default().max(Bytes(u64::from(site.mtu_bytes)))
}

#[derive(node::State)]
struct RateLimiter {
    bucket: TokenBucket,
    queue: VecDeque<Packet>,
    queue_packets: usize,
    /// Time of the last call.
    #[state(past)]
    seen: Time,
    #[state(count)]
    passed: u64,
    #[state(count)]
    dropped: u64,
}

impl Shaper for RateLimiter {
    fn enqueue(&mut self, now: Time, packet: Packet) -> bool {
        self.seen = now;
        let has_room = self.queue.len() < self.queue_packets;
        if has_room {
            self.queue.push_back(packet);
        } else {
            self.dropped += 1;
        }
        has_room
    }

    fn holds(&self, flow: FlowId) -> bool {
        self.queue.iter().any(|packet| packet.flow == flow)
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.seen = now;
        let head = self.queue.front()?;
        if !self.bucket.take(now, u64::from(head.wire_bytes)) {
            return None;
        }
        self.passed += 1;
        self.queue.pop_front()
    }

    fn receive(&mut self, now: Time, _: &Packet) -> bool {
        self.seen = now;
        true
    }

    fn poll_at(&self) -> Time {
        // A packet that may already be sent waits for the NIC and needs no wake-up.
        let ready = self.queue.front().map(|head| self.bucket.ready_at(u64::from(head.wire_bytes)));
        ready.filter(|&at| at > self.seen).unwrap_or(Time::MAX)
    }

    fn wake(&mut self, now: Time) {
        self.seen = now;
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("limiter_passed_packets", self.passed), ("limiter_dropped_packets", self.dropped)]
    }
}

#[cfg(test)]
mod tests;
