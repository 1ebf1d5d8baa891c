//! RACK-TLP (RFC 8985): losses found by time instead of by counting, and a probe for a lost tail.
//!
//! A segment is lost if one that was sent later has arrived, and its own acknowledgement is overdue by `reo_wnd`, which
//! is 0 until segments have been seen to arrive out of order. So a lost retransmission is found too, which RFC 6675
//! leaves to the timeout. The tail loss probe sends one segment after two round trips of silence, whose acknowledgement
//! tells of losses before it.
//!
//! Absent: what needs D-SACK, which receivers here don't send: the widening of `reo_wnd` (section 6.2, step 4), and the
//! reduction for a probe that repaired the only loss (7.4), which ends its message here.

use std::collections::VecDeque;

use units::{Duration, Time};

use super::scoreboard::{Progress, Scoreboard};

/// The state of a flow, by the names of RFC 8985 section 5.
#[derive(Clone, Debug, Default, node::State)]
pub(crate) struct Rack {
    /// RACK.xmit_ts: when the newest segment that has arrived was sent. `None` before the first.
    #[state(past)]
    xmit: Option<Time>,
    rtt: Duration,
    min_rtt: Option<Duration>,
    /// RACK.fack: the segment after the highest that has arrived.
    #[state(sequence)]
    fack: u64,
    reordering_seen: bool,
    /// Segments sent again, in that order, for as long as they may be lost.
    #[state(each((passed, past)))]
    again: VecDeque<(u64, Time)>,
    /// TLP.end_seq: SND.NXT when a probe was sent. The next one waits until this is acknowledged.
    #[state(passed)]
    pub probed: Option<u64>,
}

impl Rack {
    /// A segment is sent again.
    pub fn resend(&mut self, segment: u64, now: Time) {
        self.again.push_back((segment, now));
    }

    /// Everything counts as lost: a timeout.
    pub fn give_up(&mut self) {
        self.again.clear();
        self.probed = None;
    }

    /// Section 6.2, steps 1 to 3. `highest` is the segment after the highest one that the acknowledgement delivered,
    /// and `overtaken` whether one below an earlier highest came for the first time.
    pub fn on_ack(&mut self, now: Time, progress: &Progress, una: u64) {
        if self.probed.is_some_and(|end| una >= end) {
            self.probed = None;
        }
        if let Some(rtt) = progress.rtt(now) {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        self.reordering_seen |= progress.lowest_new.is_some_and(|segment| segment < self.fack);
        self.fack = self.fack.max(progress.highest);
        let Some((sent, _)) = progress.newest else { return };
        // One that was sent again and acknowledged sooner than any round trip was the first transmission's.
        let rtt = now - sent;
        if progress.newest_again && self.min_rtt.is_some_and(|least| rtt < least) {
            return;
        }
        if self.xmit.is_none_or(|xmit| sent >= xmit) {
            (self.xmit, self.rtt) = (Some(sent), rtt);
        }
    }

    /// Section 6.2, step 5: marks what is lost by now. Returns how many segments, and when to look again.
    pub fn detect(
        &mut self,
        now: Time,
        board: &mut Scoreboard,
        recovering: bool,
        srtt: Duration,
    ) -> (u64, Option<Time>) {
        let Some(xmit) = self.xmit else { return (0, None) };
        let window = self.reo_wnd(board, recovering, srtt);
        let due = |sent: Time| sent + self.rtt + window;
        let (mut lost, mut next) = board.lose_before(|sent| (sent < xmit).then(|| due(sent)), now);
        while let Some(&(segment, sent)) = self.again.front() {
            if board.resent_at(segment) == Some(sent) {
                if sent >= xmit {
                    break;
                }
                if due(sent) > now {
                    next = Some(next.map_or(due(sent), |next| next.min(due(sent))));
                    break;
                }
                board.lose_again(segment);
                lost += 1;
            }
            self.again.pop_front();
        }
        (lost, next)
    }

    /// Section 6.2, step 4.
    fn reo_wnd(&self, board: &Scoreboard, recovering: bool, srtt: Duration) -> Duration {
        if !self.reordering_seen && (recovering || board.sacked_segments() >= u64::from(super::scoreboard::DUP_THRESH))
        {
            return Duration::ZERO;
        }
        (self.min_rtt.unwrap_or_default() / 4).min(srtt)
    }
}
