//! Chakra's execution traces (MLCommons; ASTRA-sim): one file per rank, `PREFIX.0.et`, `PREFIX.1.et`, ... Each begins
//! with metadata, then has a node for each operation, every record with its length in front.

mod older;
pub(crate) mod schema;

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;

use prost::Message as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Duration;

use self::schema::{Attribute, DURATION_PS, GlobalMetadata, Node, kind};
use super::assemble::{Op, Ops, RankOps, What};
use super::{BYTES_MAX, RANKS_MAX, ReadFile, Reading, TraceError};
use crate::collective::Kind;
use crate::{Count, Graph};

/// Execution traces of Chakra, of every schema up to 2025 (0.0.1 to 1.1).
///
/// Computations are as long as their `duration_micros`, or, if they have none, as long as their `num_ops` take with
/// `teraflops`. Computations on the processor (`is_cpu_op`) run in parallel to all others, and do not wait for each
/// other. Sends and receives match by `comm_tag`. Collectives go by the job's algorithms: the n-th of a process group
/// (`pg_name`) at one rank is the n-th at all. Their `comm_size` counts as in ASTRA-sim: of an all-gather the part that
/// each rank begins with. A barrier is an all-reduce of a byte a rank. Groups are those of `groups`, or of the trace's
/// own nodes for PyTorch's process groups; nodes without `pg_name`, or with 0, are of all ranks. Nodes of memory take
/// as long as they say.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChakraTrace {
    /// Path of the files up to the rank's number, relative to the scenario's folder: "traces/all_reduce" for
    /// `traces/all_reduce.0.et` and so on.
    pub path: String,
    /// How many ranks there are. Default: as many as there are files, one after the other.
    pub ranks: Option<u32>,
    /// Path of a file of process groups, as of ASTRA-sim: `{"1": [0, 1, 2], "2": [3, 4, 5]}`. Default: none.
    pub groups: Option<String>,
    /// 10^12 operations a second, for computations without a duration. Default: those are errors.
    pub teraflops: Option<f64>,
}

impl ChakraTrace {
    fn file(&self, rank: u32) -> String {
        format!("{}.{rank}.et", self.path)
    }

    /// Reads all files.
    pub fn load(&self, reading: &Reading, read: ReadFile<'_>) -> Result<Graph, TraceError> {
        let (files, groups) = self.files(read)?;
        self.parse(&files, groups.as_ref().map(|(path, content)| (*path, &content[..])), reading)
    }

    /// Counts what the files have: ranks, and what they do if hosts have `local` consecutive ones each.
    pub fn count(&self, reading: &Reading, read: ReadFile<'_>, local: u32) -> Result<(u32, Count), TraceError> {
        let (files, groups) = self.files(read)?;
        let groups = groups.as_ref().map(|(path, content)| (*path, &content[..]));
        self.read(&files, groups, reading, |ops| Ok((ops.ranks.len() as u32, ops.count(local)?)))
    }

