//! A token bucket, exact to the picosecond.
//!
//! Tokens are counted in units of 1 / (8 * 10^12) of a byte, so that a rate of r bps makes exactly r tokens in a
//! picosecond. Only the time at which enough tokens are there is rounded, up to the next picosecond. In any interval of
//! length t at most r * t plus the burst pass, and a sender that always has a packet sends at r for any length of time.

use units::{Bytes, Rate, Time};

/// Tokens that a byte takes.
const BYTE: u128 = 8_000_000_000_000;

/// A token bucket: lets bytes pass at a rate, and a burst after a pause.
#[derive(Clone, Debug, PartialEq, Eq, node::State)]
#[state(first(let full = self.is_full(walk.now())))]
pub struct TokenBucket {
    rate: Rate,
    burst: u128,
    /// At `filled`.
    #[state(when(!full, _))]
    tokens: u128,
    #[state(when(!full, time))]
    filled: Time,
}

impl TokenBucket {
    /// A full bucket.
    pub fn new(rate: Rate, burst: Bytes) -> TokenBucket {
        let burst = u128::from(burst.get()) * BYTE;
        TokenBucket { rate, burst, tokens: burst, filled: Time::ZERO }
    }

    /// The rate at which it fills.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Fills at `rate` from `now` on; the tokens stay.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.fill(now);
        self.rate = rate;
    }

    /// Lets `bytes` pass if there are enough tokens for all of them.
    pub fn take(&mut self, now: Time, bytes: u64) -> bool {
        self.fill(now);
        let left = self.tokens.checked_sub(u128::from(bytes) * BYTE);
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }

    /// The first time at which `bytes` may pass. It may be in the past. [`Time::MAX`] if they never may, because they
    /// exceed the burst or the rate is zero.
    pub fn ready_at(&self, bytes: u64) -> Time {
        let missing = (u128::from(bytes) * BYTE).saturating_sub(self.tokens);
        if missing == 0 {
            return self.filled;
        }
        if self.rate == Rate::ZERO || u128::from(bytes) * BYTE > self.burst {
            return Time::MAX;
        }
        let wait = missing.div_ceil(u128::from(self.rate.bps()));
        Time::from_ps(u64::try_from(wait + u128::from(self.filled.ps())).unwrap_or(u64::MAX))
    }

    fn fill(&mut self, now: Time) {
        let gained = u128::from(self.rate.bps()) * u128::from(now.since(self.filled).ps());
        self.tokens = self.tokens.saturating_add(gained).min(self.burst);
        self.filled = self.filled.max(now);
    }

    /// Whether it is full by then.
    fn is_full(&self, now: Time) -> bool {
        let mut filled = self.clone();
        filled.fill(now);
        filled.tokens == self.burst
    }
}

#[cfg(test)]
mod tests;
