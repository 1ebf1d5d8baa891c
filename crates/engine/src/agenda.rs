use units::Time;

/// The next event time of each of a fixed number of sources, by group, and the earliest of them.
///
/// Sources of a group, such as all that happens at one node, play a tournament, four at a time: each match is among
/// the winners of four matches below. Ties go to the lower source. An update replays the matches between one leaf and
/// the root, as far as anything changes there. Their addresses follow from the leaf, so the loads overlap, and each
/// match is conditional moves: no branch to mispredict, nothing allocated. A binary heap's pop instead follows
/// data-dependent addresses; the simulator of dcPIM's authors spends 56-59% of its time in one.
///
/// **One group after another.** In a span of time ([`open`](Agenda::open)) groups are served one by one, each with all
/// of its events before the next one. Then the state of one node is in the first-level cache for some events, and
/// groups are compared once in a span instead of at each event. The order of events within a group is the same as
/// without groups. A group must not set a time within the span for a lower group.
///
/// A source plays with one word, its key: the time since `base`, and below it the number of the source. So
/// a match is three comparisons, and the winner need not be looked up. A word has no room for all times: those too far
/// from `base` play as equally far, and `base` moves on when nothing nearer is left, which is once in many seconds.
#[derive(Clone, Debug)]
pub struct Agenda {
    sources: Vec<Source>,
    /// The matches of each group. The first of a tournament is its final. The players of its match `m` are the winners
    /// of its matches `4 * m + 1` to `4 * m + 4`, or sources in the last round.
    matches: Vec<[u64; 4]>,
    /// By group: the winner.
    winners: Vec<[u64; BLOCK]>,
    /// By block of groups: the least of their winners; outside of spans.
    least: Vec<u64>,
    /// How many low bits of a key hold the source's number, and the mask of these bits.
    bits: u32,
    number: u64,
    /// In picoseconds: keys do not tell apart times that are at least this long after `base`.
    far: u64,
    base: u64,
    /// The least key that is not before the end of the open span; 0 if none is open.
    stop: u64,
    /// By block, a bit for each group: whether it has an event in the open span.
    due: Vec<u64>,
    /// By block: whether a winner has changed in the open span.
    stale: Vec<bool>,
}

#[derive(Clone, Copy, Debug)]
struct Source {
    /// Its next time in picoseconds; `NEVER` for none.
    at: u64,
    /// Its place in the matches: four times the match, and the player's place there.
    slot: u32,
    /// Its group's final, and the group.
    last: u32,
    group: u32,
}

const NEVER: u64 = u64::MAX;
/// How many groups are looked through at once: as many as a word has bits.
const BLOCK: usize = 64;
/// The key in a place that no source has. It loses to every source that has a time.
const NOBODY: u64 = u64::MAX;

/// How many matches a tournament has before its last round, and in all.
fn rounds(players: usize) -> (usize, usize) {
    let (mut last_round, mut width) = (0, 1);
    while 4 * width < players {
        last_round += width;
        width *= 4;
    }
    (last_round, last_round + players.div_ceil(4).max(1))
}

/// The winner of a match.
#[inline(always)]
fn winner([a, b, c, d]: [u64; 4]) -> u64 {
    a.min(b).min(c.min(d))
}

impl Agenda {
    /// An agenda without pending events, by source its group. Groups are numbered from 0 on.
    pub fn new(groups: &[u32]) -> Agenda {
        let count = groups.iter().max().map_or(0, |&group| group as usize + 1);
        let mut players = vec![0; count];
        groups.iter().for_each(|&group| players[group as usize] += 1);
        let (mut size, mut finals, mut next) = (0, Vec::new(), Vec::new());
        for players in players {
            let (last_round, matches) = rounds(players);
            finals.push(size);
            next.push(4 * (size + last_round as u32));
            size += matches as u32;
        }
        let source = |&group: &u32| {
            let slot = &mut next[group as usize];
            *slot += 1;
            Source { at: NEVER, slot: *slot - 1, last: finals[group as usize], group }
        };
        let sources: Vec<Source> = groups.iter().map(source).collect();
        let bits = usize::BITS - sources.len().leading_zeros();
        let blocks = count.div_ceil(BLOCK);
        let mut agenda = Agenda {
            sources,
            matches: vec![[NOBODY; 4]; size as usize],
            winners: vec![[NOBODY; BLOCK]; blocks],
            least: vec![NOBODY; blocks],
            bits,
            number: (1 << bits) - 1,
            far: (NOBODY >> bits) - 2,
            base: 0,
            stop: 0,
            due: vec![0; blocks],
            stale: vec![false; blocks],
        };
        agenda.replay_all();
        agenda
    }

