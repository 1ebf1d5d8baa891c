use std::collections::BTreeSet;

use fabric::Fabric;
use node::link::Cause;
use run::{Column, Data, Plan, Table, link_ends};
use units::{Duration, LinkId};

use super::{Congestion, Row, root_link, root_node};

/// A row of the table.
struct TreeRow<'a> {
    row: &'a Row,
    root_link: Option<u32>,
    role: usize,
    innocent_bytes: u64,
}

const ROLES: [&str; 3] = ["root", "hotspot", "paused"];

/// The table `congestion`; none without a flow control or without samples.
pub(super) fn table(seen: &[&Congestion], plan: &Plan) -> Option<Table> {
    if seen.is_empty() || plan.scenario.measure.interval == Duration::ZERO {
        return None;
    }
    let told = tell_all(seen);
    let causes: Vec<Cause> = told.iter().map(|told| told.row.cause).collect::<BTreeSet<_>>().into_iter().collect();
    let of_root = |cause: &Cause| if let Cause::Root { class, .. } = cause { Some(*class) } else { None };
    let by_class = causes.iter().filter_map(of_root).collect::<BTreeSet<_>>().len() > 1;
    let cause = Data::Names {
        index: told.iter().map(|told| causes.partition_point(|cause| *cause < told.row.cause) as u32).collect(),
        names: causes.iter().map(|&cause| cause_name(&plan.fabric, cause, by_class)).collect(),
    };
    let role = Data::Names {
        index: told.iter().map(|told| told.role as u32).collect(),
        names: ROLES.map(str::to_owned).to_vec(),
    };
    let u64s = |value: &dyn Fn(&TreeRow<'_>) -> u64| told.iter().map(value).collect();
    let [from, to] = link_ends(&plan.fabric, told.iter().map(|told| LinkId(told.row.link)));
    Some(Table {
        name: "congestion",
        columns: vec![
            Column::new("time_ps", "ps", "when", Data::U64(u64s(&|told| told.row.at.ps()))),
            Column::new(
                "link",
                "",
                "the link that the queue feeds: a port of a switch, or a host's NIC",
                Data::U32(told.iter().map(|told| told.row.link).collect()),
            ),
            from,
            to,
            Column::new(
                "cause",
                "",
                "the queue: of a class, by its number, of a flow, or of a congestion root (node:port, and its class if \
                 roots are of several)",
                cause,
            ),
            Column::new(
                "root_link",
                "",
                "the root's link, if the queue belongs to a root",
                Data::OptU64(u64s(&|told| told.root_link.map_or(u64::MAX, u64::from))),
            ),
            Column::new(
                "role",
                "",
                "hotspot: more than two one-hop bandwidth-delay products wait at the port; root: that much waits that \
                 may be sent, was not paused as a class since the last sample, and meets no other hotspot on its \
                 path, or the flow control names the port a root; paused: neither",
                role,
            ),
            Column::new(
                "paused",
                "",
                "whether it is paused",
                Data::Bool(told.iter().map(|told| told.row.paused).collect()),
            ),
            Column::new(
                "bytes",
                "B",
                "bytes that wait in it; 0 at a host, which builds a packet only when it may send it",
                Data::U64(u64s(&|told| u64::from(told.row.bytes))),
            ),
            Column::new(
                "innocent_bytes",
                "B",
                "bytes that the pause holds although their onward path meets no root of this instant; in a root's \
                 queue: although they do not meet that root, or it is no longer one",
                Data::U64(u64s(&|told| told.innocent_bytes)),
            ),
        ],
    })
}

/// Of all bytes that pauses held, over all samples, the share that met no root.
pub(super) fn innocent_share(seen: &[&Congestion]) -> f64 {
    let told = tell_all(seen);
    let held: u64 = told.iter().filter(|told| told.row.paused).map(|told| u64::from(told.row.bytes)).sum();
    let innocent: u64 = told.iter().map(|told| told.innocent_bytes).sum();
    innocent as f64 / held.max(1) as f64
}

/// All rows in the order of time and links.
fn tell_all<'a>(seen: &[&'a Congestion]) -> Vec<TreeRow<'a>> {
    let mut rows: Vec<(&Congestion, &Row)> =
        seen.iter().flat_map(|&seen| seen.rows.iter().map(move |row| (seen, row))).collect();
    rows.sort_by_key(|(_, row)| (row.at, row.link));
    rows.chunk_by(|one, other| one.1.at == other.1.at).flat_map(tell).collect()
}

/// The rows of one instant. Finds the roots of that instant, then the bytes of each row whose paths meet none.
fn tell<'a>(instant: &[(&'a Congestion, &'a Row)]) -> Vec<TreeRow<'a>> {
    let hotspots: BTreeSet<u32> = instant.iter().filter(|(_, row)| row.hotspot).map(|(_, row)| row.link).collect();
    let mut roots = BTreeSet::new();
    for port in instant.chunk_by(|one, other| one.1.link == other.1.link) {
        let (seen, row) = port[0];
        let last = |path: &[u32]| path.iter().all(|link| *link == row.link || !hotspots.contains(link));
        let free = || port.iter().filter(|(_, row)| !row.paused).map(|(seen, row)| bytes(seen, row, last)).sum::<u64>();
        let found = !seen.names_roots && !row.lately && free() > seen.hotspot_bytes[row.link as usize];
        if found || port.iter().any(|(_, row)| row.root) {
            roots.insert(row.link);
        }
    }
    let told = |&(seen, row): &(&'a Congestion, &'a Row)| {
        let root_link = root_link(&seen.fabric, row.cause);
        let innocent = |path: &[u32]| match root_link {
            Some(root) => !roots.contains(&root) || !path.contains(&root),
            None => path.iter().all(|link| !roots.contains(link)),
        };
        let is_root = row.root || !seen.names_roots && !row.paused && roots.contains(&row.link);
        TreeRow {
            row,
            root_link,
            role: if is_root { 0 } else { 2 - usize::from(row.hotspot) },
            innocent_bytes: if row.paused { bytes(seen, row, innocent) } else { 0 },
        }
    };
    instant.iter().map(told).collect()
}

/// Bytes that wait in a queue and go by such paths.
fn bytes(seen: &Congestion, row: &Row, such: impl Fn(&[u32]) -> bool) -> u64 {
    let waiting = seen.waiting[row.waiting.clone()].iter();
    waiting.filter(|(path, _)| such(&seen.paths[*path as usize])).map(|(_, bytes)| bytes).sum()
}

fn cause_name(fabric: &Fabric, cause: Cause, by_class: bool) -> String {
    match cause {
        Cause::Class(class) => format!("class {class}"),
        Cause::Queue(queue) => format!("queue {queue}"),
        Cause::Flow(flow) => format!("flow {}", flow.0),
        Cause::Root { node, port, class } => {
            let class = if by_class { format!(" class {class}") } else { String::new() };
            format!("{}:{port}{class}", fabric.names[root_node(fabric, node).index()])
        }
    }
}
