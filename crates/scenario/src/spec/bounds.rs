//! Least and most values of keys, as the schema states them: one walk over a scenario checks them all, defaults too.
//!
//! A number has JSON Schema's own `minimum` and `maximum`. A quantity with a unit has `x-least` and `x-most`,
//! quantities themselves, and `x-zero` if 0 is possible as well and means "never" or "at once". They stand beside a
//! key's type in the struct that holds it: `#[schemars(extend("x-least" = "1us"))]`. Every time is [`LONGEST`] at most.

use std::sync::OnceLock;

use schemars::schema_for;
use serde_json::{Map, Value};
use units::{Duration, Problem, Time};

use super::Scenario;

/// The longest time of any key, 106 days: twice as long still fits a `u64`.
pub(super) const LONGEST: Duration = Duration::from_ps(u64::MAX / 2);

/// The time that stands for "never".
const NEVER: u64 = u64::MAX;

type Object = Map<String, Value>;

/// The first key whose value is out of its bounds.
pub(super) fn check(scenario: &Scenario) -> Result<(), Problem> {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    let schema = SCHEMA.get_or_init(|| serde_json::to_value(schema_for!(Scenario)).expect("a schema is JSON"));
    let value = serde_json::to_value(scenario).expect("a scenario is plain data");
    Walk { types: &schema["$defs"] }.at(schema, &value, &mut Limits::default(), "")
}

/// Bounds that a key's own place in the schema states; its type may add others.
#[derive(Clone, Copy, Default)]
struct Limits<'a> {
    least: Option<&'a str>,
    most: Option<&'a str>,
    zero: bool,
}

struct Walk<'a> {
    types: &'a Value,
}

impl<'a> Walk<'a> {
    fn at(&self, schema: &'a Value, value: &Value, limits: &mut Limits<'a>, key: &str) -> Result<(), Problem> {
        let Some(schema) = schema.as_object() else { return Ok(()) };
        let text = |name| schema.get(name).and_then(Value::as_str);
        limits.least = limits.least.or(text("x-least"));
        limits.most = limits.most.or(text("x-most"));
        limits.zero |= schema.get("x-zero").is_some_and(|zero| *zero == Value::Bool(true));
        if let Some(name) = text("$ref").and_then(|name| name.rsplit('/').next()) {
            if matches!(name, "Duration" | "Time") {
                return self.time(value, *limits, key);
            }
            self.at(&self.types[name], value, &mut limits.clone(), key)?;
        }
        for choices in ["oneOf", "anyOf", "allOf"].iter().filter_map(|name| schema.get(*name)?.as_array()) {
            for choice in choices.iter().filter(|choice| self.may_be(choice, value)) {
                self.at(choice, value, &mut limits.clone(), key)?;
            }
        }
        self.number(schema, value, key)?;
        self.inside(schema, value, key)
    }

    /// The parts of a table or a list.
    fn inside(&self, schema: &'a Object, value: &Value, key: &str) -> Result<(), Problem> {
        match value {
            Value::Object(table) => {
                let known = schema.get("properties").and_then(Value::as_object);
                for (name, inner) in table {
                    let of = known.and_then(|known| known.get(name)).or(schema.get("additionalProperties"));
                    let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                    of.map_or(Ok(()), |of| self.at(of, inner, &mut Limits::default(), &key))?;
                }
                Ok(())
            }
            Value::Array(list) => {
                let Some(items) = schema.get("items") else { return Ok(()) };
                let one = |(index, inner): (usize, &Value)| {
                    self.at(items, inner, &mut Limits::default(), &format!("{key}[{index}]"))
                };
                list.iter().enumerate().try_for_each(one)
            }
            _ => Ok(()),
        }
    }

    /// Whether a value can be of an alternative: of tables, the one that has its keys.
    fn may_be(&self, choice: &'a Value, value: &Value) -> bool {
        let Some(choice) = choice.as_object() else { return true };
        let properties = choice.get("properties").and_then(Value::as_object);
        match (value, properties) {
            (Value::Object(table), Some(known)) => {
                choice.contains_key("additionalProperties") && choice["additionalProperties"] != Value::Bool(false)
                    || table.keys().all(|name| known.contains_key(name))
            }
            _ => true,
        }
    }

    fn number(&self, schema: &Object, value: &Value, key: &str) -> Result<(), Problem> {
        let Some(number) = value.as_f64() else { return Ok(()) };
        let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
        let said = |name: &str| schema.get(name).map(Value::to_string);
        let (least, most) = (limit("minimum"), limit("maximum"));
        if least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most) {
            return Ok(());
        }
        let right = match (said("minimum"), said("maximum")) {
            (Some(least), Some(most)) => format!("from {least} to {most}"),
            (Some(least), None) => format!("of at least {least}"),
            (None, most) => format!("of at most {}", most.unwrap_or_default()),
        };
        Err(Problem::new(key, format!("{value} is out of its bounds; write a number {right}")))
    }

    fn time(&self, value: &Value, limits: Limits<'_>, key: &str) -> Result<(), Problem> {
        let Some(time) = value.as_str().and_then(|text| text.parse::<Time>().ok()) else { return Ok(()) };
        let parsed = |text: &str| text.parse::<Duration>().expect("a bound is a time").ps();
        let (least, most) = (limits.least.map_or(0, parsed), limits.most.map_or(LONGEST.ps(), parsed));
        let zero = limits.zero && time.ps() == 0;
        if zero || (least..=most).contains(&time.ps()) || (time.ps() == NEVER && limits.most.is_none()) {
            return Ok(());
        }
        let or = if limits.zero { "0, or " } else { "" };
        let (least, most) = (Duration::from_ps(least), Duration::from_ps(most));
        Err(Problem::new(key, format!("{time} is out of its bounds; write {or}a time from {least} to {most}")))
    }
}

#[cfg(test)]
mod tests;
