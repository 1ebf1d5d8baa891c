use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// Zstd, by which results are compressed, is C: WebAssembly has none of it.
#[cfg(not(target_family = "wasm"))]
mod pages;
#[cfg(not(target_family = "wasm"))]
mod read;

/// A Parquet file of flows, uncompressed or compressed by snappy or zstd, with the columns of a CSV trace: `src`, `dst`
/// and `size_bytes` (or `bytes`, as in results) of any integer type, and one of `start_s`, `start_ms`, `start_us`,
/// `start_ns` and `start_ps`, integers or floats. Other columns are ignored, so that the `flows.parquet` of a result
/// can be replayed. Nulls are errors: a flow of a result that never started has no `start_ps`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParquetTrace {
    /// Path of the file, relative to the scenario's folder.
    pub path: String,
    /// Takes only the rows with this value in the column `class`. Default: all rows.
    pub class: Option<String>,
}

#[cfg(target_family = "wasm")]
impl ParquetTrace {
    /// Refuses the file.
    pub fn parse(&self, _: Vec<u8>) -> Result<super::Trace, super::TraceError> {
        let expected = "CSV, HPCC's flow.txt or htsim's matrix in a browser; the clearway command reads Parquet";
        Err(super::TraceError::new(&self.path, 0, "file", "Parquet", expected))
    }
}
