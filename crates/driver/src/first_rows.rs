//! The first rows that a probe notes, in the order of time.
//!
//! Nodes are served one after another within a window, so rows don't come in the order of time. Rows are kept until
//! there are some more than asked for, and then the last of them go.

use units::Time;

/// A row of what happened at some time.
pub(crate) trait Timed {
    /// When.
    fn time(&self) -> Time;
}

/// The first rows, and those of the same instant as the last of them: then the same rows come first however a network
/// is cut into parts.
#[derive(Clone, node::Saved)]
pub(crate) struct FirstRows<R> {
    rows: Vec<R>,
    most: usize,
    /// Rows later than this are not wanted.
    until: Time,
    /// Whether there were more rows than these.
    pub more: bool,
    /// With how many rows the last are removed.
    trims_at: usize,
}

impl<R: Timed> FirstRows<R> {
    /// Keeps the first `most` rows, and all others of the instant of the last of them.
    pub fn new(most: u64) -> FirstRows<R> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        FirstRows { rows: Vec::new(), most, until: Time::MAX, more: false, trims_at: trims_at(most, 0) }
    }

    /// Whether a row of now is wanted.
    #[inline]
    pub fn wants(&mut self, now: Time) -> bool {
        self.more |= now > self.until;
        now <= self.until
    }

    pub fn push(&mut self, row: R) {
        if !self.wants(row.time()) {
            return;
        }
        self.rows.push(row);
        if self.rows.len() >= self.trims_at {
            self.trim();
        }
    }

    #[cold]
    fn trim(&mut self) {
        self.rows.sort_by_key(R::time);
        self.until = self.rows[self.most.saturating_sub(1)].time();
        let first = self.rows.partition_point(|row| row.time() <= self.until);
        self.more |= first < self.rows.len();
        self.rows.truncate(first);
        self.trims_at = trims_at(self.most, first);
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, R> {
        self.rows.iter()
    }
}

impl<'r, R: Timed> IntoIterator for &'r FirstRows<R> {
    type Item = &'r R;
    type IntoIter = std::slice::Iter<'r, R>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Seldom enough that sorting costs little, though a single instant may have more rows than are asked for.
fn trims_at(most: usize, rows: usize) -> usize {
    most.saturating_add(most / 4 + 1_000).max(2 * rows)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Timed for (u64, usize) {
        fn time(&self) -> Time {
            Time::from_ps(self.0)
        }
    }

    proptest! {
        /// Against all rows in order: whatever the order in which they come, and with many at one instant.
        #[test]
        fn the_first_rows_are_kept_whole(most in 0u64..50, times in prop::collection::vec(0u64..40, 0..4_000)) {
            let mut first = FirstRows::new(most);
            let all: Vec<(u64, usize)> = times.into_iter().zip(0..).collect();
            all.iter().for_each(|&row| first.push(row));
            let mut kept: Vec<_> = first.iter().copied().collect();
            let mut sorted = all.clone();
            kept.sort_by_key(|of| of.0);
            sorted.sort_by_key(|of| of.0);
            let wanted = sorted.len().min(most as usize);
            prop_assert_eq!(&kept[..wanted], &sorted[..wanted]);
            let more = first.more || kept.len() as u64 > most;
            prop_assert_eq!(more, all.len() as u64 > most);
        }
    }
}
