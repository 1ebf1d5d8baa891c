use units::Problem;

/// "There is no X; did you mean Y?"
pub(crate) fn unknown<S: AsRef<str>>(what: &str, name: &str, known: &[S]) -> Problem {
    let likeness = |candidate: &&S| (strsim::jaro_winkler(name, candidate.as_ref()) * 1e6) as u64;
    let advice = match known.iter().max_by_key(likeness) {
        Some(nearest) => format!("; did you mean \"{}\"?", nearest.as_ref()),
        None => String::new(),
    };
    Problem::new("", format!("there is no {what} \"{name}\"{advice}"))
}
