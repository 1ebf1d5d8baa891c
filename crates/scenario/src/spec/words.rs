//! The parser's messages in the words of a person who writes TOML.

use toml_edit::{Document, Item};

use super::read::{join, line_of, places, split};

/// Rewords the parser's message, with the nearest known name for an unknown one.
pub(super) fn advise(message: &str) -> String {
    let message = message.trim();
    if message.starts_with("wanted exactly 1 element") {
        return "needs exactly one key, such as share = { weight = 1 }; to replace it with --set, set the whole table, \
                such as --set KEY='{ absolute = \"5Gbps\" }'"
            .to_owned();
    }
    if let Some((given, wanted)) = of_another_type(message) {
        return format!("expected {}, not {}", in_toml(wanted), shown(given)).replace('`', "\"");
    }
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (what, unknown, known) = match (&quoted[..], message.strip_prefix("unexpected keys in table: ")) {
        ([unknown, known @ ..], _) if message.starts_with("unknown field") => ("key", *unknown, known.to_vec()),
        ([unknown, known @ ..], _) if message.starts_with("unknown variant") => ("name", *unknown, known.to_vec()),
        // The wording for an unknown key in the table of a choice.
        (_, Some(lists)) => match lists.split_once(", available keys: ") {
            Some((unknown, known)) => {
                ("key", unknown.split(", ").next().unwrap_or(unknown), known.split(", ").collect())
            }
            None => return message.to_owned(),
        },
        _ => return message.replace('`', "\""),
    };
    let hint = match (in_its_table(unknown, &known), nearest(unknown, &known)) {
        (Some(table), _) => format!("; did you mean {table}?"),
        (None, Some(name)) => format!("; did you mean \"{name}\"?"),
        (None, None) => String::new(),
    };
    format!("\"{unknown}\" is not a known {what} here{hint} Known: {}", known.join(", "))
        .replace("here Known", "here. Known")
}

/// A plain size where a name stands, such as `sizes = "32MB"`, as the table that was meant.
fn in_its_table(unknown: &str, known: &[&str]) -> Option<String> {
    let is_size = unknown.starts_with(|first: char| first.is_ascii_digit());
    let (before, after) = [("constant", "{ constant = ", " }"), ("per_port", "{ per_port = { bytes = ", " } }")]
        .into_iter()
        .find_map(|(name, before, after)| known.contains(&name).then_some((before, after)))?;
    is_size.then(|| format!("{before}\"{unknown}\"{after}"))
}

/// The known name that is most like a text, if one is like it. Capitals and the kind of hyphen don't count.
fn nearest<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |name: &str| name.to_ascii_lowercase().replace(['-', ' '], "_");
    let distance = |name: &str| strsim::damerau_levenshtein(&plain(unknown), &plain(name));
    let best = known.iter().map(|name| (distance(name), *name)).min();
    best.filter(|(distance, name)| *distance <= 1 + name.len().max(unknown.len()) / 3).map(|(_, name)| name)
}

/// The two halves of a message on a value of a wrong type: the given value, and the wanted type.
fn of_another_type(message: &str) -> Option<(&str, &str)> {
    let rest = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "))?;
    rest.rsplit_once(", expected ")
}

/// A type of Rust in terms of TOML. Other words are the field's own.
fn in_toml(wanted: &str) -> &str {
    match wanted {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65,535",
        "u32" => "a whole number from 0 to 4,294,967,295",
        "u64" | "usize" => "a whole number from 0 to 9,223,372,036,854,775,807",
        "i64" => "a whole number from -9,223,372,036,854,775,808 to 9,223,372,036,854,775,807",
        "f64" | "f32" => "a number",
        "a boolean" => "true or false",
        "a string" | "string" | "a borrowed string" => "a text in quotes",
        "a sequence" => "a list; each entry of a list of tables begins with [[its name in double brackets]]",
        "a map" => "a table, such as { key = value }",
        "enum" | "string only" | "variant identifier" => {
            "a name in quotes, or a table with one name, such as { name = { key = value } }"
        }
        other if other.starts_with("struct ") => "a table of keys, such as { key = value }",
        other if other.starts_with("tuple ") || other.starts_with("an array of length") => "a list of that length",
        other => other,
    }
}

