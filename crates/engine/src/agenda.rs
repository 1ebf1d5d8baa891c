use units::Time;

/// The next event time of each of a fixed number of sources, and the earliest of them.
///
/// A tournament over the sources, four at a time: each match is among the winners of four matches below. Ties go to
/// the lower source. An update replays the matches between one leaf and the root, as far as anything changes there.
/// Their addresses follow from the leaf, so the loads overlap, and each match is conditional moves: no branch to
/// mispredict, nothing allocated. A binary heap's pop instead follows data-dependent addresses; the simulator of
/// dcPIM's authors spends 56-59% of its time in one.
///
/// A source plays with one word, its key: the time since `base`, and below it the number of the source. So
/// a match is three comparisons, and the winner need not be looked up. A word has no room for all times: those too far
/// from `base` play as equally far, and `base` moves on when nothing nearer is left, which is once in many seconds.
#[derive(Clone, Debug)]
pub struct Agenda {
    /// By source: its next time in picoseconds; `NEVER` for none.
    at: Vec<u64>,
    /// The matches: 0 is the final. The players of match `m` are the winners of matches `4 * m + 1` to `4 * m + 4`, or
    /// sources in the last round.
    matches: Vec<[u64; 4]>,
    /// The winner's key.
    first: u64,
    /// The first match among sources.
    last_round: usize,
    /// How many low bits of a key hold the source's number, and the mask of these bits.
    bits: u32,
    number: u64,
    /// In picoseconds: keys do not tell apart times that are at least so long after `base`.
    far: u64,
    base: u64,
}

const NEVER: u64 = u64::MAX;
/// The key in a place that no source has. It loses to every source that has a time.
const NOBODY: u64 = u64::MAX;

impl Agenda {
    /// An agenda without pending events.
    pub fn new(sources: usize) -> Agenda {
        let (mut last_round, mut width) = (0, 1);
        while 4 * width < sources {
            last_round += width;
            width *= 4;
        }
        let matches = vec![[NOBODY; 4]; last_round + sources.div_ceil(4).max(1)];
        let bits = usize::BITS - sources.leading_zeros();
        let (number, far) = ((1 << bits) - 1, (NOBODY >> bits) - 2);
        let mut agenda =
            Agenda { at: vec![NEVER; sources], matches, first: NOBODY, last_round, bits, number, far, base: 0 };
        agenda.replay_all();
        agenda
    }

    /// The earliest source and its time; [`Time::MAX`] if no event is pending.
    #[inline]
    pub fn first(&self) -> (Time, usize) {
        let source = (self.first & self.number) as usize;
        (Time::from_ps(self.at.get(source).copied().unwrap_or(NEVER)), source)
    }

    /// Whether no source has a time but perhaps this one. Quick where another comes first.
    #[inline]
    pub fn has_none_but(&self, source: usize) -> bool {
        let (at, first) = self.first();
        at == Time::MAX || first == source && (0..).zip(&self.at).all(|(other, &at)| other == source || at == NEVER)
    }

    /// Whether the earliest source is one of `from` to `to` and due at `now`. Only its key is looked at.
    #[inline]
    pub fn is_first_at(&self, now: Time, from: usize, to: usize) -> bool {
        let at = now.ps().wrapping_sub(self.base);
        let number = (self.first & self.number) as usize;
        // Beyond `far` keys do not tell times apart.
        at < self.far && self.first >> self.bits == at && (from..=to).contains(&number)
    }

    /// The next time of one source, [`Time::MAX`] for none.
    #[inline]
    pub fn get(&self, source: usize) -> Time {
        Time::from_ps(self.at[source])
    }

    /// Sets the next time of `source`; [`Time::MAX`] for none.
    #[inline]
    pub fn set(&mut self, source: usize, at: Time) {
        self.at[source] = at.ps();
        if at.ps() < self.base {
            return self.begin_before(at.ps());
        }
        let mut key = self.key(source);
        let (mut of, mut place) = (self.last_round + source / 4, source % 4);
        let matches = &mut self.matches[..];
        loop {
            let players = &mut matches[of];
            if players[place] == key {
                return; // nothing changes further up
            }
            players[place] = key;
            let [a, b, c, d] = *players;
            key = a.min(b).min(c.min(d));
            if of == 0 {
                break;
            }
            (of, place) = ((of - 1) / 4, (of - 1) % 4);
        }
        self.first = key;
        if key >> self.bits == self.far {
            self.move_on();
        }
    }

    /// Moves the next time of `source` to `at` if that is earlier.
    #[inline]
    pub fn advance(&mut self, source: usize, at: Time) {
        if at.ps() < self.at[source] {
            self.set(source, at);
        }
    }

    /// The key of a source, whose time must not be before `base`. A source without a time loses to all that have one.
    #[inline]
    fn key(&self, source: usize) -> u64 {
        let at = self.at[source];
        ((at - self.base).min(self.far) + u64::from(at == NEVER)) << self.bits | source as u64
    }

    /// No source has a time nearer to `base` than `far`: moves `base` to `far / 4` before the earliest time.
    #[cold]
    #[inline(never)]
    fn move_on(&mut self) {
        let earliest = self.at.iter().copied().min().unwrap_or(NEVER);
        self.base = earliest - self.far / 4;
        self.replay_all();
    }

    /// A time is set before `base`: moves `base` to `far / 2` before that time, or to 0. The distance is long, so that
    /// such moves are few whatever times follow.
    #[cold]
    #[inline(never)]
    fn begin_before(&mut self, at: u64) {
        self.base = at.saturating_sub(self.far / 2);
        self.replay_all();
    }

    fn replay_all(&mut self) {
        for source in 0..self.at.len() {
            self.matches[self.last_round + source / 4][source % 4] = self.key(source);
        }
        for of in (1..self.matches.len()).rev() {
            let winner = self.matches[of].iter().copied().min().unwrap_or(NOBODY);
            self.matches[(of - 1) / 4][(of - 1) % 4] = winner;
        }
        self.first = self.matches[0].iter().copied().min().unwrap_or(NOBODY);
    }
}

#[cfg(test)]
mod tests;
