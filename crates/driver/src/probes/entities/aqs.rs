//! The table `aqs`: what each AQ passed and dropped.

use std::collections::BTreeMap;

use node::TagStats;
use run::{AqScope, Column, Data, Plan, Table};
use sharing::aq::Position;
use units::SwitchId;

/// An AQ: whose, where, and what was counted of it.
struct Row {
    switch: SwitchId,
    entity: u32,
    position: Position,
    part: AqScope,
    aq: u32,
    rate_bps: u64,
    stats: TagStats,
}

impl Row {
    /// What of the entity it is for, as a kind and a number.
    fn part(&self) -> (u32, u32) {
        match self.part {
            AqScope::Whole => (0, self.entity),
            AqScope::Host(host) => (1, host.0),
            AqScope::Flow(flow) => (2, flow.0),
        }
    }
}

/// The AQs of all switches, with what these `counted`.
fn rows(plan: &Plan, counted: &BTreeMap<(SwitchId, u32), TagStats>) -> Vec<Row> {
    let Plan { entities, fabric, .. } = plan;
    let mut rows: Vec<Row> = Vec::new();
    for (asked, rate) in entities.requests.iter().zip(entities.rates(fabric)) {
        let (position, aq, rate_bps) = (asked.place.position, asked.id.tag(), rate.bps());
        let (switch, entity, stats) = (asked.switch, u32::from(asked.entity), TagStats::default());
        rows.push(Row { switch, entity, position, part: asked.part, aq, rate_bps, stats });
    }
    // Packets without an AQ belong to nobody, whose name follows those of entities.
    let nobody = entities.names.len() as u32;
    for &(switch, id, place) in &entities.untagged {
        let (position, aq, stats) = (place.position, id.tag(), TagStats::default());
        rows.push(Row { switch, entity: nobody, position, part: AqScope::Whole, aq, rate_bps: 0, stats });
    }
    rows.sort_by_key(|row| (row.switch, row.entity, row.position, row.aq));
    for row in &mut rows {
        row.stats = counted.get(&(row.switch, row.aq)).copied().unwrap_or_default();
    }
    rows
}

/// A row an AQ.
pub(super) fn table(plan: &Plan, counted: &BTreeMap<(SwitchId, u32), TagStats>) -> Table {
    let rows = rows(plan, counted);
    let u32s = |value: &dyn Fn(&Row) -> u32| rows.iter().map(value).collect::<Vec<u32>>();
    let u64s = |value: &dyn Fn(&Row) -> u64| Data::U64(rows.iter().map(value).collect());
    let named =
        |index: Vec<u32>, names: &[&str]| Data::Names { index, names: names.iter().map(|&n| n.to_owned()).collect() };
    let switch = Data::Names {
        index: u32s(&|row| row.switch.0),
        names: plan.fabric.names[plan.fabric.hosts as usize..].to_vec(),
    };
    let whose = Data::Names {
        index: u32s(&|row| row.entity),
        names: plan.entities.names.iter().cloned().chain(["(untagged)".to_owned()]).collect(),
    };
    Table {
        name: "aqs",
        columns: vec![
            Column::new("switch", "", "where", switch),
            Column::new(
                "entity",
                "",
                "the entity whose AQ it is; (untagged) for the AQ of packets without a tag",
                whose,
            ),
            Column::new(
                "pipeline",
                "",
                "ingress or egress",
                named(u32s(&|row| u32::from(row.position == Position::Egress)), &["ingress", "egress"]),
            ),
            Column::new(
                "part",
                "",
                "what the AQ is for: the whole entity, one host or one flow",
                named(u32s(&|row| row.part().0), &["entity", "host", "flow"]),
            ),
            Column::new("number", "", "the number of that entity, host or flow", Data::U32(u32s(&|row| row.part().1))),
            Column::new("aq", "", "the AQ's id, as the tags of packets carry it", Data::U32(u32s(&|row| row.aq))),
            Column::new(
                "share_bps",
                "bit/s",
                "its rate when all entities are active, before any headroom; 0 if untagged",
                u64s(&|row| row.rate_bps),
            ),
            Column::new("passed_packets", "", "packets that passed the AQ", u64s(&|row| row.stats.passed_packets)),
            Column::new("passed_bytes", "B", "their bytes on the wire", u64s(&|row| row.stats.passed_bytes)),
            Column::new(
                "dropped_packets",
                "",
                "packets dropped above the AQ limit",
                u64s(&|row| row.stats.dropped_packets),
            ),
            Column::new("dropped_bytes", "B", "their bytes", u64s(&|row| row.stats.dropped_bytes)),
            Column::new("marked_packets", "", "packets marked by the A-Gap", u64s(&|row| row.stats.marked_packets)),
        ],
    }
}
