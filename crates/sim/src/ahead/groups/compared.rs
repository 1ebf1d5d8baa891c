//! Whether the state of a group recurs after some periods.
//!
//! To note a group's state costs as much as some packets of each of its hosts. But often packets repeat long before
//! the state does, as long as windows grow that are not what limits them. So at the end of each period it is compared
//! at ever higher cost: first when the next packets come, then the state of a single host, and then that of the group.

use driver::{Members, Probe};
use node::walk::{Notes, recurrence};
use units::{Duration, Time};

use super::turns::hosts;
use super::{Group, OBSERVED, Stage};
use crate::ahead::island::{FIRST_MULTIPLES, Island, MOST_MULTIPLES};
use crate::ahead::turnover::busiest_host;

/// A state that may recur.
pub(super) struct Compared {
    period: Duration,
    /// What comes next, in short.
    outline: u64,
    /// By part: the host that is looked at, and its state.
    host: (usize, Members),
    glance: Notes,
    /// The whole state when the host's state was this one for the last time, if that is known.
    before: Option<Notes>,
    /// How many periods have passed since, and after how many the host's state is noted anew.
    passed: u32,
    most: u32,
}

impl<'a, P: Probe, W: FnMut(Time, u64) -> bool> Island<'_, 'a, P, W> {
    /// Begins to find out whether the state of a group recurs after some of these periods.
    pub(super) fn begin_to_compare(&mut self, group: &mut Group<'a>, period: Duration) {
        let Some(before) = self.note_group(group) else { return };
        let Some(host) = self.busiest_of(group) else { return };
        let Some(glance) = self.note_members([&host]) else { return };
        let (outline, before) = (self.outline(group), Some(before));
        let compared = Compared { period, outline, host, glance, before, passed: 0, most: FIRST_MULTIPLES };
        group.stage = Stage::Compared(Box::new(compared));
        group.looks_at = self.now + period;
    }

    /// By part, the host that has begun and ended the most of messages, by itself.
    fn busiest_of(&self, group: &Group<'_>) -> Option<(usize, Members)> {
        let run = self.run.borrow();
        let busiest = busiest_host(hosts(run.parts, &group.members))?.id();
        let of_part = |(part, of): &(usize, Members)| Some((*part, run.parts[*part].0.member(of, busiest)?));
        group.members.iter().find_map(of_part)
    }

    /// A period is over. If the state of the group has recurred, it sleeps.
    pub(super) fn compare(&mut self, group: &mut Group<'a>, mut compared: Box<Compared>) {
        let period = compared.period;
        compared.passed += 1;
        let same = compared.outline == self.outline(group);
        let glance = if same { self.note_members([&compared.host]) } else { None };
        if let Some(glance) = &glance
            && recurrence(&compared.glance, glance).is_ok()
        {
            let Some(notes) = self.note_group(group) else { return };
            match compared.before.as_ref().map(|before| recurrence(before, &notes)) {
                Some(Ok(found)) if !found.turnover => return self.sleep_by_periods(group, found),
                _ => compared.before = Some(notes),
            }
        }
        if compared.passed >= compared.most {
            // As seldom as if it had been listened to in between. The shorter flows are observed, the further averages
            // may be off.
            let observes = self.now - group.observed_at >= (group.span * 2).max(self.first_span() * OBSERVED);
            if observes {
                let Some(notes) = self.note_group(group) else { return };
                self.look_for_steady(group, &notes);
                if !matches!(group.stage, Stage::Heard { .. }) {
                    return;
                }
            } else if !same {
                self.observe_longer(group);
            }
            let Some(glance) = glance else { return };
            // Packets go on in the same rhythm: what was heard would be the same again.
            (compared.glance, compared.before, compared.passed) = (glance, None, 0);
            compared.most = (2 * compared.most).min(MOST_MULTIPLES);
        }
        group.looks_at = self.now + period;
        group.stage = Stage::Compared(compared);
    }
}
