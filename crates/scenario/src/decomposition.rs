//! How `level = "links"` combines links that are simulated alone. No other level reads it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Problem;

/// How `level = "links"` combines links that are simulated alone; other levels do not read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DecompositionSpec {
    /// Which delay a flow has on each link of its path. Default: `own`.
    pub combine: Combine,
    /// How much links may differ of which one is simulated for all: in their load, and in the distributions of their
    /// flows' sizes and of the times between them (weighted mean absolute percentage error), as a share such as 0.1.
    /// Flows on links that are not simulated draw their delays, as under `combine = "drawn"`. Default: none, every
    /// link is simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<f64>,
}

/// Which delay a flow has on each link of its path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Combine {
    /// Its own, from the run of that link.
    #[default]
    Own,
    /// That of a random flow of about its size on that link, by packet: delays on the links of a path are independent
    /// then, as Parsimon has them.
    Drawn,
}

impl DecompositionSpec {
    /// Whether all of it is as without the table.
    pub fn is_default(&self) -> bool {
        *self == DecompositionSpec::default()
    }

    /// Checks what types can't express.
    pub fn check(&self) -> Result<(), Problem> {
        match self.cluster {
            Some(within) if !(within > 0.0 && within <= 1.0) => {
                let message = format!("{within} is not a share; write more than 0 and at most 1, such as 0.1");
                Err(Problem::new("decomposition.cluster", message))
            }
            _ => Ok(()),
        }
    }
}