    /// The earliest source and its time; [`Time::MAX`] if no event is pending. Not within an open span.
    #[inline]
    pub fn first(&self) -> (Time, usize) {
        debug_assert_eq!(self.stop, 0, "the least of winners is known at the end of the span");
        let source = (self.first_key() & self.number) as usize;
        (Time::from_ps(self.sources.get(source).map_or(NEVER, |of| of.at)), source)
    }

    #[inline]
    fn first_key(&self) -> u64 {
        self.least.iter().copied().min().unwrap_or(NOBODY)
    }

    /// Whether no source has a time but perhaps this one. Quick where another comes first.
    #[inline]
    pub fn has_none_but(&self, source: usize) -> bool {
        let (at, first) = self.first();
        let none = || (0..).zip(&self.sources).all(|(other, of)| other == source || of.at == NEVER);
        at == Time::MAX || first == source && none()
    }

    /// The source among `from` to `to`, all of one group, that is due at `now` and the group's earliest, if there is
    /// one. Only its key is looked at.
    #[inline(always)]
    pub fn first_at(&self, now: Time, from: usize, to: usize) -> Option<usize> {
        let at = now.ps().wrapping_sub(self.base);
        let key = self.winner_of(self.sources[from].group as usize);
        let number = (key & self.number) as usize;
        // Beyond `far` keys do not tell times apart.
        (at < self.far && key >> self.bits == at && (from..=to).contains(&number)).then_some(number)
    }

    #[inline(always)]
    fn winner_of(&self, group: usize) -> u64 {
        self.winners[group / BLOCK][group % BLOCK]
    }

    /// The next time of one source, [`Time::MAX`] for none.
    #[inline]
    pub fn get(&self, source: usize) -> Time {
        Time::from_ps(self.sources[source].at)
    }

    /// Sets the next time of `source`; [`Time::MAX`] for none.
    #[inline]
    pub fn set(&mut self, source: usize, at: Time) {
        self.sources[source].at = at.ps();
        if at.ps() < self.base {
            return self.begin_before(at.ps());
        }
        let (key, Source { slot, last, group, .. }) = (self.key(source), self.sources[source]);
        let Some(first) = self.play(slot as usize, last as usize, key) else { return };
        let (block, of) = (group as usize / BLOCK, group as usize % BLOCK);
        let before = std::mem::replace(&mut self.winners[block][of], first);
        if self.stop > 0 {
            self.due[block] |= u64::from(first < self.stop) << of;
            self.stale[block] = true;
        } else if first < self.least[block] {
            self.least[block] = first;
            self.stay_near(first);
        } else if before == self.least[block] {
            self.look_through(block);
            self.stay_near(self.least[block]);
        }
    }

    /// Moves the next time of `source` to `at` if that is earlier.
    #[inline]
    pub fn advance(&mut self, source: usize, at: Time) {
        if at.ps() < self.sources[source].at {
            self.set(source, at);
        }
    }

    /// Begins a span of time in which groups are served one after another. Returns its end: `until`, or earlier if that
    /// is too far away.
    pub fn open(&mut self, until: Time) -> Time {
        if until.ps().saturating_sub(self.base) >= self.far && self.first().0 < Time::MAX {
            self.move_on();
        }
        let span = until.ps().saturating_sub(self.base).min(self.far);
        self.stop = (span << self.bits).max(1);
        for (block, winners) in self.winners.iter().enumerate() {
            if self.least[block] < self.stop {
                let due = (0..).zip(winners).map(|(of, &winner)| u64::from(winner < self.stop) << of);
                self.due[block] = due.fold(0, |all, due| all | due);
            }
        }
        Time::from_ps(self.base + span)
    }

