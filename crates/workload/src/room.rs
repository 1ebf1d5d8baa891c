/// How much memory flows and jobs may take before they are made. Numbers by ids (flows, steps) are bounded anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Most bytes of all flows and steps.
    pub bytes: u64,
    /// Bytes that a flow takes.
    pub flow_bytes: u64,
    /// Bytes that a step of a job takes.
    pub step_bytes: u64,
}

impl Room {
    /// As much as there may be.
    pub const ANY: Room = Room { bytes: u64::MAX, flow_bytes: 0, step_bytes: 0 };

    /// Most flows.
    pub(crate) fn flows(&self) -> u64 {
        self.bytes.checked_div(self.flow_bytes).unwrap_or(u64::MAX).min(crate::FLOWS_MAX)
    }

    /// The room beside this many flows.
    pub(crate) fn without_flows(self, flows: u64) -> Room {
        Room { bytes: self.bytes.saturating_sub(flows.saturating_mul(self.flow_bytes)), ..self }
    }

    /// Bytes that a job takes.
    pub(crate) fn of_job(&self, count: &job::Count) -> u64 {
        let flows = count.leaving.saturating_mul(self.flow_bytes);
        count.steps.saturating_mul(self.step_bytes).saturating_add(flows)
    }
}

/// Bytes of memory as people say them.
pub fn in_words(bytes: u64) -> String {
    if bytes < 1_000_000_000 {
        return format!("{} MB", bytes.div_ceil(1_000_000));
    }
    format!("{:.1} GB", bytes as f64 / 1e9)
}