    /// The contents of the ranks' files, and of the file of groups with its name.
    fn files(&self, read: ReadFile<'_>) -> Result<Files<'_>, TraceError> {
        let unreadable = |file: &str, error: &std::io::Error| {
            TraceError::whole(file, "file", &error.to_string(), "one that can be read")
        };
        let groups = match &self.groups {
            Some(path) => Some((path.as_str(), read(path).map_err(|error| unreadable(path, &error))?)),
            None => None,
        };
        let mut files = Vec::new();
        while self.ranks.is_none_or(|ranks| (files.len() as u64) < u64::from(ranks)) {
            let file = self.file(files.len() as u32);
            match read(&file) {
                Ok(content) => files.push(content),
                Err(error) if error.kind() == ErrorKind::NotFound && self.ranks.is_none() && !files.is_empty() => break,
                Err(error) => return Err(unreadable(&file, &error)),
            }
        }
        Ok((files, groups))
    }

    /// Reads the contents of the ranks' files, and of a file of groups with its name.
    pub fn parse(
        &self,
        files: &[Vec<u8>],
        groups: Option<(&str, &[u8])>,
        reading: &Reading,
    ) -> Result<Graph, TraceError> {
        self.read(files, groups, reading, |ops| ops.graph())
    }

    fn read<R>(
        &self,
        files: &[Vec<u8>],
        groups: Option<(&str, &[u8])>,
        reading: &Reading,
        then: impl FnOnce(&Ops<'_>) -> Result<R, TraceError>,
    ) -> Result<R, TraceError> {
        if files.is_empty() || files.len() as u64 > u64::from(RANKS_MAX) {
            let expected = format!("1 to {RANKS_MAX}");
            return Err(TraceError::whole(&self.path, "number of ranks", &files.len().to_string(), &expected));
        }
        if self.teraflops.is_some_and(|teraflops| !(teraflops > 1e-6 && teraflops <= 1e9)) {
            let value = self.teraflops.unwrap_or_default().to_string();
            return Err(TraceError::whole(&self.path, "teraflops", &value, "above 0, such as 312"));
        }
        let mut known = Groups::new(files.len() as u32);
        if let Some((path, content)) = groups {
            known.read(path, content)?;
        }
        let ranks = files
            .iter()
            .enumerate()
            .map(|(rank, content)| {
                let file = self.file(rank as u32);
                File { trace: self, name: &file, rank: rank as u32, known: &mut known }.read(content)
            })
            .collect::<Result<Vec<RankOps>, TraceError>>()?;
        let file = |rank| self.file(rank);
        then(&Ops { ranks, groups: known.members, file: &file, unit: "node", reading })
    }
}

/// Contents of files by rank, and of a file of groups with its name.
type Files<'a> = (Vec<Vec<u8>>, Option<(&'a str, Vec<u8>)>);

/// Process groups, by name.
struct Groups {
    ranks: u32,
    /// By name, index in `members`.
    named: BTreeMap<String, u32>,
    members: Vec<Vec<u32>>,
}

impl Groups {
    /// The group of all, which has no name.
    fn new(ranks: u32) -> Groups {
        Groups { ranks, named: BTreeMap::from([(String::new(), 0)]), members: vec![(0..ranks).collect()] }
    }

    /// A file such as `{"1": [0, 1, 2]}`.
    fn read(&mut self, path: &str, content: &[u8]) -> Result<(), TraceError> {
        let groups: BTreeMap<String, Vec<u32>> = serde_json::from_slice(content).map_err(|error| {
            let expected = "process groups, such as {\"1\": [0, 1, 2]}";
            TraceError::new(path, format_args!("line {}", error.line()), "groups", &error.to_string(), expected)
        })?;
        for (name, members) in groups {
            self.add(&name, members).map_err(|(value, expected)| TraceError::whole(path, &name, &value, &expected))?;
        }
        Ok(())
    }

    /// The error is a value, and what would be right.
    fn add(&mut self, name: &str, mut members: Vec<u32>) -> Result<(), (String, String)> {
        members.sort_unstable();
        if members.is_empty() {
            members = self.members[0].clone(); // as in PyTorch's traces
        }
        if let Some(&other) = members.iter().find(|&&rank| rank >= self.ranks) {
            return Err((format!("rank {other}"), format!("ranks of the job's {}", self.ranks)));
        }
        if let Some(twice) = members.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err((format!("rank {}, twice", twice[0]), "ranks that differ".to_owned()));
        }
        match self.named.get(name) {
            Some(&at) if self.members[at as usize] != members => {
                Err(("other ranks than before".to_owned(), "the same at all ranks of the group".to_owned()))
            }
            Some(_) => Ok(()),
            None => {
                self.named.insert(name.to_owned(), self.members.len() as u32);
                self.members.push(members);
                Ok(())
            }
        }
    }

    fn find(&self, name: &str) -> Option<u32> {
        // ASTRA-sim's group 0 is that of all, unless a file says otherwise.
        self.named.get(name).copied().or((name == "0").then_some(0))
    }
}

