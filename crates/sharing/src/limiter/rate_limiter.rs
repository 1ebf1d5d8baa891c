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

use node::{Packet, Shaper, Site};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Problem, Rate, Time};

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

    fn shaper(&self, site: &Site, hose: Hose) -> Option<Box<dyn Shaper>> {
        Some(self.limiter(site, hose.outbound?))
    }
}

impl Config {
    /// The limiter of the host at `site`.
    pub fn limiter(&self, site: &Site, rate: Rate) -> Box<dyn Shaper> {
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

pub(super) fn burst(burst: Option<Bytes>, site: &Site) -> Bytes {
    burst.unwrap_or_default().max(Bytes(u64::from(site.mtu_bytes)))
}

struct RateLimiter {
    bucket: TokenBucket,
    queue: VecDeque<Packet>,
    queue_packets: usize,
    /// Time of the last call.
    seen: Time,
    passed: u64,
    dropped: u64,
}

impl Shaper for RateLimiter {
    fn enqueue(&mut self, now: Time, packet: Packet) {
        self.seen = now;
        if self.queue.len() < self.queue_packets {
            self.queue.push_back(packet);
        } else {
            self.dropped += 1;
        }
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
mod tests {
    use node::Clock;
    use proptest::prelude::*;
    use units::{Duration, FlowId, HostId};

    use super::*;

    fn site() -> Site {
        Site {
            host: HostId(0),
            hosts: 2,
            nic_rate: Rate::from_gbps(25),
            data_rtt: Duration::from_us(20),
            data_rtts: Vec::new(),
            control_rtt: Duration::from_us(20),
            mtu_bytes: 1500,
            header_bytes: 40,
            clock: Clock::default(),
            transport: 0,
        }
    }

    fn packet(number: u32, bytes: u16) -> Packet {
        let mut packet = Packet::bare(FlowId(number), HostId(0), HostId(1));
        packet.wire_bytes = bytes;
        packet
    }

    #[test]
    fn a_backlogged_host_sends_exactly_its_rate() {
        let mut limiter = Config::default().limiter(&site(), Rate::from_gbps(5));
        let mut sent = Vec::new();
        let mut now = Time::ZERO;
        for number in 0..100 {
            limiter.enqueue(now, packet(number, 1500));
        }
        while now < Time::MAX {
            while let Some(packet) = limiter.poll_transmit(now) {
                sent.push((now, packet.flow.0));
            }
            now = limiter.poll_at();
            limiter.wake(now);
        }
        // 1500 bytes take 2.4 us at 5 Gbps; the first had its tokens.
        assert_eq!(sent, (0..100).map(|n| (Time::from_ns(2_400 * u64::from(n)), n)).collect::<Vec<_>>());
    }

    #[test]
    fn asks_to_be_woken_only_later_than_now() {
        let mut limiter = Config::default().limiter(&site(), Rate::from_gbps(5));
        (0..3).for_each(|number| limiter.enqueue(Time::from_us(7), packet(number, 1500)));
        assert_eq!(limiter.poll_at(), Time::MAX, "it may go as soon as the NIC is free");
        assert!(limiter.poll_transmit(Time::from_us(8)).is_some());
        assert_eq!(limiter.poll_at(), Time::from_ns(10_400));
        limiter.wake(Time::from_ns(10_400));
        assert_eq!(limiter.poll_at(), Time::MAX);
    }

    #[test]
    fn what_finds_the_queue_full_is_dropped() {
        let mut limiter = Config { queue_packets: 3, ..Config::default() }.limiter(&site(), Rate::from_gbps(5));
        (0..5).for_each(|number| limiter.enqueue(Time::ZERO, packet(number, 1500)));
        assert_eq!(limiter.counters(), vec![("limiter_passed_packets", 0), ("limiter_dropped_packets", 2)]);
        assert_eq!(limiter.poll_transmit(Time::ZERO).map(|p| p.flow), Some(FlowId(0)));
        assert_eq!(limiter.poll_transmit(Time::ZERO), None);
    }

    #[test]
    fn senseless_settings_are_refused_by_name() {
        assert_eq!(Config { burst: Some(Bytes(0)), ..Config::default() }.check().unwrap_err().key, "burst");
        assert_eq!(Config { queue_packets: 0, ..Config::default() }.check().unwrap_err().key, "queue_packets");
        assert_eq!(Config::default().check(), Ok(()));
    }

    proptest! {
        #[test]
        fn packets_in_are_packets_out_queued_or_dropped(
            bps in 1_000_000u64..25_000_000_000,
            steps in prop::collection::vec((0u64..5_000_000, 64u16..=1500, 0u8..4), 1..80),
        ) {
            let mut limiter = Config { queue_packets: 5, ..Config::default() }.limiter(&site(), Rate::from_bps(bps));
            let (mut now, mut entered, mut left) = (Time::ZERO, 0, Vec::new());
            for (gap, bytes, pulls) in steps {
                now += Duration::from_ps(gap);
                limiter.enqueue(now, packet(entered, bytes));
                entered += 1;
                left.extend((0..pulls).filter_map(|_| limiter.poll_transmit(now)));
            }
            let mut queued = 0;
            while now < Time::MAX {
                while let Some(packet) = limiter.poll_transmit(now) {
                    left.push(packet);
                    queued += 1;
                }
                now = limiter.poll_at();
            }
            prop_assert!(queued <= 5 && left.windows(2).all(|pair| pair[0].flow < pair[1].flow));
            let dropped = limiter.counters()[1].1;
            prop_assert_eq!(u64::from(entered), left.len() as u64 + dropped);
        }
    }
}
