//! Pauses of a receiver before it asks for an additional slot again, and before it tells a failure again.

use units::{Duration, Time};

use super::super::header::slot_name;
use super::super::params::Params;

/// How an active message asks for additional slots after refusals.
///
/// If the sender is full, the next one is asked for alone, after twice the pause of the refusal before: `retry_after`
/// at first, and at most the time for which an additional slot lasts. Slots that were asked for together and are
/// refused together count as one refusal. A refusal by a switch on the way says little of the next path that is drawn:
/// K of them without a slot between count as one.
#[derive(Clone, Copy, Default, node::State)]
pub(super) struct Backoff {
    /// The pause after the last refusal; 0 if none came since an additional slot was granted.
    pub pause: Duration,
    /// When the pause is over.
    #[state(expired)]
    pub until: Time,
    /// Slots are asked for one at a time.
    pub alone: bool,
    /// Refusals that have not yet doubled the pause.
    pub refusals: u32,
}

/// How a failure is told again.
#[derive(Clone, Copy, Default, node::State)]
#[state(given(Params))]
pub(super) struct Lost {
    /// How long the message is kept.
    #[state(expired)]
    pub until: Time,
    /// The time before the failure is told again.
    pub pause: Duration,
    /// The slot by which data of the failed attempt have come since it was last told, and the route against them.
    #[state(each((turn_at(given.site.host.0, slot_name(*part_0)), _)))]
    pub over: Option<(u32, u64)>,
}

impl Backoff {
    /// A slot that was given then is refused. `full`: by its sender or for its link; `telling`: no other of its message
    /// has been since it was given.
    pub fn add(&mut self, now: Time, given: Time, full: bool, telling: bool, params: &Params) {
        self.alone = full;
        self.refusals += match full {
            true if telling => params.slots,
            true => 0,
            false => 1,
        };
        if self.refusals >= params.slots {
            (self.pause, self.refusals) = (self.pause * 2, 0);
        }
        self.pause = self.pause.clamp(params.retry_after, params.pause_max);
        self.until = now.max(self.until.max(given + self.pause));
    }
}