/// A value as the message has it, in terms of TOML.
fn shown(given: &str) -> String {
    let kinds = [
        ("integer ", "the number "),
        ("floating point ", "the number "),
        ("string ", "the text "),
        ("boolean ", "the value "),
    ];
    for (kind, words) in kinds {
        if let Some(value) = given.strip_prefix(kind) {
            return format!("{words}{}", value.replace('`', ""));
        }
    }
    match given {
        "map" => "a table".to_owned(),
        "sequence" => "a list".to_owned(),
        "unit variant" | "newtype variant" | "unit value" => "a value without a name".to_owned(),
        other => other.to_owned(),
    }
}

/// Where a text gives one place two meanings: the key, and the line that stands there already. `line` is that of the
/// parser's error.
pub(super) fn collision(text: &str, line: usize, message: &str) -> Option<(String, String)> {
    if message != "duplicate key" && !message.starts_with("cannot extend value") {
        return None;
    }
    let lines: Vec<&str> = text.lines().collect();
    let here = lines.get(line - 1)?.trim();
    let header = |line: &str| {
        let inner = line.trim().strip_prefix('[')?;
        let is_list = inner.starts_with('[');
        Some((split(inner.trim_start_matches('[').split(']').next()?), is_list))
    };
    let path = match header(here) {
        Some((path, _)) => path,
        None => {
            let above = lines[..line - 1].iter().rev().find_map(|line| header(line));
            let (mut path, is_list) = above.unwrap_or_default();
            if is_list {
                // Keys of an entry are counted in the last entry of its list.
                let before = places(&lines[..line - 1].join("\n"));
                let entries = before.iter().filter(|(key, _)| key.len() == path.len() + 1 && key.starts_with(&path));
                path.extend(
                    entries.filter_map(|(key, _)| key.last()?.parse::<usize>().ok()).max().map(|last| last.to_string()),
                );
            }
            path.extend(split(here.split('=').next()?.trim()));
            path
        }
    };
    // All before the line parses: the line is the first that can't stand.
    let before = lines[..line - 1].join("\n");
    let known = places(&before);
    let (length, span) = (1..=path.len()).rev().find_map(|length| {
        let place = known.iter().find(|(key, _)| key[..] == path[..length])?;
        Some((length, place.1.clone()))
    })?;
    let (stands, first) = (join(&path[..length]), line_of(&before, span.start));
    let words = lines.get(first - 1)?.split('#').next()?.trim();
    let is_value = value_at(&before, &path[..length]);
    let advice = if is_value && length < path.len() {
        format!("a value has no keys; delete one of the two, or write {stands} = {{ ... }} once")
    } else if is_value {
        "delete one of the two".to_owned()
    } else {
        "write all its keys in one place".to_owned()
    };
    Some((join(&path), format!("line {first} has {stands} already: {words}; {advice}")))
}

/// True if a plain value stands at a key, and no table.
fn value_at(text: &str, key: &[String]) -> bool {
    let Ok(document) = Document::parse(text) else { return false };
    let mut at: &Item = document.as_item();
    for part in key {
        let next = match part.parse::<usize>() {
            Ok(index) => at.get(index),
            Err(_) => at.get(part.as_str()),
        };
        let Some(next) = next else { return false };
        at = next;
    }
    !at.is_table_like() && !at.is_array_of_tables()
}

