use std::collections::VecDeque;

use node::Walk;
use units::{Duration, FlowId, Time};

/// How many segments must have arrived beyond one before it counts as lost (RFC 6675 section 2), unless it is set.
pub(crate) const DUP_THRESH: u32 = 3;

/// The segments of a flow in flight: the scoreboard of RFC 6675.
///
/// As every segment but the last is full, IsLost() (section 4) is true of exactly the segments below the DupThresh-th
/// highest that was SACKed; so two edges replace the RFC's state of each octet: everything not SACKed below
/// `lost_below` is lost, everything not SACKed below `high_rxt` has been sent again. The two edges only rise (but for a
/// timeout), so `pipe` is updated in constant time for each segment. While nothing is lost there is only a queue of
/// sending times.
#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    /// DupThresh.
    dup_thresh: u64,
    una: u64,
    /// One entry for each of `una..next`.
    sent: VecDeque<Sent>,
    /// Arrived beyond `una`: disjoint runs `first..end`, ascending.
    sacked: Vec<(u64, u64)>,
    high_rxt: u64,
    lost_below: u64,
    pipe: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    again: bool,
}

/// The effect of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Segments newly acknowledged cumulatively.
    pub acked: u64,
    /// Segments newly known to have arrived.
    pub delivered: u64,
    /// When the last of those that were sent only once was sent (Karn's rule).
    sent: Option<Time>,
    /// The one that was sent last, and when.
    pub newest: Option<(Time, u64)>,
    /// Segments newly known to be lost.
    pub lost: u64,
}

impl Progress {
    /// The round trip that it measured.
    #[inline]
    pub fn rtt(&self, now: Time) -> Option<Duration> {
        self.sent.map(|sent| now - sent)
    }

    /// Time since the newest delivered segment was sent, for the first time or again.
    #[inline]
    pub fn delay(&self, now: Time) -> Option<Duration> {
        self.newest.map(|(sent, _)| now - sent)
    }

    #[inline]
    fn note(&mut self, segment: u64, sent: Sent) {
        self.delivered += 1;
        self.newest = self.newest.max(Some((sent.at, segment)));
        if !sent.again {
            self.sent = self.sent.max(Some(sent.at));
        }
    }
}

impl Scoreboard {
    pub fn new(dup_thresh: u32) -> Scoreboard {
        Scoreboard {
            dup_thresh: dup_thresh.into(),
            una: 0,
            sent: VecDeque::new(),
            sacked: Vec::new(),
            high_rxt: 0,
            lost_below: 0,
            pipe: 0,
        }
    }

    /// The first segment not acknowledged: SND.UNA.
    #[inline]
    pub fn una(&self) -> u64 {
        self.una
    }

    /// The first segment not sent yet: SND.NXT.
    #[inline]
    pub fn next(&self) -> u64 {
        self.una + self.sent.len() as u64
    }

    /// Number of segments assumed to be in the network (RFC 6675's pipe).
    #[inline]
    pub fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Whether the first outstanding segment is lost.
    #[inline]
    pub fn head_lost(&self) -> bool {
        self.una < self.lost_below
    }

    /// Whether the first outstanding segment has been sent again.
    pub fn head_resent(&self) -> bool {
        self.una < self.high_rxt
    }

    /// The next segment is sent for the first time.
    #[inline]
    pub fn send(&mut self, now: Time) {
        self.sent.push_back(Sent { at: now, again: false });
        self.pipe += 1;
    }

    /// A segment from [`Scoreboard::next_lost`] or [`Scoreboard::next_hole`] is sent again.
    pub fn resend(&mut self, segment: u64, now: Time) {
        self.rescue(segment, now);
        self.high_rxt = segment + 1;
        self.pipe += 1;
    }

    /// A segment is sent again without a place in the pipe: rule 4 of NextSeg() leaves HighRxt alone.
    pub fn rescue(&mut self, segment: u64, now: Time) {
        self.sent[(segment - self.una) as usize] = Sent { at: now, again: true };
    }

    /// Rule 1 of NextSeg(): the first lost segment not sent again yet.
    #[inline]
    pub fn next_lost(&self) -> Option<u64> {
        if self.high_rxt >= self.lost_below {
            return None;
        }
        Some(self.first_unsacked(self.high_rxt)).filter(|&segment| segment < self.lost_below)
    }

    /// Rule 3 of NextSeg(): the first overtaken segment not sent again yet, lost or not.
    pub fn next_hole(&self) -> Option<u64> {
        let highest = self.sacked.last()?.1;
        Some(self.first_unsacked(self.high_rxt)).filter(|&segment| segment < highest)
    }

