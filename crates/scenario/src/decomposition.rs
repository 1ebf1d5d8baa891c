//! How `level = "links"` combines links that are simulated alone. No other level reads it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How `level = "links"` combines links that are simulated alone; other levels do not read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DecompositionSpec {
    /// Most links of each kind that are simulated: links of the same rate and length, at the same place on their flows'
    /// paths, whose loads are within a factor of two. Flows on other links draw their delays from flows of about their
    /// size on these. With a number as large as the network's links, each is simulated.
    #[schemars(range(min = 1))]
    pub sample: u32,
}

impl Default for DecompositionSpec {
    fn default() -> DecompositionSpec {
        DecompositionSpec { sample: 8 }
    }
}

impl DecompositionSpec {
    /// Whether all of it is as without the table.
    pub fn is_default(&self) -> bool {
        *self == DecompositionSpec::default()
    }
}