/// The name that a set key would stand beside, where only one of several may be chosen: the key of the choice, the name
/// that the scenario has, and the one that was set.
pub(super) fn beside(written: &toml::Value, key: &str) -> Option<(String, String, String)> {
    let parts = split(key);
    let mut at = written;
    for (depth, part) in parts.iter().enumerate() {
        if let Some(table) = at.as_table()
            && let [only] = table.keys().collect::<Vec<_>>()[..]
            && only != part
            && depth > 0
        {
            return Some((join(&parts[..depth]), only.clone(), part.clone()));
        }
        at = match (at, part.parse::<usize>()) {
            (toml::Value::Array(entries), Ok(index)) => entries.get(index)?,
            (at, _) => at.get(part.as_str())?,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_message_has_a_type_of_rust() {
        let says = |message: &str, words: &str| assert_eq!(advise(message), words);
        says(
            "invalid type: integer `3`, expected struct Config",
            "expected a table of keys, such as { key = value }, not the number 3",
        );
        says("invalid type: string \"x\", expected u8", "expected a whole number from 0 to 255, not the text \"x\"");
        says("invalid type: boolean `true`, expected f64", "expected a number, not the value true");
        says(
            "invalid type: map, expected a sequence",
            "expected a list; each entry of a list of tables begins with [[its name in double brackets]], not a table",
        );
        assert!(advise("invalid type: map, expected enum").contains("a name in quotes"));
    }

    #[test]
    fn a_size_without_its_name_is_shown_in_its_table() {
        let message = "unknown variant `32MB`, expected `websearch` or `constant`";
        assert!(advise(message).contains("did you mean { constant = \"32MB\" }?"), "{}", advise(message));
        let message = "unknown variant `1MB`, expected `per_port` or `shared`";
        assert!(advise(message).contains("did you mean { per_port = { bytes = \"1MB\" } }?"), "{}", advise(message));
        assert!(!advise("unknown variant `32MB`, expected `ecmp` or `spray`").contains("did you mean"));
    }

    #[test]
    fn capitals_do_not_hide_a_name() {
        let meant = |unknown: &str| nearest(unknown, &["dctcp", "per_flow_queues", "pfc"]);
        assert_eq!(
            [meant("DCTCP"), meant("PFC"), meant("Per-Flow-Queues")],
            [Some("dctcp"), Some("pfc"), Some("per_flow_queues")]
        );
        assert_eq!(meant("something"), None);
    }

    #[test]
    fn two_meanings_of_a_place_name_the_first() {
        let says = |text: &str, line: usize, message: &str| collision(text, line, message).unwrap();
        let extend = "cannot extend value of type string with a dotted key";
        let (key, words) = says("transport = \"dctcp\" # so\ntransport.dcpim.rounds = 3\n", 2, extend);
        assert_eq!(key, "transport.dcpim.rounds");
        assert!(
            words.starts_with("line 1 has transport already: transport = \"dctcp\"; a value has no keys"),
            "{words}"
        );
        let (key, words) = says("[a.b]\nc = 1\n\n[a.b]\nd = 2\n", 4, "duplicate key");
        assert_eq!(
            (key.as_str(), words.as_str()),
            ("a.b", "line 1 has a.b already: [a.b]; write all its keys in one place")
        );
        let (key, words) = says("[[t]]\nx = 1\n[[t]]\nx = 2\nx = 3\n", 5, "duplicate key");
        assert_eq!(
            (key.as_str(), words.as_str()),
            ("t[1].x", "line 4 has t[1].x already: x = 2; delete one of the two")
        );
        assert_eq!(collision("a = 1\n", 1, "expected a value"), None);
    }

    #[test]
    fn a_second_choice_names_the_first() {
        let written: toml::Value = "fabric = { leaf_spine = { racks = 2 } }".parse::<toml::Table>().unwrap().into();
        let found = beside(&written, "fabric.star.hosts").unwrap();
        assert_eq!(found, ("fabric".to_owned(), "leaf_spine".to_owned(), "star".to_owned()));
        assert_eq!(beside(&written, "seed"), None);
    }
}
