//! The messages of Chakra's `et_def.proto` (MLCommons, version 0.0.4 and later): the fields that have a meaning here.
//! Others are skipped, as protobuf's readers do.

/// The first record of a file.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GlobalMetadata {
    #[prost(string, tag = "1")]
    pub version: String,
}

/// Several times yes or no.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BoolList {
    #[prost(bool, repeated, tag = "1")]
    pub values: Vec<bool>,
}

/// An attribute. Its value is in one of many fields, by type; other lists have no meaning here.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Attribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(double, optional, tag = "3")]
    pub double_val: Option<f64>,
    #[prost(float, optional, tag = "5")]
    pub float_val: Option<f32>,
    #[prost(int32, optional, tag = "7")]
    pub int32_val: Option<i32>,
    #[prost(int64, optional, tag = "9")]
    pub int64_val: Option<i64>,
    #[prost(uint32, optional, tag = "11")]
    pub uint32_val: Option<u32>,
    #[prost(uint64, optional, tag = "13")]
    pub uint64_val: Option<u64>,
    #[prost(sint32, optional, tag = "15")]
    pub sint32_val: Option<i32>,
    #[prost(sint64, optional, tag = "17")]
    pub sint64_val: Option<i64>,
    #[prost(fixed32, optional, tag = "19")]
    pub fixed32_val: Option<u32>,
    #[prost(fixed64, optional, tag = "21")]
    pub fixed64_val: Option<u64>,
    #[prost(sfixed32, optional, tag = "23")]
    pub sfixed32_val: Option<i32>,
    #[prost(sfixed64, optional, tag = "25")]
    pub sfixed64_val: Option<i64>,
    #[prost(bool, optional, tag = "27")]
    pub bool_val: Option<bool>,
    #[prost(message, optional, tag = "28")]
    pub bool_list: Option<BoolList>,
    #[prost(string, optional, tag = "29")]
    pub string_val: Option<String>,
}

/// Inputs or outputs of a node.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct IoInfo {
    #[prost(string, tag = "1")]
    pub values: String,
}

/// A node.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Node {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(int32, tag = "3")]
    pub kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    pub duration_micros: u64,
    #[prost(message, optional, tag = "8")]
    pub inputs: Option<IoInfo>,
    #[prost(message, repeated, tag = "10")]
    pub attr: Vec<Attribute>,
}

/// Types of nodes.
pub(crate) mod kind {
    pub const INVALID: i32 = 0;
    pub const METADATA: i32 = 1;
    pub const MEM_LOAD: i32 = 2;
    pub const MEM_STORE: i32 = 3;
    pub const COMP: i32 = 4;
    pub const SEND: i32 = 5;
    pub const RECV: i32 = 6;
    pub const COLLECTIVE: i32 = 7;
}

/// The attribute that has a duration to the picosecond, which no other tool reads. Chakra has microseconds.
pub(crate) const DURATION_PS: &str = "duration_ps";

impl Attribute {
    /// The whole number that it has, whichever type it has. The error is what it has instead.
    pub fn number(&self) -> Result<i128, String> {
        let whole = [
            self.int64_val.map(i128::from),
            self.uint64_val.map(i128::from),
            self.int32_val.map(i128::from),
            self.uint32_val.map(i128::from),
            self.sint64_val.map(i128::from),
            self.sint32_val.map(i128::from),
            self.fixed64_val.map(i128::from),
            self.fixed32_val.map(i128::from),
            self.sfixed64_val.map(i128::from),
            self.sfixed32_val.map(i128::from),
        ];
        let text = self.string_val.as_ref().and_then(|text| text.trim().parse().ok());
        whole.into_iter().flatten().next().or(text).ok_or_else(|| self.said())
    }

    /// Its content, for errors.
    fn said(&self) -> String {
        if let Some(text) = &self.string_val {
            return text.clone();
        }
        let other = [
            self.double_val.map(|value| value.to_string()),
            self.float_val.map(|value| value.to_string()),
            self.bool_val.map(|value| value.to_string()),
        ];
        other.into_iter().flatten().next().unwrap_or_else(|| "a list or nothing".to_owned())
    }

    /// The same with another name, and a whole number.
    pub fn int64(name: &str, value: i64) -> Attribute {
        Attribute { name: name.to_owned(), int64_val: Some(value), ..Attribute::default() }
    }

    /// A number that feeders read as an int32.
    pub fn int32(name: &str, value: i32) -> Attribute {
        Attribute { name: name.to_owned(), int32_val: Some(value), ..Attribute::default() }
    }

    /// A number without a sign.
    pub fn uint64(name: &str, value: u64) -> Attribute {
        Attribute { name: name.to_owned(), uint64_val: Some(value), ..Attribute::default() }
    }

    /// Yes or no.
    pub fn bool(name: &str, value: bool) -> Attribute {
        Attribute { name: name.to_owned(), bool_val: Some(value), ..Attribute::default() }
    }
}
