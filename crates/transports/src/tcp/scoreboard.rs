use std::collections::VecDeque;

use units::{Duration, Time};

/// How many segments must have arrived beyond one before it counts as lost (RFC 6675 section 2), unless it is set.
pub(crate) const DUP_THRESH: u32 = 3;

/// The segments of a flow in flight: the scoreboard of RFC 6675.
///
/// As every segment but the last is full, IsLost() (section 4) is true of exactly the segments below the DupThresh-th
/// highest that was SACKed; so two edges replace the RFC's state of each octet: everything not SACKed below
/// `lost_below` is lost, everything not SACKed below `high_rxt` has been sent again. The two edges only rise (but for a
/// timeout), so `pipe` is updated in constant time for each segment. While nothing is lost there is only a queue of
/// sending times.
#[derive(Clone, Debug, node::State)]
pub(crate) struct Scoreboard {
    /// DupThresh.
    dup_thresh: u64,
    /// Losses are found by time (RFC 8985) instead of by counting.
    by_time: bool,
    #[state(sequence)]
    una: u64,
    /// One entry for each of `una..next`.
    sent: VecDeque<Sent>,
    /// Arrived beyond `una`: disjoint runs `first..end`, ascending.
    #[state(sequence)]
    sacked: Vec<(u64, u64)>,
    #[state(sequence)]
    high_rxt: u64,
    #[state(sequence)]
    lost_below: u64,
    /// Segments whose retransmission was lost, ascending; only where losses are found by time.
    #[state(sequence)]
    lost_again: Vec<u64>,
    pipe: u64,
}

#[derive(Clone, Copy, Debug, node::State)]
struct Sent {
    #[state(past)]
    at: Time,
    again: bool,
    /// The retransmission is lost.
    lost: bool,
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
    /// Whether that one had been sent more than once.
    pub newest_again: bool,
    /// The segment after the highest of them.
    pub highest: u64,
    /// The lowest of those that were sent only once.
    pub lowest_new: Option<u64>,
    /// Segments newly known to be lost.
    pub lost: u64,
    /// Where they are: those of `first..end` that have not arrived.
    pub lost_in: (u64, u64),
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
        if self.newest < Some((sent.at, segment)) {
            (self.newest, self.newest_again) = (Some((sent.at, segment)), sent.again);
        }
        self.highest = self.highest.max(segment + 1);
        if !sent.again {
            self.sent = self.sent.max(Some(sent.at));
            self.lowest_new = Some(self.lowest_new.map_or(segment, |lowest| lowest.min(segment)));
        }
    }
}

