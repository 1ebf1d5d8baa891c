use units::Time;

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time by the run's clock.
    pub now: Time,
    /// When the run ends at the latest.
    pub horizon: Time,
    /// Flows that have ended.
    pub flows_done: u64,
    /// Flows in all.
    pub flows: u64,
}
