use std::collections::BTreeSet;

use units::FlowId;

use crate::FlowTable;
use scenario::ResubmitPolicy;

/// The groups by which the audit asks whether a run made progress: packets of one transport and one class of traffic.
#[derive(Clone, Debug)]
pub struct Groups {
    all: Vec<Group>,
    rows: Vec<Row>,
    /// By flow of traffic, its class; empty if no transport carries several.
    class_of: Vec<u16>,
    /// By job: from which flow on its class is which. Then, from which on there is none.
    of_jobs: Vec<(FlowId, Option<u16>)>,
}

/// A transport with a class of traffic that it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// Index of the transport.
    pub transport: u8,
    /// The class; none if all classes of the transport are one group.
    pub class: Option<u16>,
}

/// The groups of a transport.
#[derive(Clone, Debug)]
struct Row {
    first: u16,
    /// By class, its group; empty if there is but one.
    by_class: Vec<u16>,
}

/// More groups than that, of all hosts, are not kept apart by class: each host counts each group.
const HOST_GROUPS_MAX: usize = 1 << 20;

impl Groups {
    /// Of these flows over this many transports. `again`: by class, the transports over which failed flows are
    /// submitted again.
    pub fn new(flows: &FlowTable, transports: usize, again: &[Vec<ResubmitPolicy>], hosts: u32) -> Groups {
        let traffic = flows.of_traffic().iter().map(|flow| (flow.transport, flow.class));
        let mut used: BTreeSet<(u8, u16)> = traffic.chain(flows.jobs().map(|(_, _, carried)| carried)).collect();
        let others = (0..).zip(again).flat_map(|(class, again)| again.iter().map(move |of| (of.transport, class)));
        used.extend(others);
        let by_class = used.len() * hosts as usize <= HOST_GROUPS_MAX;
        let (mut all, mut rows) = (Vec::new(), Vec::new());
        for transport in (0..transports).map(|index| index as u8) {
            let classes: Vec<u16> = used.iter().filter(|of| of.0 == transport).map(|of| of.1).collect();
            let first = all.len() as u16;
            let alone = classes.len() <= 1 || !by_class;
            match alone {
                true => {
                    let class = classes.first().copied().filter(|_| classes.len() == 1);
                    all.push(Group { transport, class });
                }
                false => all.extend(classes.iter().map(|&class| Group { transport, class: Some(class) })),
            }
            let place = |class: u16| first + classes.iter().position(|&of| of == class).unwrap_or(0) as u16;
            let last = classes.last().copied().unwrap_or(0);
            rows.push(Row { first, by_class: if alone { Vec::new() } else { (0..=last).map(place).collect() } });
        }
        let apart = rows.iter().any(|row| !row.by_class.is_empty());
        let class_of = if apart { flows.of_traffic().iter().map(|flow| flow.class).collect() } else { Vec::new() };
        let of_jobs = flows.jobs().map(|(flows, _, (_, class))| (FlowId::from(flows.start), Some(class)));
        let of_jobs = of_jobs.chain([(FlowId::from(flows.planned()), None)]).collect();
        Groups { all, rows, class_of, of_jobs }
    }

    /// All of them.
    pub fn all(&self) -> &[Group] {
        &self.all
    }

    /// The group of a packet of this transport and flow; none for what limiters and attached hosts send. Packets of no
    /// flow are in the transport's first group.
    #[inline]
    pub fn of(&self, transport: u8, flow: FlowId) -> Option<usize> {
        let row = self.rows.get(usize::from(transport))?;
        let class = match row.by_class.is_empty() {
            true => return Some(usize::from(row.first)),
            false => self.class_of.get(flow.index()).copied().or_else(|| {
                let job = self.of_jobs.partition_point(|of| of.0 <= flow).checked_sub(1)?;
                self.of_jobs[job].1
            }),
        };
        let group = class.and_then(|class| row.by_class.get(usize::from(class)));
        Some(usize::from(group.copied().unwrap_or(row.first)))
    }
}

#[cfg(test)]
mod tests;
