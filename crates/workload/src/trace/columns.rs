/// The possible start columns and their units in picoseconds.
const STARTS: [(&str, f64); 5] =
    [("start_s", 1e12), ("start_ms", 1e9), ("start_us", 1e6), ("start_ns", 1e3), ("start_ps", 1.0)];

/// A required column, by name and index.
#[derive(Clone, Copy)]
pub(super) struct Column {
    pub name: &'static str,
    pub index: usize,
}

/// The columns of a table of flows, in whatever format.
pub(super) struct Columns {
    pub src: Column,
    pub dst: Column,
    pub size: Column,
    pub start: Column,
    /// Unit of `start`.
    pub unit_ps: f64,
    /// Present only if asked for.
    pub class: Option<Column>,
}

impl Columns {
    /// The titles that are known, for errors. Other titles are not shown: the file may be any file, such as one with
    /// passwords, and errors go to logs.
    pub fn known(titles: &[&str]) -> String {
        let names = ["src", "dst", "size_bytes", "bytes", "class"].into_iter().chain(STARTS.map(|(name, _)| name));
        let known: Vec<&str> = names.filter(|name| titles.contains(name)).collect();
        if known.is_empty() { "without one of the columns".to_owned() } else { known.join(",") }
    }

    /// Finds the columns by their titles. The error says which titles are expected.
    pub fn find(titles: &[&str], class: bool) -> Result<Columns, String> {
        let one_of = |names: &[&'static str]| {
            let find =
                |&name| titles.iter().enumerate().filter(move |(_, title)| **title == name).map(move |at| (name, at.0));
            let mut found = names.iter().flat_map(find);
            match (found.next(), found.next()) {
                (Some((name, index)), None) => Ok(Column { name, index }),
                _ => Err(match names {
                    [name] => format!("columns with one {name}"),
                    _ => format!("columns with exactly one of {}", names.join(", ")),
                }),
            }
        };
        let (src, dst) = (one_of(&["src"])?, one_of(&["dst"])?);
        // Results call the column bytes.
        let size = one_of(&["size_bytes", "bytes"])?;
        let start = one_of(&STARTS.map(|(name, _)| name))?;
        Ok(Columns {
            src,
            dst,
            size,
            start,
            unit_ps: STARTS.iter().find(|(name, _)| *name == start.name).map_or(1.0, |(_, unit_ps)| *unit_ps),
            class: class.then(|| one_of(&["class"])).transpose()?,
        })
    }
}
