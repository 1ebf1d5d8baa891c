//! When each data packet arrives at the hosts of `measure.arrivals`, as software on the host would see it.

use std::collections::BTreeSet;

use node::Packet;
use node::pool::Transit;
use node::wire::{Malformed, Reader, Writer};
use run::{Column, Data, Plan, Table, host_names};
use units::{FlowId, HostId, Time};

use crate::{HostSlot, Probe, Wants, Whole};

/// The data packets that arrived at the part's hosts of `measure.arrivals`.
#[derive(node::State)]
#[state(refuse("measure.arrivals notes each packet"))]
pub(crate) struct Arrivals {
    hosts: BTreeSet<HostId>,
    noted: Vec<Arrival>,
}

/// Sorted by host, then by time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, node::Saved)]
struct Arrival {
    at: Time,
    host: HostId,
    flow: FlowId,
    bytes: u16,
}

impl Arrivals {
    /// None if `measure.arrivals` names no host.
    pub fn new(plan: &Plan) -> Option<Arrivals> {
        (!plan.arrivals.is_empty()).then(|| Arrivals { hosts: plan.arrivals.clone(), noted: Vec::new() })
    }
}

impl Probe for Arrivals {
    fn wants(&self) -> Wants {
        Wants { arrivals: true, ..Wants::default() }
    }

    #[inline]
    fn on_arrival(&mut self, now: Time, host: &HostSlot, packet: &Packet, _: &Transit) {
        let host = host.host.id();
        if packet.payload_bytes > 0 && self.hosts.contains(&host) {
            self.noted.push(Arrival { at: now, host, flow: packet.flow, bytes: packet.payload_bytes });
        }
    }

    fn pack(&self, to: &mut Writer<'_>) {
        to.u64(self.noted.len() as u64);
        for Arrival { at, host, flow, bytes } in &self.noted {
            to.u64(at.ps());
            to.u32(host.0);
            to.u32(flow.0);
            to.u16(*bytes);
        }
    }

    fn absorb(&mut self, from: &mut Reader<'_>) -> Result<(), Malformed> {
        from.begin("arrivals");
        for _ in 0..from.u64()? {
            let (at, host, flow) = (Time::from_ps(from.u64()?), HostId(from.u32()?), FlowId(from.u32()?));
            self.noted.push(Arrival { at, host, flow, bytes: from.u16()? });
        }
        Ok(())
    }

    /// The table `arrivals`; none if no host is asked about.
    fn tables(seen: &[&Arrivals], whole: &Whole<'_>) -> Vec<Table> {
        if seen.is_empty() {
            return Vec::new();
        }
        let mut rows: Vec<Arrival> = seen.iter().flat_map(|arrivals| arrivals.noted.iter().copied()).collect();
        rows.sort_unstable();
        let number = |value: &dyn Fn(&Arrival) -> u64| Data::U64(rows.iter().map(value).collect());
        let id = |value: &dyn Fn(&Arrival) -> u32| Data::U32(rows.iter().map(value).collect());
        let columns = vec![
            Column::new("time_ps", "ps", "when the packet's last bit arrived", number(&|row| row.at.ps())),
            Column::new("host", "", "where", id(&|row| row.host.0)),
            Column::new("host_name", "", "its name", host_names(&whole.plan.fabric, rows.iter().map(|row| row.host))),
            Column::new("flow", "", "whose", id(&|row| row.flow.0)),
            Column::new("bytes", "B", "payload; a repeated packet counts again", number(&|row| u64::from(row.bytes))),
        ];
        vec![Table { name: "arrivals", columns }]
    }
}
