//! What looking for something to skip may cost.
//!
//! Costs are counted, and not measured, so that the same run looks at the same times on every machine.

/// What it costs to simulate a packet-hop: the unit is what it costs to note a value of the state.
const HOP: u64 = 100;
/// What it costs more to log a packet-hop, and to look for a period in the log.
const LOGGED_HOP: u64 = 25;
/// What it costs to look at something that has happened to a message or a rank.
const EVENT: u64 = 30;
/// A share of the cost of the whole run that looking may take: one part in so many.
const SHARE: u64 = 33;
/// Looking may take a share of what was saved, too: one part in so many.
const OF_SAVED: u64 = 4;
/// What looking may cost at the beginning, before anything was simulated: as much as so many packet-hops.
const FIRST: u64 = 200_000;

/// The cost of looking so far.
#[derive(Debug, Default)]
pub(super) struct Budget {
    spent: u64,
}

impl Budget {
    /// The state was noted: so many values.
    pub fn noted(&mut self, values: u64) {
        self.spent += values;
    }

    /// So many events were looked at that have happened to messages and ranks.
    pub fn looked_at(&mut self, events: usize) {
        self.spent += events as u64 * EVENT;
    }

    /// So many packet-hops were logged.
    pub fn logged(&mut self, hops: u64) {
        self.spent += hops * LOGGED_HOP;
    }

    /// How many packet-hops must be simulated before looking may cost more, if so many were simulated and skipped up to
    /// now.
    pub fn short_of(&self, simulated: u64, skipped: u64) -> u64 {
        let granted = (FIRST + simulated / SHARE + skipped / OF_SAVED) * HOP;
        self.spent.saturating_sub(granted) / HOP * SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looking costs three hundredths of what is simulated, and a quarter of what is saved.
    #[test]
    fn looking_costs_a_share() {
        let mut budget = Budget::default();
        budget.logged(4 * FIRST);
        assert_eq!(budget.short_of(0, 0), 0);
        budget.noted(100 * HOP);
        let short = budget.short_of(0, 0);
        assert_eq!(short, 100 * SHARE);
        assert_eq!((budget.short_of(short, 0), budget.short_of(0, 100 * OF_SAVED)), (0, 0));
        assert!(budget.short_of(short / 2, 0) > 0);
    }
}
