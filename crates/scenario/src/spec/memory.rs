//! The memory of switches as a scenario says it: by port, shared, or as boxes with a certain chip have it.
//!
//! Sizes by chip are those that SONiC configures: the largest pool of packets in `sonic-buildimage` (commit 086b03bd,
//! folder `device`) for boxes with the chip. Vendors' sheets say somewhat more, since a chip keeps some for itself.
//! Absent are chips without a size there, and chips with packets in memory outside of the chip.

use node::Buffer;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use units::Bytes;

/// How a switch's memory is divided among ports and classes.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum MemorySpec {
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
        #[serde(default)]
        alpha: Option<f64>,
    },
    /// Shared, 12,766,208 bytes as boxes with Broadcom's Trident 2 have (SONiC, inventec/INVENTEC-D7032Q28B-C32).
    Trident2,
    /// Shared, 32,744,448 bytes as boxes with Broadcom's Trident 3 have (SONiC, dell/DellEMC-S5248f-P-25G).
    Trident3,
    /// Shared, 15,982,720 bytes as boxes with Broadcom's Tomahawk have (SONiC, common/profiles/th/6100).
    Tomahawk,
    /// Shared, 43,481,152 bytes as boxes with Broadcom's Tomahawk 2 have (SONiC, common/profiles/th2/7260).
    Tomahawk2,
    /// Shared, 66,394,076 bytes as boxes with Broadcom's Tomahawk 3 have (SONiC, dell/DellEMC-Z9332f-O32).
    Tomahawk3,
    /// Shared, 113,620,296 bytes as boxes with Broadcom's Tomahawk 4 have (SONiC, dell/DellEMC-Z9664f-O64).
    Tomahawk4,
    /// Shared, 166,607,744 bytes as boxes with Broadcom's Tomahawk 5 have (SONiC, arista/Arista-7060X6-64PE-C256S2).
    Tomahawk5,
    /// Shared, 13,945,824 bytes as boxes with NVIDIA's Spectrum have (SONiC, mellanox/Mellanox-SN2700-D48C8).
    Spectrum,
    /// Shared, 34,287,552 bytes as boxes with NVIDIA's Spectrum-2 have (SONiC, mellanox/Mellanox-SN3800-D112C8).
    Spectrum2,
    /// Shared, 60,817,392 bytes as boxes with NVIDIA's Spectrum-3 have (SONiC, mellanox/Mellanox-SN4700-V64).
    Spectrum3,
    /// Shared, 158,229,504 bytes as boxes with NVIDIA's Spectrum-4 have (SONiC, mellanox/Mellanox-SN5610N-C224O8).
    Spectrum4,
}

impl From<MemorySpec> for Buffer {
    fn from(spec: MemorySpec) -> Buffer {
        let bytes = match spec {
            MemorySpec::PerPort { bytes } => return Buffer::PerPort { bytes },
            MemorySpec::Shared { bytes, alpha } => return Buffer::Shared { bytes, alpha },
            MemorySpec::Trident2 => 12_766_208,
            MemorySpec::Trident3 => 32_744_448,
            MemorySpec::Tomahawk => 15_982_720,
            MemorySpec::Tomahawk2 => 43_481_152,
            MemorySpec::Tomahawk3 => 66_394_076,
            MemorySpec::Tomahawk4 => 113_620_296,
            MemorySpec::Tomahawk5 => 166_607_744,
            MemorySpec::Spectrum => 13_945_824,
            MemorySpec::Spectrum2 => 34_287_552,
            MemorySpec::Spectrum3 => 60_817_392,
            MemorySpec::Spectrum4 => 158_229_504,
        };
        Buffer::Shared { bytes: Bytes(bytes), alpha: None }
    }
}

/// Reads a switch's memory, of which a run knows bytes alone.
pub(super) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Buffer, D::Error> {
    MemorySpec::deserialize(from).map(Buffer::from)
}
