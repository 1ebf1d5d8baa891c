//! The reader, by Apache's own library.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};
use units::{HostId, Time};

use super::{ParquetTrace, pages};
use crate::trace::columns::{Column, Columns};
use crate::trace::{A_NUMBER, A_TIME, Trace, TraceError, TraceFlow, time_of_real, time_of_whole};

/// Most rows that are read.
const ROWS_MAX: u64 = crate::FLOWS_MAX;
/// Most bytes of a page, unpacked. Writers make pages of 1 MB; a page of each column that is read is in memory at once.
const PAGE_BYTES_MAX: u64 = 64 << 20;
/// Rows that are read at a time.
const BATCH: usize = 8192;

impl ParquetTrace {
    /// Parses the file's content.
    pub fn parse(&self, content: Vec<u8>) -> Result<Trace, TraceError> {
        let content = Bytes::from(content);
        let file = guarded(|| SerializedFileReader::new(content.clone())).map_err(|error| self.broken(0, &error))?;
        let schema = file.metadata().file_metadata().schema_descr();
        let columns = self.columns(schema)?;
        let mut needed = vec![columns.src, columns.dst, columns.size, columns.start];
        needed.extend(columns.class);

        self.check_rows(file.metadata().row_groups().iter().map(RowGroupMetaData::num_rows))?;
        self.check_pages(&content, file.metadata(), &needed)?;
        let mut flows = Vec::new();
        let mut rows = 0;
        for group in 0..file.num_row_groups() {
            let broken = |error: ParquetError| self.broken(rows + 1, &error);
            let group = guarded(|| file.get_row_group(group)).map_err(broken)?;
            let open = |column: &Column| guarded(|| Values::open(&*group, column.index));
            let mut readers = needed.iter().map(open).collect::<Result<Vec<_>, _>>().map_err(broken)?;
            let mut left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            while left > 0 {
                let batch = left.min(BATCH);
                let mut cells = Vec::new();
                for (column, reader) in needed.iter().zip(&mut readers) {
                    let read = guarded(|| reader.read(batch)).map_err(|error| self.broken(rows + 1, &error))?;
                    if read.len() != batch {
                        let expected = "as many rows as the file's metadata say; it may be damaged";
                        return Err(self.error(rows + read.len(), column.name, "at its end", expected));
                    }
                    cells.push(read);
                }
                for index in 0..batch {
                    rows += 1;
                    let row: Vec<&Cell> = cells.iter().map(|column| &column[index]).collect();
                    flows.extend(self.flow(rows, &columns, &row)?);
                }
                left -= batch;
            }
        }
        Trace::counted(&self.path, "row", flows)
    }

    /// A few bytes can encode any number of rows, and all are read, whichever are of the class.
    fn check_rows(&self, of_groups: impl Iterator<Item = i64>) -> Result<(), TraceError> {
        let rows = of_groups.map(|rows| u64::try_from(rows).unwrap_or(u64::MAX)).fold(0, u64::saturating_add);
        match rows > ROWS_MAX {
            true => Err(self.error(0, "rows", &rows.to_string(), &format!("at most {ROWS_MAX}, of all classes"))),
            false => Ok(()),
        }
    }

    /// A few bytes can unpack to any number: pages of the columns that are read are looked at before they are unpacked.
    fn check_pages(&self, content: &[u8], metadata: &ParquetMetaData, needed: &[Column]) -> Result<(), TraceError> {
        for (number, group) in (1..).zip(metadata.row_groups()) {
            for column in needed {
                let pages = || {
                    let (begin, length) = group.column(column.index).byte_range();
                    let end = usize::try_from(begin.checked_add(length)?).ok()?;
                    pages::largest(content.get(usize::try_from(begin).ok()?..end)?)
                };
                let largest = guarded(|| Ok(pages())).map_err(|error| self.broken(0, &error))?;
                let Some(largest) = largest else {
                    return Err(self.error(0, column.name, "no pages", "sound Parquet; it may be damaged"));
                };
                if largest > PAGE_BYTES_MAX {
                    let expected =
                        format!("at most {PAGE_BYTES_MAX} in a page; write row group {number} with smaller pages");
                    return Err(self.error(0, column.name, &format!("{largest} bytes unpacked"), &expected));
                }
            }
        }
        Ok(())
    }

    /// Finds the columns and checks that their types can be read.
    fn columns(&self, schema: &SchemaDescriptor) -> Result<Columns, TraceError> {
        let titles: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
        let columns = Columns::find(&titles, self.class.is_some())
            .map_err(|expected| self.error(0, "header", &titles.join(","), &expected))?;
        let check = |column: Column, sound: fn(&ColumnDescriptor) -> bool, expected: &str| {
            let found = schema.column(column.index);
            if found.max_rep_level() == 0 && found.max_def_level() <= 1 && sound(&found) {
                return Ok(());
            }
            let kind = match (found.max_rep_level(), found.logical_type_ref(), found.converted_type()) {
                (1.., ..) => "a list".to_owned(),
                (_, Some(kind), _) => format!("{kind:?}"),
                (_, None, ConvertedType::NONE) => found.physical_type().to_string(),
                (_, None, kind) => kind.to_string(),
            };
            Err(self.error(0, column.name, &kind, expected))
        };
        for column in [columns.src, columns.dst, columns.size] {
            check(column, is_whole, "a column of integers")?;
        }
        check(columns.start, |found| is_whole(found) || is_real(found), "a column of integers or floats")?;
        if let Some(class) = columns.class {
            check(class, |found| found.physical_type() == Type::BYTE_ARRAY, "a column of strings")?;
        }
        Ok(columns)
    }