/// One rank's file.
struct File<'a> {
    trace: &'a ChakraTrace,
    name: &'a str,
    rank: u32,
    known: &'a mut Groups,
}

impl File<'_> {
    fn error(&self, node: &Node, field: &str, value: &str, expected: &str) -> TraceError {
        let place = format!("node {} of rank {}", node.id, self.rank);
        TraceError::new(self.name, place, field, value, expected)
    }

    fn read(mut self, content: &[u8]) -> Result<RankOps, TraceError> {
        if content.starts_with(&[0x1f, 0x8b]) {
            return Err(TraceError::whole(self.name, "file", "compressed by gzip", "unpacked; use gunzip"));
        }
        let mut rest = content;
        let mut records: Vec<&[u8]> = Vec::new();
        while !rest.is_empty() {
            records.push(self.record(&mut rest, content.len(), records.len())?);
        }
        if records.is_empty() {
            return Err(TraceError::whole(self.name, "file", "empty", "metadata and nodes"));
        }
        let error = |record: usize, error: prost::DecodeError| {
            let place = format_args!("record {record}");
            TraceError::new(self.name, place, "content", &error.to_string(), "as Chakra's et_def.proto has it")
        };
        let mut nodes: Vec<Node> = Vec::new();
        if let Some(first) = older::first_node(&records) {
            for (number, record) in records.iter().enumerate().skip(first) {
                let node = older::OlderNode::decode(*record).map_err(|wrong| error(number, wrong))?;
                nodes.push(node.present());
            }
        } else {
            GlobalMetadata::decode(records[0]).map_err(|wrong| error(0, wrong))?;
            for (number, record) in records.iter().enumerate().skip(1) {
                nodes.push(Node::decode(*record).map_err(|wrong| error(number, wrong))?);
            }
        }
        self.ops(&nodes)
    }

    /// The next record, without its length.
    fn record<'b>(&self, rest: &mut &'b [u8], all: usize, number: usize) -> Result<&'b [u8], TraceError> {
        let at = all - rest.len();
        let length = prost::decode_length_delimiter(&mut *rest).map_err(|error| {
            let place = format_args!("record {number}, at byte {at}");
            TraceError::new(self.name, place, "length", &error.to_string(), "a protobuf varint")
        })?;
        if length > rest.len() {
            let expected = format!("at most the {} bytes that follow", rest.len());
            let place = format_args!("record {number}, at byte {at}");
            return Err(TraceError::new(self.name, place, "length", &length.to_string(), &expected));
        }
        let (record, after) = rest.split_at(length);
        *rest = after;
        Ok(record)
    }

    fn ops(&mut self, nodes: &[Node]) -> Result<RankOps, TraceError> {
        let mut own = RankOps::default();
        let mut places: HashMap<u64, u32> = HashMap::new();
        for node in nodes {
            if places.insert(node.id, own.ops.len() as u32).is_some() {
                return Err(self.error(node, "id", &node.id.to_string(), "one that no node before has"));
            }
            let what = self.what(node)?;
            own.ops.push(Op { what, name: node.name.as_str().into(), at: node.id });
        }
        for (at, node) in nodes.iter().enumerate() {
            for (field, ids) in [("ctrl_deps", &node.ctrl_deps), ("data_deps", &node.data_deps)] {
                for id in ids {
                    let Some(&before) = places.get(id) else {
                        return Err(self.error(node, field, &id.to_string(), "the id of a node of this file"));
                    };
                    own.after_end.push((at as u32, before));
                }
            }
        }
        // A dependency may be in both lists.
        own.after_end.sort_unstable();
        own.after_end.dedup();
        Ok(own)
    }

    fn what(&mut self, node: &Node) -> Result<What, TraceError> {
        match node.kind {
            kind::INVALID => Ok(What::Delay(Duration::ZERO)),
            kind::METADATA => {
                self.process_groups(node)?;
                Ok(What::Delay(Duration::ZERO))
            }
            kind::MEM_LOAD | kind::MEM_STORE => match self.duration(node)? {
                Some(time) => Ok(What::Delay(time)),
                None => Err(self.error(node, "duration_micros", "0", "above 0: memory has no model here")),
            },
            kind::COMP => {
                let time = self.computation(node)?;
                let beside = attribute(node, "is_cpu_op").and_then(|attr| attr.bool_val).unwrap_or(false);
                Ok(if beside { What::Delay(time) } else { What::Compute(time) })
            }
            kind::SEND => {
                self.own(node, "comm_src")?;
                let (to, tag) = (self.needed(node, "comm_dst", u64::from(u32::MAX))? as u32, self.tag(node)?);
                Ok(What::Send { to, tag, bytes: self.needed(node, "comm_size", BYTES_MAX)? })
            }
            kind::RECV => {
                self.own(node, "comm_dst")?;
                let (from, tag) = (self.needed(node, "comm_src", u64::from(u32::MAX))? as u32, self.tag(node)?);
                Ok(What::Receive { from, tag, room: self.needed(node, "comm_size", BYTES_MAX)? })
            }
            kind::COLLECTIVE => self.collective(node),
            other => {
                let expected =
                    "1 (metadata), 2 or 3 (memory), 4 (computation), 5 (send), 6 (receive) or 7 (collective)";
                Err(self.error(node, "type", &other.to_string(), expected))
            }
        }
    }

    fn collective(&self, node: &Node) -> Result<What, TraceError> {
        let dims = attribute(node, "involved_dim").and_then(|attribute| attribute.bool_list.as_ref());
        if dims.is_some_and(|dims| dims.values.contains(&false)) {
            let expected = "all: write a process group for those of some dimensions";
            return Err(self.error(node, "involved_dim", "some dimensions", expected));
        }
        let name = attribute(node, "pg_name").map_or(Ok(String::new()), |attr| {
            let text = attr.string_val.clone().or_else(|| attr.number().ok().map(|number| number.to_string()));
            text.ok_or_else(|| self.error(node, "pg_name", "no text", "the name of a process group"))
        })?;
        let Some(group) = self.known.find(&name) else {
            let expected = "a process group of `groups`, or of a node before this one";
            return Err(self.error(node, "pg_name", &name, expected));
        };
        let members = &self.known.members[group as usize];
        if members.binary_search(&self.rank).is_err() {
            let expected = format!("a group that rank {} belongs to", self.rank);
            return Err(self.error(node, "pg_name", &name, &expected));
        }
        let n = members.len() as u64;
        let size = || self.needed(node, "comm_size", BYTES_MAX);
        let (kind, bytes) = match self.needed(node, "comm_type", u64::MAX)? {
            0 => (Kind::AllReduce, size()?),
            2 => (Kind::AllGather, size()?.saturating_mul(n)),
            5 => (Kind::Broadcast, size()?),
            6 => (Kind::AllToAll, size()?),
            7 | 8 => (Kind::ReduceScatter, size()?),
            9 => (Kind::AllReduce, n),
            other => {
                let expected = "0 (all-reduce), 2 (all-gather), 5 (broadcast), 6 (all-to-all), 7 (reduce-scatter) or \
                    9 (barrier)";
                return Err(self.error(node, "comm_type", &other.to_string(), expected));
            }
        };
        let root = match attribute(node, "root_rank") {
            Some(_) if kind == Kind::Broadcast => {
                let rank = self.needed(node, "root_rank", u64::from(u32::MAX))?;
                let place = members.iter().position(|&member| u64::from(member) == rank);
                let error = || self.error(node, "root_rank", &rank.to_string(), "a rank of the group");
                place.ok_or_else(error)? as u32
            }
            _ => 0,
        };
        Ok(What::Collective { kind, group, bytes, root })
    }

    /// How long a computation takes.
    fn computation(&self, node: &Node) -> Result<Duration, TraceError> {
        if let Some(time) = self.duration(node)? {
            return Ok(time);
        }
        let Some(ops) = self.number(node, "num_ops", u64::MAX)?.filter(|&ops| ops > 0) else {
            return Ok(Duration::ZERO);
        };
        let Some(teraflops) = self.trace.teraflops else {
            let expected = "above 0, or `teraflops` beside the path, for the time of its num_ops";
            return Err(self.error(node, "duration_micros", "0", expected));
        };
        let time = ops as f64 / teraflops;
        if time > 1e18 {
            return Err(self.error(node, "num_ops", &ops.to_string(), "less: that takes more than 10 days"));
        }
        Ok(Duration::from_ps((time + 0.5) as u64))
    }

    /// The node's own time, if it has one.
    fn duration(&self, node: &Node) -> Result<Option<Duration>, TraceError> {
        if let Some(exact) = self.number(node, DURATION_PS, u64::MAX)? {
            return Ok(Some(Duration::from_ps(exact)));
        }
        match node.duration_micros.checked_mul(1_000_000) {
            Some(0) => Ok(None),
            Some(time) => Ok(Some(Duration::from_ps(time))),
            None => {
                let value = node.duration_micros.to_string();
                Err(self.error(node, "duration_micros", &value, "less than 50 days"))
            }
        }
    }

    /// The number that an attribute has, if there is such an attribute.
    fn number(&self, node: &Node, name: &str, most: u64) -> Result<Option<u64>, TraceError> {
        let Some(attribute) = attribute(node, name) else { return Ok(None) };
        let expected = format!("a whole number from 0 to {most}");
        let number = attribute.number().map_err(|found| self.error(node, name, &found, &expected))?;
        match u64::try_from(number) {
            Ok(number) if number <= most => Ok(Some(number)),
            _ => Err(self.error(node, name, &number.to_string(), &expected)),
        }
    }

    fn needed(&self, node: &Node, name: &str, most: u64) -> Result<u64, TraceError> {
        let missing = || self.error(node, name, "missing", "an attribute with a whole number");
        self.number(node, name, most)?.ok_or_else(missing)
    }

    fn tag(&self, node: &Node) -> Result<u32, TraceError> {
        Ok(self.number(node, "comm_tag", u64::from(u32::MAX))?.unwrap_or(0) as u32)
    }

    /// The rank's own end of a message, if it is given, is the rank.
    fn own(&self, node: &Node, name: &str) -> Result<(), TraceError> {
        match self.number(node, name, u64::MAX)? {
            Some(rank) if rank != u64::from(self.rank) => {
                let expected = format!("{}, the rank of this file", self.rank);
                Err(self.error(node, name, &rank.to_string(), &expected))
            }
            _ => Ok(()),
        }
    }

    /// PyTorch's process groups, which are the inputs of one node: a list in a list of text.
    fn process_groups(&mut self, node: &Node) -> Result<(), TraceError> {
        #[derive(Deserialize)]
        struct Group {
            pg_name: String,
            ranks: Vec<u32>,
        }
        let Some(inputs) = node.inputs.as_ref().filter(|_| node.name.contains("process_group")) else { return Ok(()) };
        let text = inputs.values.trim();
        let (Some(begin), Some(end)) = (text.find("[{"), text.rfind("}]")) else { return Ok(()) };
        let list = text.get(begin..end + 2).unwrap_or_default();
        // Some writers put a backslash before each quote.
        let groups: Vec<Group> = serde_json::from_str(&list.replace("\\\"", "\"")).map_err(|error| {
            self.error(node, "inputs", &error.to_string(), "a list of groups with pg_name and ranks")
        })?;
        for Group { pg_name, ranks } in groups {
            self.known
                .add(&pg_name, ranks)
                .map_err(|(value, expected)| self.error(node, &format!("group {pg_name}"), &value, &expected))?;
        }
        Ok(())
    }
}

fn attribute<'a>(node: &'a Node, name: &str) -> Option<&'a Attribute> {
    node.attr.iter().find(|attribute| attribute.name == name)
}

#[cfg(test)]
mod tests;
