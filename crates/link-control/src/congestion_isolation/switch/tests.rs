use node::Walk;
use testing::walks::{NOW, check_moved};

use super::*;

type Table = FxHashMap<FlowId, Entry>;

const FLOW: FlowId = FlowId(3);
const SILENCE: Duration = Duration::from_us(10);
const PERIOD: Duration = Duration::from_us(1);

/// A flow that is congesting for a while, of which a neighbour was told lately.
fn table() -> Table {
    let told = Some((PortId(1), NOW - PERIOD));
    [(FLOW, Entry { waiting: 2, until: NOW + PERIOD * 5, told })].into_iter().collect()
}

fn visit_all(table: &mut Table, walk: &mut Walk) {
    node::walk::Items::items(table, walk, &mut |walk, (flow, entry)| {
        walk.flow(flow);
        node::State::visit(entry, walk, &SILENCE);
    });
    // Packets of the flow wait, too.
    walk.flow(&mut FlowId(3));
}

fn entry(table: &mut Table) -> &mut Entry {
    table.get_mut(&FLOW).expect("it is there")
}

/// In each period it is told again.
#[test]
fn its_walk_moves_times() {
    let pass = |table: &mut Table, now: Time| {
        let entry = entry(table);
        (entry.until, entry.told) = (now + PERIOD * 6, Some((PortId(1), now)));
    };
    let see = |table: &Table| table.get(&FLOW).map(|entry| (entry.until, entry.told));
    check_moved(&[], PERIOD, table, visit_all, pass, see);
}
