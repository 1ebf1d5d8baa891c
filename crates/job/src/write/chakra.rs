//! Chakra's execution traces.

use prost::Message as _;

use super::{Before, tags};
use crate::read::schema::{Attribute, DURATION_PS, GlobalMetadata, Node, kind};
use crate::{Graph, Rank, StepId, Work};

/// A graph as Chakra's execution traces: the content of each rank's file, in turn, which is called `PREFIX.RANK.et`.
///
/// Delays are computations of the processor (`is_cpu_op`). Times are rounded up to whole microseconds, as Chakra has
/// them, and exact in an attribute `duration_ps`, which [`ChakraTrace`](crate::read::ChakraTrace) reads. Dependencies
/// are `data_deps`; ids are counted for each rank.
pub fn chakra(graph: &Graph) -> impl Iterator<Item = Vec<u8>> + '_ {
    let (tags, before) = (tags(graph), Before::new(graph));
    (0..graph.ranks()).map(move |rank| {
        let mut file = GlobalMetadata { version: "0.0.4".to_owned() }.encode_length_delimited_to_vec();
        let steps = graph.of(Rank(rank));
        for step in steps.clone() {
            let of_step = graph.step(StepId(step));
            let computation = |time: units::Duration, beside: bool| {
                let attr = vec![Attribute::bool("is_cpu_op", beside), Attribute::uint64(DURATION_PS, time.ps())];
                (kind::COMP, time.ps().div_ceil(1_000_000), attr)
            };
            let message = |kind, id: crate::MessageId| {
                let message = graph.message(id);
                let attr = vec![
                    Attribute::bool("is_cpu_op", false),
                    Attribute::int64("comm_size", message.bytes as i64),
                    // Feeders read these three as an int32 and take it for a number without a sign.
                    Attribute::int32("comm_src", message.from.0 as i32),
                    Attribute::int32("comm_dst", message.to.0 as i32),
                    Attribute::int32("comm_tag", tags[id.index()] as i32),
                ];
                (kind, 0, attr)
            };
            let (kind, duration_micros, attr) = match of_step.work {
                Work::Compute(time) => computation(time, false),
                Work::Delay(time) => computation(time, true),
                Work::Send(id) => message(kind::SEND, id),
                Work::Receive(id) => message(kind::RECV, id),
            };
            let node = Node {
                id: u64::from(step - steps.start),
                name: graph.names()[of_step.name as usize].clone(),
                kind,
                ctrl_deps: Vec::new(),
                data_deps: before.of(step).iter().map(|&other| u64::from(other - steps.start)).collect(),
                duration_micros,
                inputs: None,
                attr,
            };
            file.extend(node.encode_length_delimited_to_vec());
        }
        file
    })
}