impl Scoreboard {
    /// Losses are found by counting `dup_thresh` later arrivals, or by time.
    pub fn new(dup_thresh: u32, by_time: bool) -> Scoreboard {
        Scoreboard {
            dup_thresh: dup_thresh.into(),
            by_time,
            una: 0,
            sent: VecDeque::new(),
            sacked: Vec::new(),
            high_rxt: 0,
            lost_below: 0,
            lost_again: Vec::new(),
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

    /// Everything before that has not arrived is lost.
    pub fn lost_below(&self) -> u64 {
        self.lost_below
    }

    /// Whether the first outstanding segment has been sent again.
    pub fn head_resent(&self) -> bool {
        self.una < self.high_rxt
    }

    /// The next segment is sent for the first time.
    #[inline]
    pub fn send(&mut self, now: Time) {
        self.sent.push_back(Sent { at: now, again: false, lost: false });
        self.pipe += 1;
    }

    /// A segment from [`Scoreboard::next_lost`] or [`Scoreboard::next_hole`] is sent again.
    pub fn resend(&mut self, segment: u64, now: Time) {
        self.lost_again.retain(|&lost| lost != segment);
        self.rescue(segment, now);
        self.high_rxt = self.high_rxt.max(segment + 1);
        self.pipe += 1;
    }

    /// A segment is sent again without a place in the pipe: rule 4 of NextSeg() leaves HighRxt alone.
    pub fn rescue(&mut self, segment: u64, now: Time) {
        self.sent[(segment - self.una) as usize] = Sent { at: now, again: true, lost: false };
    }

    /// Rule 1 of NextSeg(): the first lost segment not sent again yet.
    #[inline]
    pub fn next_lost(&self) -> Option<u64> {
        let first = self.lost_again.first().copied();
        if first.is_some() || self.high_rxt >= self.lost_below {
            return first;
        }
        Some(self.first_unsacked(self.high_rxt)).filter(|&segment| segment < self.lost_below)
    }

    /// Number of segments that have arrived beyond the first missing one.
    pub fn sacked_segments(&self) -> u64 {
        self.sacked.iter().map(|run| run.1 - run.0).sum()
    }

    /// When a segment was last sent again, if it has neither arrived since nor been lost.
    pub fn resent_at(&self, segment: u64) -> Option<Time> {
        let sent = self.sent.get(segment.checked_sub(self.una)? as usize)?;
        (sent.again && !sent.lost && segment < self.high_rxt && self.is_missing(segment)).then_some(sent.at)
    }

    /// The retransmission of a segment of [`Scoreboard::resent_at`] is lost.
    pub fn lose_again(&mut self, segment: u64) {
        self.sent[(segment - self.una) as usize].lost = true;
        let place = self.lost_again.partition_point(|&lost| lost < segment);
        self.lost_again.insert(place, segment);
        self.pipe -= 1;
    }

    /// Segments sent once are lost from the first on, as long as they are `due` by now: by when that is, in their
    /// order, or `None` from one on of which nothing can be said. Returns how many are lost by that, and when the next
    /// is due.
    pub fn lose_before(&mut self, due: impl Fn(Time) -> Option<Time>, now: Time) -> (u64, Option<Time>) {
        let (mut edge, mut segment, mut next) = (self.lost_below, self.first_unsacked(self.lost_below), None);
        while segment < self.next() {
            let sent = self.sent[(segment - self.una) as usize];
            if !sent.again {
                match due(sent.at) {
                    Some(at) if at <= now => edge = segment + 1,
                    other => {
                        next = other;
                        break;
                    }
                }
            }
            segment = self.first_unsacked(segment + 1);
        }
        (self.lose_below(edge), next)
    }

    /// Raises `lost_below`; returns the number of segments that are lost by that.
    fn lose_below(&mut self, edge: u64) -> u64 {
        let lost = if edge > self.lost_below { self.unsacked(self.lost_below, edge) } else { 0 };
        self.pipe -= lost;
        self.lost_below = self.lost_below.max(edge);
        lost
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
        self.lost_again.clear();
        self.sent.iter_mut().for_each(|sent| sent.lost = false);
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
                    self.arrived(self.una, sent, &mut progress);
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
        if news && !self.by_time {
            let from = self.lost_below;
            progress.lost = self.find_lost();
            progress.lost_in = (from, self.lost_below);
        }
        progress
    }

    /// How often a missing segment counts in the pipe: SetPipe(), RFC 6675 section 4.
    #[inline]
    fn weight(&self, segment: u64, sent: Sent) -> u64 {
        u64::from(segment >= self.lost_below) + u64::from(segment < self.high_rxt && !sent.lost)
    }

    /// A missing segment has arrived.
    #[inline]
    fn arrived(&mut self, segment: u64, sent: Sent, progress: &mut Progress) {
        self.pipe -= self.weight(segment, sent);
        if sent.lost {
            self.lost_again.retain(|&lost| lost != segment);
        }
        progress.note(segment, sent);
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
            self.arrived(segment, self.sent[(segment - self.una) as usize], progress);
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
            return self.lose_below(end - left);
        }
        0
    }

    /// How many of `first..end` have not arrived.
    fn unsacked(&self, first: u64, end: u64) -> u64 {
        let from = self.sacked.partition_point(|run| run.1 <= first);
        let runs = self.sacked[from..].iter().take_while(|run| run.0 < end);
        end - first - runs.map(|run| run.1.min(end) - run.0.max(first)).sum::<u64>()
    }

    /// Whether a segment has not arrived.
    pub fn is_missing(&self, segment: u64) -> bool {
        self.first_unsacked(segment) == segment
    }

    fn first_unsacked(&self, from: u64) -> u64 {
        let index = self.sacked.partition_point(|run| run.1 <= from);
        self.sacked.get(index).filter(|run| run.0 <= from).map_or(from, |run| run.1)
    }
}

#[cfg(test)]
mod tests;
