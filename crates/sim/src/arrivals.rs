//! When each data packet comes in at the hosts of `measure.arrivals`: what software on a host has to work with.

use std::collections::BTreeSet;

use node::Packet;
use run::{Column, Data, Plan, Table};
use units::{FlowId, HostId, Time};

use crate::part::Part;

/// What has come to the hosts of a part that are asked about.
pub(crate) struct Arrivals {
    hosts: BTreeSet<HostId>,
    noted: Vec<Arrival>,
}

/// In the order of a host's time; hosts in that of their ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    at: Time,
    host: HostId,
    flow: FlowId,
    bytes: u16,
}

impl Arrivals {
    /// None if no host is asked about.
    pub fn new(plan: &Plan) -> Option<Arrivals> {
        (!plan.arrivals.is_empty()).then(|| Arrivals { hosts: plan.arrivals.clone(), noted: Vec::new() })
    }

    /// A packet has come to a host.
    #[inline]
    pub fn note(&mut self, now: Time, host: HostId, packet: &Packet) {
        if packet.payload_bytes > 0 && self.hosts.contains(&host) {
            self.noted.push(Arrival { at: now, host, flow: packet.flow, bytes: packet.payload_bytes });
        }
    }
}

/// The table `arrivals`; none if no host is asked about.
pub(crate) fn table(plan: &Plan, parts: &[Part]) -> Option<Table> {
    if plan.arrivals.is_empty() {
        return None;
    }
    let noted = |part: &'_ Part| part.arrivals.iter().flat_map(|arrivals| arrivals.noted.clone()).collect::<Vec<_>>();
    let mut rows: Vec<Arrival> = parts.iter().flat_map(noted).collect();
    rows.sort_unstable();
    let number = |value: &dyn Fn(&Arrival) -> u64| Data::U64(rows.iter().map(value).collect());
    let id = |value: &dyn Fn(&Arrival) -> u32| Data::U32(rows.iter().map(value).collect());
    Some(Table {
        name: "arrivals",
        columns: vec![
            Column::new("time_ps", "ps", "when its last bit was in", number(&|row| row.at.ps())),
            Column::new("host", "", "where", id(&|row| row.host.0)),
            Column::new("flow", "", "whose", id(&|row| row.flow.0)),
            Column::new("bytes", "B", "payload; what comes again counts again", number(&|row| u64::from(row.bytes))),
        ],
    })
}
