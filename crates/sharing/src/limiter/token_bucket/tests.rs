use proptest::prelude::*;
use testing::walks::{NOW, check_moved};
use units::Duration;

use super::*;

#[test]
fn a_rate_of_zero_and_a_packet_above_the_burst_never_pass() {
    let mut stopped = TokenBucket::new(Rate::ZERO, Bytes(1500));
    assert!(stopped.take(Time::ZERO, 1500), "what was in it may go");
    assert_eq!(stopped.ready_at(1), Time::MAX);
    assert_eq!(TokenBucket::new(Rate::from_gbps(1), Bytes(1499)).ready_at(1500), Time::MAX);
}

#[test]
fn a_new_rate_counts_from_its_instant() {
    let mut bucket = TokenBucket::new(Rate::from_gbps(1), Bytes(1500));
    assert!(bucket.take(Time::ZERO, 1500));
    // 6 us at 1 Gbps are 750 bytes; the other 750 take 0.6 us at 10 Gbps.
    bucket.set_rate(Time::from_us(6), Rate::from_gbps(10));
    assert_eq!(bucket.ready_at(1500), Time::from_ns(6_600));
}

/// A bucket that was filled lately, and is not full.
fn filling() -> TokenBucket {
    let burst = 15_000 * BYTE;
    TokenBucket { rate: Rate::from_gbps(1), burst, tokens: 700 * BYTE, filled: NOW - Duration::from_ns(100) }
}

/// In each period a packet takes the tokens that have come.
#[test]
fn its_walk_moves_when_tokens_were_counted() {
    let pass = |bucket: &mut TokenBucket, now| assert!(bucket.take(now, 125));
    check_moved(
        &[],
        Duration::from_us(1),
        filling_at_once,
        |bucket, walk| node::State::visit(bucket, walk, &()),
        pass,
        TokenBucket::clone,
    );
}

/// The same, filled up to a packet before.
fn filling_at_once() -> TokenBucket {
    TokenBucket { filled: NOW - Duration::from_us(1), ..filling() }
}

proptest! {
    #[test]
    fn passes_at_most_rate_times_t_and_the_burst_in_any_interval(
        bps in 1_000_000u64..400_000_000_000,
        burst in 1_500u64..100_000,
        tries in prop::collection::vec((0u64..2_000_000, 64u64..=1500), 1..60),
    ) {
        let rate = Rate::from_bps(bps);
        let mut bucket = TokenBucket::new(rate, Bytes(burst));
        let mut now = Time::ZERO;
        let mut passed = Vec::new();
        for (gap, bytes) in tries {
            now += Duration::from_ps(gap);
            if bucket.take(now, bytes) {
                passed.push((now, bytes));
            }
        }
        for first in 0..passed.len() {
            let mut sum = 0;
            for &(at, bytes) in &passed[first..] {
                sum += bytes;
                let span = at - passed[first].0;
                let most = u128::from(bps) * u128::from(span.ps()) + u128::from(burst) * BYTE;
                prop_assert!(u128::from(sum) * BYTE <= most);
            }
        }
    }

    #[test]
    fn ready_at_is_the_first_instant(bps in 1u64..400_000_000_000, bytes in 1u64..=1500) {
        let mut bucket = TokenBucket::new(Rate::from_bps(bps), Bytes(1500));
        prop_assert!(bucket.take(Time::from_us(3), 1500));
        let ready = bucket.ready_at(bytes);
        prop_assert!(!bucket.clone().take(ready - Duration::from_ps(1), bytes));
        prop_assert!(bucket.take(ready, bytes));
    }
}
