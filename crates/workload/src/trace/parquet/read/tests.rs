use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

use super::*;
use crate::trace::CsvTrace;

/// A column to write: its values, and for each row whether it has one.
enum Data {
    I32(Vec<Option<i32>>),
    I64(Vec<Option<i64>>),
    F64(Vec<Option<f64>>),
    Text(Vec<Option<&'static str>>),
}

/// A file with a row group of each list of columns.
fn file(schema: &str, compression: Compression, groups: &[Vec<Data>]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(&format!("message flows {{ {schema} }}")).unwrap());
    let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
    let mut file = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    for columns in groups {
        let mut group = file.next_row_group().unwrap();
        for data in columns {
            let mut column = group.next_column().unwrap().unwrap();
            macro_rules! write {
                ($writer:expr, $values:expr, $convert:expr) => {{
                    let levels: Vec<i16> = $values.iter().map(|value| value.is_some().into()).collect();
                    let values: Vec<_> = $values.iter().flatten().map($convert).collect();
                    $writer.write_batch(&values, Some(&levels), None).unwrap();
                }};
            }
            match (column.untyped(), data) {
                (ColumnWriter::Int32ColumnWriter(writer), Data::I32(values)) => write!(writer, values, |value| *value),
                (ColumnWriter::Int64ColumnWriter(writer), Data::I64(values)) => write!(writer, values, |value| *value),
                (ColumnWriter::DoubleColumnWriter(writer), Data::F64(values)) => write!(writer, values, |value| *value),
                (ColumnWriter::ByteArrayColumnWriter(writer), Data::Text(values)) => {
                    write!(writer, values, |value| ByteArray::from(*value));
                }
                _ => panic!("schema and data differ"),
            }
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    file.into_inner().unwrap()
}

fn parse(content: Vec<u8>) -> Result<Trace, TraceError> {
    ParquetTrace { path: "flows.parquet".into(), class: None }.parse(content)
}

/// A page that unpacks to more than there may be, in a file of some kilobytes.
#[test]
fn a_small_file_that_unpacks_to_much_is_refused_before_it_is_unpacked() {
    let long: &'static str = "x".repeat(70 << 20).leak();
    let schema = "OPTIONAL INT64 src; OPTIONAL INT64 dst; OPTIONAL INT64 size_bytes; OPTIONAL INT64 start_ps; \
                  OPTIONAL BYTE_ARRAY class;";
    let columns = vec![whole(&[0]), whole(&[1]), whole(&[5]), whole(&[0]), Data::Text(vec![Some(long)])];
    let content = file(schema, Compression::ZSTD(ZstdLevel::default()), &[columns]);
    assert!(content.len() < 100_000, "{}", content.len());
    let of = |class: Option<&str>| ParquetTrace { path: "bomb.parquet".into(), class: class.map(str::to_owned) };
    let error = of(Some("web")).parse(content.clone()).unwrap_err().to_string();
    assert!(error.contains("class is \"734") && error.contains("bytes unpacked"), "{error}");
    assert!(error.ends_with("should be at most 67108864 in a page; write row group 1 with smaller pages"), "{error}");
    // Who asks for no class reads no classes.
    assert_eq!(of(None).parse(content).unwrap().flows().len(), 1);
}

#[test]
fn rows_are_bounded_as_they_are_read_and_not_as_they_are_kept() {
    let trace = ParquetTrace { path: "rows.parquet".into(), class: Some("web".into()) };
    trace.check_rows([60_000_000, 40_000_000].into_iter()).unwrap();
    let error = trace.check_rows([60_000_000, 40_000_001].into_iter()).unwrap_err().to_string();
    assert_eq!(error, "rows.parquet: rows is \"100000001\", but should be at most 100000000, of all classes");
    assert!(trace.check_rows([i64::MAX; 3].into_iter()).is_err() && trace.check_rows([-1].into_iter()).is_err());
}

fn whole(values: &[i64]) -> Data {
    Data::I64(values.iter().copied().map(Some).collect())
}

/// The content of a trace without its source.
fn said(trace: &Trace) -> Vec<(u32, u32, u64, u64)> {
    trace.flows().iter().map(|flow| (flow.src.0, flow.dst.0, flow.bytes, flow.start.ps())).collect()
}

const PLAIN: &str = "required int64 src; required int64 dst; required int64 size_bytes; required int64 start_ps;";

/// Two row groups with columns of all kinds in another order, some of them ignored.
fn mixed(compression: Compression) -> Vec<u8> {
    let schema = "optional binary class (utf8); optional int32 dst (uint_8); optional double start_us; \
                  required int32 src (uint_32); optional double fct_us; required int64 bytes (uint_64);";
    let group = |class: [&'static str; 2], dst: [i32; 2], start: [f64; 2], src: [i32; 2], bytes: [i64; 2]| {
        vec![
            Data::Text(class.map(Some).to_vec()),
            Data::I32(dst.map(Some).to_vec()),
            Data::F64(start.map(Some).to_vec()),
            Data::I32(src.map(Some).to_vec()),
            Data::F64(vec![None, Some(1.0)]),
            Data::I64(bytes.map(Some).to_vec()),
        ]
    };
    let groups = [
        group(["web", "rest"], [22, 2], [0.20978926, 1e3], [1, 3], [8760, 1]),
        group(["rest", "web"], [0, 5], [7.0, 0.0], [-1, 4], [1 << 60, 2]),
    ];
    file(schema, compression, &groups)
}

#[test]
fn a_file_says_the_same_as_its_csv() {
    let csv = "class,dst,start_us,src,fct_us,size_bytes\nweb,22,0.20978926,1,,8760\nrest,2,1e3,3,1,1\n\
               rest,0,7,4294967295,,1152921504606846976\nweb,5,0,4,1,2\n";
    for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(ZstdLevel::default())] {
        for class in [None, Some("web".to_owned())] {
            let text = CsvTrace { path: "flows.csv".into(), class: class.clone() }.parse(csv).unwrap();
            let read = ParquetTrace { path: "flows.parquet".into(), class }.parse(mixed(compression)).unwrap();
            assert_eq!(said(&read), said(&text));
        }
    }
    let rows: Vec<u32> = parse(mixed(Compression::SNAPPY)).unwrap().flows().iter().map(|flow| flow.line).collect();
    assert_eq!(rows, [1, 2, 3, 4], "rows are counted through all row groups");
}

#[test]
fn batches_end_where_row_groups_do() {
    let count = BATCH as i64 * 2 + 1;
    let column = |value: fn(i64) -> i64| whole(&(0..count).map(value).collect::<Vec<_>>());
    let group = || vec![column(|_| 0), column(|_| 1), column(|row| row + 1), column(|row| row * 3)];
    let trace = parse(file(PLAIN, Compression::SNAPPY, &[group(), group()])).unwrap();
    assert_eq!(trace.flows().len() as i64, 2 * count);
    assert!(trace.flows().iter().enumerate().all(|(row, flow)| flow.bytes == row as u64 % count as u64 + 1));
    assert_eq!(trace.flows().last().unwrap().line as i64, 2 * count);
}

#[test]
fn errors_name_file_row_and_column() {
    let with = |src: i64, dst: i64, size: i64, start: i64| {
        let columns = vec![whole(&[0, src]), whole(&[1, dst]), whole(&[9, size]), whole(&[0, start])];
        parse(file(PLAIN, Compression::SNAPPY, &[columns])).unwrap_err().to_string()
    };
    assert!(with(-1, 2, 3, 4).starts_with("flows.parquet, row 2: src is \"-1\", but should be a whole"));
    assert!(with(1 << 32, 2, 3, 4).starts_with("flows.parquet, row 2: src is \"4294967296\""));
    assert!(with(1, 2, -3, 4).starts_with("flows.parquet, row 2: size_bytes is \"-3\""));
    assert!(with(1, 2, 3, i64::MAX).starts_with("flows.parquet, row 2: start_ps is \"9223372036854775807\""));
    assert!(with(2, 2, 3, 4).starts_with("flows.parquet, row 2: dst is"));
    let csv = parse(b"src,dst,size_bytes,start_ps\n0,1,2,3\n".to_vec()).unwrap_err().to_string();
    assert!(csv.starts_with("flows.parquet: file is") && csv.contains("sound Parquet"), "{csv}");
}

#[test]
fn nulls_are_errors() {
    let schema = "optional int64 src; optional int64 dst; optional int64 bytes; optional int64 start_ps; \
                  optional binary class (utf8);";
    let with = |null: usize| {
        let mut columns: Vec<Data> =
            [0, 1, 9, 0].iter().map(|&value| Data::I64(vec![Some(value), Some(value)])).collect();
        columns.push(Data::Text(vec![Some("web"), Some("web")]));
        match &mut columns[null] {
            Data::I64(values) => values[1] = None,
            Data::Text(values) => values[1] = None,
            _ => unreachable!(),
        }
        let trace = ParquetTrace { path: "f".into(), class: Some("web".into()) };
        let error = trace.parse(file(schema, Compression::SNAPPY, &[columns])).unwrap_err();
        assert_eq!((error.line, error.value.as_str()), (2, "null"));
        (error.field, error.expected)
    };
    assert_eq!(with(0).0, "src");
    assert_eq!(with(1).0, "dst");
    assert_eq!(with(2).0, "bytes");
    let (field, expected) = with(3);
    assert!(field == "start_ps" && expected.contains("never started"), "{expected}");
    assert_eq!(with(4).0, "class");
}

#[test]
fn columns_are_of_types_that_can_be_read() {
    let error = |schema: &str| parse(file(schema, Compression::SNAPPY, &[])).unwrap_err().to_string();
    let time = error(&PLAIN.replace("start_ps;", "start_ps (timestamp(nanos, true));"));
    assert!(
        time.starts_with("flows.parquet: start_ps is \"Timestamp") && time.contains("integers or floats"),
        "{time}"
    );
    let text = error(&PLAIN.replace("int64 src", "binary src"));
    assert_eq!(text, "flows.parquet: src is \"BYTE_ARRAY\", but should be a column of integers");
    let list = error(&PLAIN.replace("required int64 dst", "repeated int64 dst"));
    assert_eq!(list, "flows.parquet: dst is \"a list\", but should be a column of integers");
    let missing = error(&PLAIN.replace("start_ps", "start"));
    assert!(missing.contains("src,dst,size_bytes,start\"") && missing.contains("start_ns"), "{missing}");
    let both = error(&format!("{PLAIN} required int64 bytes;"));
    assert!(both.contains("exactly one of size_bytes, bytes"), "{both}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_file_cut_short_is_an_error(cut in 0usize..10_000) {
        let whole = mixed(Compression::ZSTD(ZstdLevel::default()));
        let cut = cut % whole.len();
        prop_assert!(parse(whole[..cut].to_vec()).is_err());
    }

    #[test]
    fn no_damage_panics(
        flips in proptest::collection::vec((0usize..10_000, 1u8..), 1..4), compression in 0..3, class: bool,
    ) {
        let compressions = [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(ZstdLevel::default())];
        let mut content = mixed(compressions[compression as usize]);
        let length = content.len();
        for (at, flip) in flips {
            content[at % length] ^= flip;
        }
        let _ = ParquetTrace { path: "f".into(), class: class.then(|| "web".into()) }.parse(content);
    }
}
