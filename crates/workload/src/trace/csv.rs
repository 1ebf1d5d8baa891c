use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Place, Trace, TraceError};

/// A CSV of flows with a header line: `src`, `dst`, `size_bytes`, one of `start_s`, `start_ms`, `start_us`, `start_ns` and
/// `start_ps`, in any order; other columns are passed over, so that the results of other runs can be sent again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CsvTrace {
    /// Where it is, seen from the scenario.
    pub path: String,
    /// Only the rows with this in their column `class`; all rows if unset.
    pub class: Option<String>,
}

const STARTS: [(&str, f64); 5] =
    [("start_s", 1e12), ("start_ms", 1e9), ("start_us", 1e6), ("start_ns", 1e3), ("start_ps", 1.0)];

impl CsvTrace {
    /// Reads the file's text.
    pub fn parse(&self, text: &str) -> Result<Trace, TraceError> {
        let mut reader =
            csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| self.broken(&error))?.clone();
        let head = Place { file: &self.path, line: header.position().map_or(1, |p| p.line() as usize) };
        let found = || header.iter().collect::<Vec<_>>().join(",");
        let column = |name: &str| {
            let mut places = header.iter().enumerate().filter(|(_, title)| *title == name).map(|(index, _)| index);
            match (places.next(), places.next()) {
                (Some(place), None) => Ok(Some(place)),
                (Some(_), Some(_)) => Err(head.error("header", &found(), &format!("a header with one column {name}"))),
                (None, _) => Ok(None),
            }
        };
        let needed =
            |name: &str| column(name)?.ok_or_else(|| head.error("header", &found(), &format!("a header with {name}")));
        let (src, dst, size) = (needed("src")?, needed("dst")?, needed("size_bytes")?);
        let class = self.class.as_ref().map(|class| needed("class").map(|column| (column, class))).transpose()?;
        let mut starts = Vec::new();
        for (name, unit_ps) in STARTS {
            starts.extend(column(name)?.map(|column| (name, column, unit_ps)));
        }
        let [(start_name, start, unit_ps)] = starts[..] else {
            let expected = "a header with exactly one of start_s, start_ms, start_us, start_ns and start_ps";
            return Err(head.error("header", &found(), expected));
        };

        let mut flows = Vec::new();
        let mut row = csv::StringRecord::new();
        while reader.read_record(&mut row).map_err(|error| self.broken(&error))? {
            let place = Place { file: &self.path, line: row.position().map_or(0, |p| p.line() as usize) };
            if class.is_some_and(|(column, class)| row[column] != **class) {
                continue;
            }
            flows.push(place.flow(
                place.host("src", &row[src])?,
                place.host("dst", &row[dst])?,
                place.number("size_bytes", &row[size])?,
                place.time(start_name, &row[start], unit_ps)?,
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
mod tests {
    use units::{HostId, Time};

    use super::*;

    fn parse(text: &str) -> Result<Trace, TraceError> {
        CsvTrace { path: "flows.csv".into(), class: None }.parse(text)
    }

    #[test]
    fn columns_are_found_by_name() {
        let trace =
            parse("id,dst,src,start_us,size_bytes,fct_us\n7,22,1,0.20978926,8760,6.1\n8,3,2,1e3,1,2\n").unwrap();
        let [first, second] = trace.flows() else { panic!() };
        assert_eq!((first.src, first.dst, first.bytes), (HostId(1), HostId(22), 8760));
        assert_eq!((first.start, first.line), (Time::from_ps(209_789), 2));
        assert_eq!(second.start, Time::from_ms(1));
    }

    #[test]
    fn a_class_is_a_selection() {
        let text = "src,dst,size_bytes,start_ps,class\n0,1,5,0,incast\n1,2,5,0,rest\n";
        let trace = CsvTrace { path: "f".into(), class: Some("rest".into()) }.parse(text).unwrap();
        assert_eq!(trace.flows().iter().map(|flow| flow.src).collect::<Vec<_>>(), [HostId(1)]);
    }

    #[test]
    fn errors_name_line_and_field() {
        let error = parse("src,dst,size_bytes,start_ns\n0,1,10,5\n0,1,ten,5\n").unwrap_err();
        assert_eq!((error.line, error.field.as_str(), error.value.as_str()), (3, "size_bytes", "ten"));
        assert!(error.to_string().starts_with("flows.csv, line 3: size_bytes is \"ten\""), "{error}");
        assert_eq!(parse("src,dst,size_bytes,start_ns\n0,1,10,-5\n").unwrap_err().field, "start_ns");
        assert_eq!(parse("src,dst,size_bytes,start_ns\n4,4,10,5\n").unwrap_err().field, "dst");
        assert_eq!(parse("src,dst,size_bytes,start_ns\n0,1,10\n").unwrap_err().value, "3 fields");
        assert!(parse("src,dst,size_bytes\n").unwrap_err().expected.contains("start_us"));
        assert!(parse("src,dst,size_bytes,start_s,start_ns\n").unwrap_err().expected.contains("exactly one"));
        assert!(parse("").unwrap_err().expected.contains("src"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(src,dst,size_bytes,start_us\n)?([0-9a,.\"#\n-]{0,40})", any: String) {
            let _ = parse(&text);
            let _ = parse(&any);
        }

        #[test]
        fn what_is_written_is_read(flows in proptest::collection::vec((0u32..9, 10u32..19, 1u64.., 0u64..u64::MAX / 4), 0..9)) {
            let rows: String = flows.iter().map(|(s, d, b, t)| format!("{s},{d},{b},{t}\n")).collect();
            let trace = parse(&format!("src,dst,size_bytes,start_ps\n{rows}")).unwrap();
            let read: Vec<_> = trace.flows().iter().map(|f| (f.src.0, f.dst.0, f.bytes, f.start.ps())).collect();
            proptest::prop_assert_eq!(read, flows);
        }
    }
}
