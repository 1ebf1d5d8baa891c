use std::fmt;

/// An error in a scenario that its types can't express: the key, and what would be right.
///
/// `key` is the dotted path relative to the checker (`arrivals.poisson.load`, `flows[3].dst`). Each caller prefixes its
/// own part with [`Problem::under`], and the reader of the file turns the path into a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Dotted path of the wrong key.
    pub key: String,
    /// What is wrong with the value, and what would be right.
    pub message: String,
}

impl Problem {
    /// A problem with the value at `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { key: key.into(), message: message.into() }
    }

    /// The same problem with `outer` in front of its key.
    pub fn under(self, outer: impl fmt::Display) -> Problem {
        let key = match self.key.as_str() {
            "" => outer.to_string(),
            inner if inner.starts_with('[') => format!("{outer}{inner}"),
            inner => format!("{outer}.{inner}"),
        };
        Problem { key, ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

impl std::error::Error for Problem {}
