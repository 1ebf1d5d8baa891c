//! What all switches of a run are set to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Problem};

use crate::{EarlyDrop, MarkAt, Marking};

/// How a switch's memory is divided among its ports.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Buffer {
    /// A fixed share for each port. Under a flow control that counts what a switch holds (PFC, congestion isolation,
    /// CBFC), the classes that it keeps from losses share all of it, since a switch pauses no port for its queue alone;
    /// the share of a port limits the other classes.
    PerPort {
        /// Bytes for each port.
        bytes: Bytes,
    },
    /// One memory for all ports. A queue may grow to `alpha` times the free memory (dynamic thresholds, Choudhury and
    /// Hahne 1998).
    Shared {
        /// Bytes of the switch.
        bytes: Bytes,
        /// Share of the free memory that one queue may take. Default: no limit; preventing losses is then left to a
        /// flow control.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alpha: Option<f64>,
    },
}

impl Buffer {
    /// Bytes of the switch, or of each of its ports.
    pub const fn bytes(self) -> Bytes {
        match self {
            Buffer::PerPort { bytes } | Buffer::Shared { bytes, .. } => bytes,
        }
    }

    /// The most bytes that wait for one port.
    pub fn port_bytes_max(self) -> u64 {
        match self {
            // A queue grows until it is alpha times what is left.
            Buffer::Shared { bytes, alpha: Some(alpha) } => (bytes.get() as f64 * alpha / (1.0 + alpha)) as u64,
            Buffer::PerPort { bytes } | Buffer::Shared { bytes, alpha: None } => bytes.get(),
        }
    }
}

/// What happens to a packet that finds no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// The packet is dropped.
    TailDrop,
    /// The last packet of the port's least urgent class is dropped instead, if that class is less urgent (as dcPIM's
    /// authors simulate pFabric).
    PushOut,
    /// The payload is dropped; the headers go on at the highest priority (NDP's trimming).
    Trim,
}

/// The settings that all switches share, with defaults resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How memory is divided.
    pub buffer: Buffer,
    /// What happens when it is full.
    pub overflow: Overflow,
    /// Groups of classes that share one priority and are served in turn by bytes. A class in no group has a priority of
    /// its own, given by its number.
    pub levels: Vec<Vec<u8>>,
    /// By transport: when its packets are marked.
    pub marking: Vec<Option<Marking>>,
    /// When in its passage a packet is marked.
    pub mark_at: MarkAt,
    /// By transport: when its packets that are not ECN-capable are dropped early (RFC 3168 section 5). Empty if none
    /// ever are.
    pub early_drop: Vec<Option<EarlyDrop>>,
    /// Bytes of a packet whose payload has been trimmed.
    pub header_bytes: u16,
}

impl Settings {
    /// Checks what the types can't express. Keys are those under `[switch]`.
    pub fn check(&self) -> Result<(), Problem> {
        let room = match self.buffer {
            Buffer::PerPort { bytes } => bytes,
            Buffer::Shared { bytes, alpha } => {
                if let Some(alpha) = alpha
                    && !(alpha > 0.0 && alpha.is_finite())
                {
                    return Err(Problem::new("buffer.shared.alpha", format!("{alpha} is not a positive number")));
                }
                bytes
            }
        };
        let key = if matches!(self.buffer, Buffer::PerPort { .. }) { "per_port" } else { "shared" };
        if room.get() < 9_216 || room.get() > u64::from(u32::MAX) {
            let message = format!("{room} is not between 10KB and 4GB");
            return Err(Problem::new(format!("buffer.{key}.bytes"), message));
        }
        let mut seen = 0u8;
        for (index, classes) in self.levels.iter().enumerate() {
            for &class in classes {
                if class > 7 || seen >> class & 1 == 1 {
                    let message = format!("class {class} is not one of 0 to 7, or is in two levels");
                    return Err(Problem::new(format!("levels[{index}]"), message));
                }
                seen |= 1 << class;
            }
        }
        let early = self.early_drop.iter().flatten().map(|early| &early.at);
        for marking in self.marking.iter().flatten().chain(early) {
            if let Marking::Ramp { min, max, probability_max, .. } | Marking::GentleRamp { min, max, probability_max } =
                *marking
                && !(min < max && (0.0..=1.0).contains(&probability_max))
            {
                let message = "a ramp needs min < max and a probability_max from 0 to 1";
                return Err(Problem::new("marking.ramp", message));
            }
        }
        Ok(())
    }
}