    /// The last outstanding segment not known to have arrived, for rule 4 of NextSeg().
    pub fn last_unsacked(&self) -> Option<u64> {
        let end = match self.sacked.last() {
            Some(&(first, end)) if end == self.next() => first,
            _ => self.next(),
        };
        end.checked_sub(1).filter(|&segment| segment >= self.una)
    }

    /// Retransmission timeout: everything that has not arrived counts as lost and as not sent again. SACKed segments
    /// stay SACKed (RFC 6675 section 5.1), since receivers here keep them.
    pub fn give_up(&mut self) {
        self.lost_below = self.next();
        self.high_rxt = self.una;
        self.pipe = 0;
    }

    /// Goes over its state: that of a flow with segments of `mss` bytes.
    pub fn walk(&mut self, walk: &mut Walk, flow: FlowId, mss: u64) {
        walk.same((self.sent.len(), self.sacked.len(), self.pipe));
        for Sent { at, again } in &mut self.sent {
            walk.same(*again);
            walk.past(at);
        }
        let edges = [&mut self.una, &mut self.high_rxt, &mut self.lost_below];
        let runs = self.sacked.iter_mut().flat_map(|(first, end)| [first, end]);
        edges.into_iter().chain(runs).for_each(|at| walk.sequence(flow, mss, at));
    }

    /// Every segment before `upto` and those in `blocks` have arrived. The caller has checked that `upto` was sent.
    #[inline]
    pub fn acknowledge(&mut self, upto: u64, blocks: impl IntoIterator<Item = (u64, u64)>) -> Progress {
        let mut progress = Progress::default();
        while self.una < upto {
            let Some(sent) = self.sent.pop_front() else { break };
            match self.sacked.first() {
                Some(&(first, end)) if first <= self.una => {
                    if end == self.una + 1 {
                        self.sacked.remove(0);
                    }
                }
                _ => {
                    self.pipe -= self.weight(self.una);
                    progress.note(self.una, sent);
                }
            }
            self.una += 1;
            progress.acked += 1;
        }
        self.high_rxt = self.high_rxt.max(self.una);
        self.lost_below = self.lost_below.max(self.una);
        let mut news = false;
        for (first, end) in blocks {
            let (first, end) = (first.max(self.una + 1), end.min(self.next()));
            if first < end {
                news |= self.sack(first, end, &mut progress);
            }
        }
        if news {
            progress.lost = self.find_lost();
        }
        progress
    }

    /// How often a missing segment counts in the pipe: SetPipe(), RFC 6675 section 4.
    #[inline]
    fn weight(&self, segment: u64) -> u64 {
        u64::from(segment >= self.lost_below) + u64::from(segment < self.high_rxt)
    }

    /// Adds a block; returns whether it said anything new.
    fn sack(&mut self, first: u64, end: u64, progress: &mut Progress) -> bool {
        let from = self.sacked.partition_point(|run| run.1 < first);
        let (mut to, mut merged, mut at) = (from, (first, end), first);
        while let Some(&run) = self.sacked.get(to).filter(|run| run.0 <= end) {
            if run.0 <= first && end <= run.1 {
                return false;
            }
            self.arrive(at, run.0, progress);
            at = at.max(run.1);
            merged = (merged.0.min(run.0), merged.1.max(run.1));
            to += 1;
        }
        self.arrive(at, end, progress);
        self.sacked.splice(from..to, [merged]);
        true
    }

    fn arrive(&mut self, first: u64, end: u64, progress: &mut Progress) {
        for segment in first..end {
            self.pipe -= self.weight(segment);
            progress.note(segment, self.sent[(segment - self.una) as usize]);
        }
    }

    /// Raises `lost_below` to the DupThresh-th highest segment that has arrived; returns the number of segments that
    /// are lost by that.
    fn find_lost(&mut self) -> u64 {
        let mut left = self.dup_thresh;
        for &(first, end) in self.sacked.iter().rev() {
            if end - first < left {
                left -= end - first;
                continue;
            }
            let edge = end - left;
            let lost = if edge > self.lost_below { self.unsacked(self.lost_below, edge) } else { 0 };
            self.pipe -= lost;
            self.lost_below = self.lost_below.max(edge);
            return lost;
        }
        0
    }

    /// How many of `first..end` have not arrived.
    fn unsacked(&self, first: u64, end: u64) -> u64 {
        let from = self.sacked.partition_point(|run| run.1 <= first);
        let runs = self.sacked[from..].iter().take_while(|run| run.0 < end);
        end - first - runs.map(|run| run.1.min(end) - run.0.max(first)).sum::<u64>()
    }

    fn first_unsacked(&self, from: u64) -> u64 {
        let index = self.sacked.partition_point(|run| run.1 <= from);
        self.sacked.get(index).filter(|run| run.0 <= from).map_or(from, |run| run.1)
    }
}

#[cfg(test)]
mod tests;
