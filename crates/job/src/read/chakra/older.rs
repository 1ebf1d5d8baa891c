//! Chakra's schema before October 2023 (0.0.1 to 0.0.3), as of ASTRA-sim's first traces: other numbers of fields and of
//! collectives, attributes with their types, the run time an attribute, and no metadata before August 2023.

use prost::Message as _;

use super::schema::{Attribute, BoolList, GlobalMetadata, Node};

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OlderAttribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(bool, optional, tag = "4")]
    pub b: Option<bool>,
    #[prost(float, optional, tag = "5")]
    pub f: Option<f32>,
    #[prost(int64, optional, tag = "6")]
    pub i: Option<i64>,
    #[prost(string, optional, tag = "7")]
    pub s: Option<String>,
    #[prost(int64, repeated, packed = "false", tag = "10")]
    pub ints: Vec<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OlderNode {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(int32, tag = "3")]
    pub kind: i32,
    #[prost(uint64, repeated, packed = "false", tag = "4")]
    pub parent: Vec<u64>,
    #[prost(message, repeated, tag = "11")]
    pub attribute: Vec<OlderAttribute>,
}

/// If the records are of that schema: which is the first node.
pub(super) fn first_node(records: &[&[u8]]) -> Option<usize> {
    const ID: u8 = 0x08; // field 1, a varint
    if records.first()?.first() == Some(&ID) {
        return Some(0);
    }
    let nameless = GlobalMetadata::decode(records[0]).map_or(true, |metadata| metadata.version.is_empty());
    let older = |record: &&[u8]| OlderNode::decode(*record).is_ok_and(|node| !node.attribute.is_empty());
    (nameless && records[1..].iter().any(older)).then_some(1)
}

impl OlderNode {
    /// The same in the present schema.
    pub fn present(self) -> Node {
        let runtime = self.attribute.iter().find(|attribute| attribute.name == "runtime").and_then(|found| found.i);
        let attr = self.attribute.into_iter().map(|attribute| {
            let OlderAttribute { name, b, f, i, s, ints } = attribute;
            // All-reduce, all-to-all, all-gather, reduce-scatter and broadcast were 0 to 4.
            let now = [0, 6, 2, 7, 5];
            let known = |old: i64| usize::try_from(old).ok().and_then(|old| now.get(old)).copied();
            let int64_val = if name == "comm_type" { i.map(|old| known(old).unwrap_or(i64::MAX)) } else { i };
            let dims = (!ints.is_empty()).then(|| BoolList { values: ints.iter().map(|&int| int != 0).collect() });
            Attribute {
                name,
                bool_val: b,
                float_val: f,
                int64_val,
                string_val: s,
                bool_list: dims,
                ..Attribute::default()
            }
        });
        Node {
            id: self.id,
            name: self.name,
            kind: self.kind,
            data_deps: self.parent,
            duration_micros: runtime.map_or(0, |runtime| u64::try_from(runtime).unwrap_or(u64::MAX)),
            attr: attr.collect(),
            ..Node::default()
        }
    }
}
