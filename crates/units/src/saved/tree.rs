//! A state as a person sees it.

use serde::ser::{Serialize, SerializeMap, Serializer};

/// A piece of state: values by the names of fields.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// Nothing.
    None,
    /// Yes or no.
    Bool(bool),
    /// A number.
    Number(u64),
    /// A number below zero, or a fraction.
    Float(f64),
    /// A time, a rate, a name.
    Text(String),
    /// Items.
    List(Vec<Tree>),
    /// Fields, by name.
    Fields(Vec<(String, Tree)>),
}

impl Tree {
    /// The first field of this name, outermost first.
    pub fn find(&self, name: &str) -> Option<&Tree> {
        match self {
            Tree::Fields(fields) => {
                let here = fields.iter().find(|field| field.0 == name).map(|field| &field.1);
                here.or_else(|| fields.iter().find_map(|field| field.1.find(name)))
            }
            Tree::List(items) => items.iter().find_map(|item| item.find(name)),
            _ => None,
        }
    }

    /// An item of a list.
    pub fn item(&self, place: usize) -> Option<&Tree> {
        if let Tree::List(items) = self { items.get(place) } else { None }
    }

    /// The parts that are about a flow: values under its number in a map, values with a field `flow` of this number,
    /// and all that holds such.
    pub fn about(&self, flow: u32) -> Option<Tree> {
        let number = Tree::Number(flow.into());
        match self {
            Tree::Fields(fields) if fields.iter().any(|(name, of)| name == "flow" && *of == number) => {
                Some(self.clone())
            }
            Tree::Fields(fields) => {
                let under = flow.to_string();
                let about = |(name, of): &(String, Tree)| {
                    let of = if *name == under { Some(of.clone()) } else { of.about(flow) };
                    of.map(|of| (name.clone(), of))
                };
                let about: Vec<(String, Tree)> = fields.iter().filter_map(about).collect();
                (!about.is_empty()).then_some(Tree::Fields(about))
            }
            Tree::List(items) => {
                let about: Vec<Tree> = items.iter().filter_map(|item| item.about(flow)).collect();
                (!about.is_empty()).then_some(Tree::List(about))
            }
            _ => None,
        }
    }

    /// The name of a key of a map.
    fn key(&self) -> Option<String> {
        match self {
            Tree::Number(number) => Some(number.to_string()),
            Tree::Text(text) => Some(text.clone()),
            Tree::List(parts) => parts.iter().map(Tree::key).collect::<Option<Vec<_>>>().map(|of| of.join(" ")),
            _ => None,
        }
    }
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Tree::None => to.serialize_none(),
            Tree::Bool(value) => to.serialize_bool(*value),
            Tree::Number(value) => to.serialize_u64(*value),
            Tree::Float(value) => to.serialize_f64(*value),
            Tree::Text(value) => to.serialize_str(value),
            Tree::List(items) => to.collect_seq(items),
            Tree::Fields(fields) => {
                let mut map = to.serialize_map(Some(fields.len()))?;
                fields.iter().try_for_each(|(name, of)| map.serialize_entry(name, of))?;
                map.end()
            }
        }
    }
}

/// A record or a list that has begun.
#[derive(Debug)]
struct Open {
    /// It is a record, whose items have names.
    has_fields: bool,
    items: Vec<(String, Tree)>,
    /// The name of the next item.
    name: String,
}

/// A tree that is being drawn.
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    /// Outermost first.
    open: Vec<Open>,
    whole: Option<Tree>,
    slots: Vec<(u32, Tree)>,
}

impl Drawing {
    pub fn with(slots: Vec<(u32, Tree)>) -> Drawing {
        Drawing { slots, ..Drawing::default() }
    }

    pub fn chained(&mut self, slot: u32, all: bool) {
        let seen = |slot: u32| self.slots.get(slot as usize);
        if !all {
            return self.add(seen(slot).map_or(Tree::None, |of| of.1.clone()));
        }
        let list = std::iter::successors(seen(slot), |of| seen(of.0)).take(self.slots.len());
        self.add(Tree::List(list.map(|of| of.1.clone()).collect()));
    }

    pub fn begin(&mut self, has_fields: bool) {
        self.open.push(Open { has_fields, items: Vec::new(), name: String::new() });
    }

    pub fn name(&mut self, name: String) {
        if let Some(open) = self.open.last_mut() {
            open.name = name;
        }
    }

    pub fn add(&mut self, tree: Tree) {
        match self.open.last_mut() {
            Some(open) => open.items.push((std::mem::take(&mut open.name), tree)),
            None => self.whole = Some(tree),
        }
    }

    pub fn end(&mut self) {
        if let Some(Open { has_fields, items, .. }) = self.open.pop() {
            self.add(match has_fields {
                true => Tree::Fields(items),
                false => Tree::List(items.into_iter().map(|item| item.1).collect()),
            });
        }
    }

    /// The list that ends is one of keys and values in turn.
    pub fn end_map(&mut self) {
        let Some(Open { items, .. }) = self.open.pop() else { return };
        let mut items = items.into_iter().map(|item| item.1);
        let mut pairs = Vec::new();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            pairs.push((key, value));
        }
        let keys: Option<Vec<String>> = pairs.iter().map(|(key, _)| key.key()).collect();
        self.add(match keys {
            Some(keys) => Tree::Fields(keys.into_iter().zip(pairs.into_iter().map(|of| of.1)).collect()),
            None => Tree::List(pairs.into_iter().map(|(key, value)| Tree::List(vec![key, value])).collect()),
        });
    }

    pub fn finish(self) -> Tree {
        self.whole.unwrap_or(Tree::None)
    }
}
