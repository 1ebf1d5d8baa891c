//! Proportional rate reduction (RFC 9937, formerly RFC 6937): how much a flow sends while it recovers from a loss.
//!
//! RFC 6675 alone sends nothing until half the window has drained, then a packet for each that arrives. Here what is
//! sent follows what arrives throughout, in the proportion by which the window shrinks, and afterwards grows to the
//! threshold by slow start at most (the reduction bound of section 6, with SafeACK as in Linux).

/// The state of a recovery, in segments, by the names of RFC 9937 section 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub(crate) struct Prr {
    ssthresh: u64,
    /// RecoverFS: what will be delivered in the recovery, of what was outstanding when it began.
    recover_fs: u64,
    delivered: u64,
    out: u64,
    /// How many segments may be in flight now.
    cwnd: u64,
}

impl Prr {
    /// A recovery begins: the window is to become `ssthresh`, and `missing` segments are outstanding of which nothing
    /// has been heard, beside those that the acknowledgement has delivered that begins it.
    pub fn new(ssthresh: u64, missing: u64, delivered: u64, pipe: u64) -> Prr {
        let mut prr = Prr { ssthresh, recover_fs: (missing + delivered).max(1), delivered: 0, out: 0, cwnd: 0 };
        prr.on_ack(delivered, pipe, false);
        prr
    }

    /// An acknowledgement has delivered so many segments and left `pipe` in flight. It is safe if the first outstanding
    /// segment has advanced and nothing more was lost.
    pub fn on_ack(&mut self, delivered: u64, pipe: u64, safe: bool) {
        self.delivered += delivered;
        let room = if pipe > self.ssthresh {
            (self.delivered * self.ssthresh).div_ceil(self.recover_fs).saturating_sub(self.out)
        } else {
            let limit = self.delivered.saturating_sub(self.out).max(delivered) + u64::from(safe);
            limit.min(self.ssthresh - pipe)
        };
        self.cwnd = pipe + room.max(u64::from(self.out == 0));
    }

    /// A segment has left.
    pub fn send(&mut self) {
        self.out += 1;
    }

    /// How many segments may be in flight.
    pub fn cwnd(&self) -> u64 {
        self.cwnd
    }
}

#[cfg(test)]
mod tests;
