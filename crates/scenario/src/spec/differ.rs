//! In which keys two scenarios differ.

use toml::Value;

use super::Scenario;
use super::read::join;

impl Scenario {
    /// The keys, such as `traffic[0].flows`, in which another scenario differs, every default filled in; of a table or
    /// an entry of a list that only one of them has, the key of the whole.
    pub fn differences(&self, other: &Scenario) -> Vec<String> {
        let read = |of: &Scenario| of.to_toml().parse::<toml::Table>().expect("it was just written");
        let mut keys = Vec::new();
        compare(&Value::Table(read(self)), &Value::Table(read(other)), &mut Vec::new(), &mut keys);
        keys
    }
}

fn compare(one: &Value, other: &Value, at: &mut Vec<String>, keys: &mut Vec<String>) {
    let mut below = |part: String, one: Option<&Value>, other: Option<&Value>| {
        at.push(part);
        match (one, other) {
            (Some(one), Some(other)) => compare(one, other, at, keys),
            _ => keys.push(join(at)),
        }
        at.pop();
    };
    match (one, other) {
        _ if one == other => {}
        (Value::Table(ones), Value::Table(others)) => {
            let names: std::collections::BTreeSet<&String> = ones.keys().chain(others.keys()).collect();
            names.into_iter().for_each(|name| below(name.clone(), ones.get(name), others.get(name)));
        }
        (Value::Array(ones), Value::Array(others)) if ones.iter().chain(others).all(Value::is_table) => {
            let count = ones.len().max(others.len());
            (0..count).for_each(|index| below(index.to_string(), ones.get(index), others.get(index)));
        }
        _ => keys.push(join(at)),
    }
}
