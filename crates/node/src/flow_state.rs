use units::Rate;

/// The state that a host's transport keeps for a flow: names and values.
///
/// The three words that all papers share have methods; other values have the paper's name, which ends in the unit
/// unless it is a number of things. A name is said once.
#[derive(Clone, Debug, Default, PartialEq, Eq, crate::Saved)]
pub struct FlowState {
    said: Vec<(&'static str, u64)>,
}

impl FlowState {
    /// How much may be in flight.
    pub fn window_bytes(&mut self, bytes: u64) {
        self.say("window_bytes", bytes);
    }

    /// The rate at which it may send, headers included.
    pub fn rate(&mut self, rate: Rate) {
        self.say("rate_bps", rate.bps());
    }

    /// Bytes in flight, as far as this host knows.
    pub fn outstanding_bytes(&mut self, bytes: u64) {
        self.say("outstanding_bytes", bytes);
    }

    /// Something else that the paper has a word for.
    pub fn say(&mut self, name: &'static str, value: u64) {
        debug_assert!(self.of(name).is_none(), "{name} is said twice");
        self.said.push((name, value));
    }

    /// All that was said, in its order.
    pub fn said(&self) -> &[(&'static str, u64)] {
        &self.said
    }

    /// The value of this name.
    pub fn of(&self, name: &str) -> Option<u64> {
        self.said.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// Forgets all, for the next flow.
    pub fn clear(&mut self) {
        self.said.clear();
    }
}
