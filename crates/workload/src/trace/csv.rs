use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::columns::Columns;
use super::{FieldContext, Trace, TraceError};

/// A CSV of flows with a header line: `src`, `dst`, `size_bytes` (or `bytes`, as in results) and one of `start_s`,
/// `start_ms`, `start_us`, `start_ns` and `start_ps`, in any order. Other columns are ignored, so that results of other
/// runs can be replayed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CsvTrace {
    /// Path of the file, relative to the scenario's folder.
    pub path: String,
    /// Takes only the rows with this value in the column `class`. Default: all rows.
    pub class: Option<String>,
}

impl CsvTrace {
    /// Reads the file's text.
    pub fn parse(&self, text: &str) -> Result<Trace, TraceError> {
        let mut reader =
            csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| self.broken(&error))?.clone();
        let head = FieldContext { file: &self.path, line: header.position().map_or(1, |p| p.line() as usize) };
        let titles: Vec<&str> = header.iter().collect();
        let Columns { src, dst, size, start, unit_ps, class } = Columns::find(&titles, self.class.is_some())
            .map_err(|expected| head.error("header", &Columns::known(&titles), &expected))?;
        let class = class.zip(self.class.as_ref());

        let mut flows = Vec::new();
        let mut row = csv::StringRecord::new();
        while reader.read_record(&mut row).map_err(|error| self.broken(&error))? {
            let place = FieldContext { file: &self.path, line: row.position().map_or(0, |p| p.line() as usize) };
            if class.is_some_and(|(column, class)| row[column.index] != **class) {
                continue;
            }
            flows.push(place.flow(
                place.host(src.name, &row[src.index])?,
                place.host(dst.name, &row[dst.index])?,
                place.number(size.name, &row[size.index])?,
                place.time(start.name, &row[start.index], unit_ps)?,
            ));
        }
        Trace::new(&self.path, flows)
    }

    fn broken(&self, error: &csv::Error) -> TraceError {
        let line = error.position().map_or(1, |position| position.line() as usize);
        let (value, expected) = match error.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                (format!("{len} fields"), format!("{expected_len} fields, as in the header"))
            }
            _ => (error.to_string(), "a CSV record".to_owned()),
        };
        TraceError::new(&self.path, line, "row", &value, &expected)
    }
}

#[cfg(test)]
mod tests;
