/// How much memory flows and jobs may take before they are made. Numbers by ids (flows, steps) are bounded anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Most bytes of all flows and jobs.
    pub bytes: u64,
    /// Bytes that a flow takes that has a row in results.
    pub flow_bytes: u64,
    /// How many messages of jobs have one.
    pub rows: u64,
    /// Bytes that another message of a job takes.
    pub unlisted_bytes: u64,
    /// Most steps of a job that is noted singly, if all its messages have rows.
    pub steps: u64,
    /// Bytes that a step of such a job takes.
    pub step_bytes: u64,
    /// Bytes that a step outside of rings takes, or a rank's part of a ring.
    pub kept_bytes: u64,
}

impl Room {
    /// As much as there may be.
    pub const ANY: Room = Room {
        bytes: u64::MAX,
        flow_bytes: 0,
        rows: u64::MAX,
        unlisted_bytes: 0,
        steps: u64::MAX,
        step_bytes: 0,
        kept_bytes: 0,
    };

    /// Most flows.
    pub(crate) fn flows(&self) -> u64 {
        self.bytes.checked_div(self.flow_bytes).unwrap_or(u64::MAX).min(crate::FLOWS_MAX)
    }

    /// The room beside this many flows.
    pub(crate) fn without_flows(self, flows: u64) -> Room {
        Room { bytes: self.bytes.saturating_sub(flows.saturating_mul(self.flow_bytes)), ..self }
    }

    /// The room beside a job.
    pub(crate) fn without_job(self, count: &job::Count) -> Room {
        let bytes = self.bytes.saturating_sub(self.of_job(count));
        Room { bytes, rows: self.rows.saturating_sub(count.leaving), ..self }
    }

    /// Bytes that a job takes.
    pub(crate) fn of_job(&self, count: &job::Count) -> u64 {
        let listed = count.leaving.min(self.rows);
        let singly = listed == count.leaving && count.steps <= self.steps;
        let parts = [
            (count.kept(), self.kept_bytes),
            (if singly { count.steps } else { 0 }, self.step_bytes),
            (listed, self.flow_bytes),
            (count.leaving - listed, self.unlisted_bytes),
        ];
        parts.iter().fold(0, |sum: u64, (number, bytes)| sum.saturating_add(number.saturating_mul(*bytes)))
    }
}

/// Bytes of memory as people say them.
pub fn in_words(bytes: u64) -> String {
    if bytes < 1_000_000_000 {
        return format!("{} MB", bytes.div_ceil(1_000_000));
    }
    format!("{:.1} GB", bytes as f64 / 1e9)
}
