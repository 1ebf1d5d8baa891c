use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::columns::Columns;
use super::{Place, Trace, TraceError};

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
        let head = Place { file: &self.path, line: header.position().map_or(1, |p| p.line() as usize) };
        let titles: Vec<&str> = header.iter().collect();
        let Columns { src, dst, size, start, unit_ps, class } = Columns::find(&titles, self.class.is_some())
            .map_err(|expected| head.error("header", &Columns::known(&titles), &expected))?;
        let class = class.zip(self.class.as_ref());

        let mut flows = Vec::new();
        let mut row = csv::StringRecord::new();
        while reader.read_record(&mut row).map_err(|error| self.broken(&error))? {
            let place = Place { file: &self.path, line: row.position().map_or(0, |p| p.line() as usize) };
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
    fn sizes_may_be_called_as_in_results() {
        assert_eq!(parse("src,dst,bytes,start_ps\n0,1,5,0\n").unwrap().flows()[0].bytes, 5);
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
        let both = parse("src,dst,size_bytes,bytes,start_s\n").unwrap_err();
        assert!(both.expected.contains("exactly one of size_bytes, bytes"), "{both}");
        assert!(parse("").unwrap_err().expected.contains("src"));
    }

    #[test]
    fn an_error_says_nothing_of_a_file_that_is_no_table_of_flows() {
        let error = parse("root:*:19722:0:99999:7:::\ndaemon:*:19722\n").unwrap_err().to_string();
        assert!(!error.contains("root") && error.contains("without one of the columns"), "{error}");
        assert!(parse("src,dst,secret\n").unwrap_err().to_string().contains("\"src,dst\""));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(src,dst,size_bytes,start_us\n)?([0-9a,.\"#\n-]{0,40})", any: String) {
            let _ = parse(&text);
            let _ = parse(&any);
        }

        #[test]
        fn what_is_written_is_read(flows in proptest::collection::vec((0u32..9, 10u32..19, 1u64..,
            0u64..u64::MAX / 4), 0..9)) {
            let rows: String = flows.iter().map(|(s, d, b, t)| format!("{s},{d},{b},{t}\n")).collect();
            let trace = parse(&format!("src,dst,size_bytes,start_ps\n{rows}")).unwrap();
            let read: Vec<_> = trace.flows().iter().map(|f| (f.src.0, f.dst.0, f.bytes, f.start.ps())).collect();
            proptest::prop_assert_eq!(read, flows);
        }
    }
}
