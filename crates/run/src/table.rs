use std::collections::BTreeMap;

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

impl Data {
    /// Readers of dictionaries want each name once, and two classes of traffic may run one scheme with different
    /// settings.
    fn with_each_name_once(self) -> Data {
        let Data::Names { index, names } = self else { return self };
        let mut places: BTreeMap<&str, u32> = BTreeMap::new();
        let place_of: Vec<u32> = names
            .iter()
            .map(|name| {
                let next = places.len() as u32;
                *places.entry(name.as_str()).or_insert(next)
            })
            .collect();
        let count = places.len();
        drop(places);
        if count == names.len() {
            return Data::Names { index, names };
        }
        let mut once = vec![String::new(); count];
        for (name, &place) in names.iter().zip(&place_of) {
            once[place as usize].clone_from(name);
        }
        Data::Names { index: index.into_iter().map(|at| place_of[at as usize]).collect(), names: once }
    }
}

impl Column {
    /// A column.
    pub fn new(name: &'static str, unit: &'static str, doc: &'static str, data: Data) -> Column {
        Column { name, unit, doc, data: data.with_each_name_once() }
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