    /// The lowest group that has an event in the open span, not below `from`.
    #[inline]
    pub fn next_due(&self, from: usize) -> Option<usize> {
        let mut block = from / BLOCK;
        let mut due = self.due.get(block)? & NOBODY << (from % BLOCK);
        while due == 0 {
            block += 1;
            due = *self.due.get(block)?;
        }
        Some(BLOCK * block + due.trailing_zeros() as usize)
    }

    /// The next event of a group in the open span; if there is none, the group has been served.
    #[inline(always)]
    pub fn next_of(&mut self, group: usize) -> Option<(Time, usize)> {
        let key = self.winner_of(group);
        if key < self.stop {
            return Some((Time::from_ps(self.base + (key >> self.bits)), (key & self.number) as usize));
        }
        self.due[group / BLOCK] &= !(1 << (group % BLOCK));
        None
    }

    /// Ends the open span, once no group has an event in it.
    pub fn close(&mut self) {
        debug_assert!(self.due.iter().all(|&due| due == 0), "events before the end of the span are left");
        self.stop = 0;
        for block in 0..self.stale.len() {
            if std::mem::take(&mut self.stale[block]) {
                self.look_through(block);
            }
        }
        self.stay_near(self.first_key());
    }

    /// Finds the least of a block's winners.
    #[inline]
    fn look_through(&mut self, block: usize) {
        self.least[block] = self.winners[block].iter().copied().fold(NOBODY, u64::min);
    }

    /// A block's least winner has become this one: moves `base` on if no source has a time near to it.
    #[inline]
    fn stay_near(&mut self, least: u64) {
        if least >> self.bits >= self.far && self.first_key() >> self.bits == self.far {
            self.move_on();
        }
    }

    /// Plays with this key in a place, in a tournament with this final. Returns the winner if the final was played.
    #[inline(always)]
    fn play(&mut self, slot: usize, last: usize, mut key: u64) -> Option<u64> {
        let (mut of, mut place) = (slot / 4, slot % 4);
        let matches = &mut self.matches[..];
        loop {
            let players = &mut matches[of];
            if players[place] == key {
                return None; // nothing changes further up
            }
            players[place] = key;
            key = winner(*players);
            if of == last {
                return Some(key);
            }
            let above = of - last - 1;
            (of, place) = (last + above / 4, above % 4);
        }
    }

    /// The key of a source, whose time must not be before `base`. A source without a time loses to all that have one.
    #[inline]
    fn key(&self, source: usize) -> u64 {
        let at = self.sources[source].at;
        ((at - self.base).min(self.far) + u64::from(at == NEVER)) << self.bits | source as u64
    }

    /// No source has a time nearer to `base` than `far`, or a span ends there: moves `base` to `far / 4` before the
    /// earliest time.
    #[cold]
    #[inline(never)]
    fn move_on(&mut self) {
        let earliest = self.sources.iter().map(|of| of.at).min().unwrap_or(NEVER);
        self.base = self.base.max(earliest.saturating_sub(self.far / 4));
        self.replay_all();
    }

    /// A time is set before `base`: moves `base` to `far / 2` before that time, or to 0. The distance is long, so that
    /// such moves are few whatever times follow.
    #[cold]
    #[inline(never)]
    fn begin_before(&mut self, at: u64) {
        debug_assert_eq!(self.stop, 0, "a span begins no earlier than its events");
        self.base = at.saturating_sub(self.far / 2);
        self.replay_all();
    }

    fn replay_all(&mut self) {
        self.matches.fill([NOBODY; 4]);
        for source in 0..self.sources.len() {
            let (key, Source { slot, last, group, .. }) = (self.key(source), self.sources[source]);
            if let Some(first) = self.play(slot as usize, last as usize, key) {
                self.winners[group as usize / BLOCK][group as usize % BLOCK] = first;
            }
        }
        (0..self.least.len()).for_each(|block| self.look_through(block));
    }
}

#[cfg(test)]
mod tests;
