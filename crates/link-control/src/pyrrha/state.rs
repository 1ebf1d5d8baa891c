/// The state of an isolation queue for a congestion root: Figure 6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, node::State)]
pub enum State {
    /// Not assigned to a root.
    #[default]
    Unassigned,
    /// Its root is congested: packets wait.
    Paused,
    /// Its root has room: packets go on.
    Resumed,
    /// Its root was false: its packets drain, and then it is unassigned.
    SoftMerging,
}

/// The events that change the state of an isolation queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// PAUSE arrived.
    Pause,
    /// RESUME arrived.
    Resume,
    /// MERGE arrived, with its root as the old one.
    Merge,
    /// It is empty and a leaf of the congestion tree.
    Clear,
}

impl State {
    /// The state after a change. It stays the same where Figure 6 has no such arrow, for example when a frame arrives
    /// late.
    ///
    /// The figure does not say what a PAUSE does to a soft-merging queue, whose root has nominated itself again. Here
    /// it is paused again, so that its packets stay in order.
    pub const fn after(self, change: Change) -> State {
        match (self, change) {
            (_, Change::Pause) => State::Paused,
            (State::Paused, Change::Resume) => State::Resumed,
            (State::Paused | State::Resumed, Change::Merge) => State::SoftMerging,
            (State::Resumed | State::SoftMerging, Change::Clear) => State::Unassigned,
            (state, _) => state,
        }
    }

    /// Whether its packets may be sent.
    pub const fn open(self) -> bool {
        matches!(self, State::Resumed | State::SoftMerging)
    }
}
