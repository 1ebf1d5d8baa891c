/// A table of results, column by column.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name, which is its file's too.
    pub name: &'static str,
    /// Its columns, all equally long.
    pub columns: Vec<Column>,
}

/// A column of a [`Table`].
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name; a quantity's name ends in its unit.
    pub name: &'static str,
    /// Its unit, empty for a plain number or name.
    pub unit: &'static str,
    /// What it says.
    pub doc: &'static str,
    /// The values.
    pub data: Data,
}

/// The values of a [`Column`].
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Counts and times.
    U64(Vec<u64>),
    /// The same, with `u64::MAX` for "not so".
    OptU64(Vec<u64>),
    /// Ids.
    U32(Vec<u32>),
    /// Ratios, with NaN for "not so".
    F64(Vec<f64>),
    /// Whether something is so.
    Bool(Vec<bool>),
    /// Names, by index.
    Names {
        /// Per row, which name.
        index: Vec<u32>,
        /// The names.
        names: Vec<String>,
    },
}

impl Column {
    /// A column.
    pub fn new(name: &'static str, unit: &'static str, doc: &'static str, data: Data) -> Column {
        Column { name, unit, doc, data }
    }
}

impl Data {
    /// How many values.
    pub fn len(&self) -> usize {
        match self {
            Data::U64(values) | Data::OptU64(values) => values.len(),
            Data::U32(values) => values.len(),
            Data::F64(values) => values.len(),
            Data::Bool(values) => values.len(),
            Data::Names { index, .. } => index.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Table {
    /// Rows.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |column| column.data.len())
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}