    /// The flow of a row, if the row is of the class.
    fn flow(&self, row: usize, columns: &Columns, cells: &[&Cell]) -> Result<Option<TraceFlow>, TraceError> {
        if let (Some(column), Some(class)) = (columns.class, &self.class) {
            match cells[4] {
                Cell::Text(text) if text.data() == class.as_bytes() => {}
                Cell::Text(_) => return Ok(None),
                other => return Err(self.error(row, column.name, &other.to_string(), "the name of a class")),
            }
        }
        let host = |column, cell| self.number(row, column, cell).map(HostId);
        Ok(Some(TraceFlow {
            src: host(columns.src, cells[0])?,
            dst: host(columns.dst, cells[1])?,
            bytes: self.number(row, columns.size, cells[2])?,
            start: self.time(row, columns, cells[3])?,
            after: None,
            line: u32::try_from(row).unwrap_or(u32::MAX),
        }))
    }

    fn number<N: TryFrom<i128>>(&self, row: usize, column: Column, cell: &Cell) -> Result<N, TraceError> {
        let number = match cell {
            Cell::Whole(value) => N::try_from(*value).ok(),
            _ => None,
        };
        number.ok_or_else(|| self.error(row, column.name, &cell.to_string(), A_NUMBER))
    }

    fn time(&self, row: usize, columns: &Columns, cell: &Cell) -> Result<Time, TraceError> {
        let (time, expected) = match *cell {
            Cell::Whole(value) => {
                (u64::try_from(value).ok().and_then(|value| time_of_whole(value, columns.unit_ps)), A_TIME)
            }
            Cell::Real(value) => (time_of_real(value, columns.unit_ps), A_TIME),
            _ => (None, "a time; leave out flows that never started, for which results have no time"),
        };
        time.ok_or_else(|| self.error(row, columns.start.name, &cell.to_string(), expected))
    }

    fn broken(&self, row: usize, error: &ParquetError) -> TraceError {
        self.error(row, "file", &error.to_string(), "sound Parquet, uncompressed or by snappy or zstd")
    }

    fn error(&self, row: usize, field: &str, value: &str, expected: &str) -> TraceError {
        TraceError { unit: "row", ..TraceError::new(&self.path, row, field, value, expected) }
    }
}

/// Whether a column holds plain integers. Times, for example, are stored as integers too, but their unit may differ
/// from what the column's name says.
fn is_whole(column: &ColumnDescriptor) -> bool {
    use ConvertedType::{INT_8, INT_16, INT_32, INT_64, NONE, UINT_8, UINT_16, UINT_32, UINT_64};
    let plain = [NONE, INT_8, INT_16, INT_32, INT_64, UINT_8, UINT_16, UINT_32, UINT_64];
    matches!(column.physical_type(), Type::INT32 | Type::INT64)
        && matches!(column.logical_type_ref(), None | Some(LogicalType::Integer(_)))
        && plain.contains(&column.converted_type())
}

fn is_real(column: &ColumnDescriptor) -> bool {
    matches!(column.physical_type(), Type::FLOAT | Type::DOUBLE)
}

/// Runs the library's reader and catches its panics on damaged files, such as one whose page refers to a missing
/// dictionary. Nothing that it was reading is used afterwards.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(ParquetError::General("damaged".to_owned())))
}

/// One value of a column.
enum Cell {
    Null,
    Whole(i128),
    Real(f64),
    Text(ByteArray),
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cell::Null => f.write_str("null"),
            Cell::Whole(value) => value.fmt(f),
            Cell::Real(value) => value.fmt(f),
            Cell::Text(text) => String::from_utf8_lossy(text.data()).fmt(f),
        }
    }
}

/// The values of a column in one row group.
struct Values {
    reader: ColumnReader,
    unsigned: bool,
    nullable: bool,
}

impl Values {
    fn open(group: &dyn RowGroupReader, index: usize) -> Result<Values, ParquetError> {
        use ConvertedType::{UINT_8, UINT_16, UINT_32, UINT_64};
        let column = group.metadata().column(index).column_descr();
        let unsigned = [UINT_8, UINT_16, UINT_32, UINT_64].contains(&column.converted_type());
        Ok(Values { unsigned, nullable: column.max_def_level() > 0, reader: group.get_column_reader(index)? })
    }

    /// The next `count` values, or fewer at the end.
    fn read(&mut self, count: usize) -> Result<Vec<Cell>, ParquetError> {
        let Values { unsigned, nullable, .. } = *self;
        match &mut self.reader {
            ColumnReader::Int32ColumnReader(reader) => read(reader, count, nullable, |value| {
                Cell::Whole(if unsigned { value.cast_unsigned().into() } else { value.into() })
            }),
            ColumnReader::Int64ColumnReader(reader) => read(reader, count, nullable, |value| {
                Cell::Whole(if unsigned { value.cast_unsigned().into() } else { value.into() })
            }),
            ColumnReader::FloatColumnReader(reader) => read(reader, count, nullable, |value| Cell::Real(value.into())),
            ColumnReader::DoubleColumnReader(reader) => read(reader, count, nullable, Cell::Real),
            ColumnReader::ByteArrayColumnReader(reader) => read(reader, count, nullable, Cell::Text),
            _ => Err(ParquetError::General("a column of the type that the file's schema gives it".to_owned())),
        }
    }
}

fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    count: usize,
    nullable: bool,
    cell: impl Fn(T::T) -> Cell,
) -> Result<Vec<Cell>, ParquetError> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    reader.read_records(count, Some(&mut levels), None, &mut values)?;
    let mut values = values.into_iter().map(cell);
    if !nullable {
        return Ok(values.collect());
    }
    // Level 0 is a null, which has no value.
    Ok(levels.iter().map(|&level| if level == 0 { Cell::Null } else { values.next().unwrap_or(Cell::Null) }).collect())
}

#[cfg(test)]
mod tests;
