//! The outcome of each flow: makes a table of the hosts' records.

use catalogue::Transport;
use fabric::Fabric;
use node::pool::{Hop, Transit};
use serde::Serialize;
use units::{Duration, FlowId, Time};

use crate::{Column, Data, FlowTable, Plan, Table, host_names};
use scenario::{Completion, Scenario};

/// Something that happened to a flow, as its host noted it.
#[derive(Clone, Copy, Debug, node::Saved)]
pub struct FlowRecord {
    /// The flow.
    pub flow: FlowId,
    /// When the application was notified.
    pub at: Time,
    /// When it happened in the network. Earlier than `at` where a machine is late, in a live run.
    pub due: Time,
    /// The event.
    pub fate: FlowEvent,
}

/// Something that a transport measured of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::Saved)]
pub struct Measured {
    /// The flow.
    pub flow: FlowId,
    /// The name of the quantity; ends in its unit.
    pub what: &'static str,
    /// How much.
    pub value: u64,
}

/// The fate of a flow.
#[derive(Clone, Copy, Debug, node::Saved)]
pub enum FlowEvent {
    /// Its application handed it over.
    Started,
    /// Its application submitted it again, after it had been rejected or given up.
    Resubmitted,
    /// The receiver has its last byte.
    Delivered {
        /// How the packet with that last byte spent its time.
        journey: Journey,
        /// Index of the transport that brought it.
        transport: u8,
    },
    /// The sender knows that all has been delivered.
    Completed {
        /// Data packets sent for it.
        sent_packets: u64,
        /// Retransmissions among these packets.
        resent_packets: u64,
    },
    /// The network refused it.
    Rejected,
    /// The sender gave it up.
    Failed(&'static str),
}

/// How the packet that completed a flow spent its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, node::Saved)]
pub struct Journey {
    /// When it left its sender.
    pub sent: Time,
    /// How long it was queued, by kind of hop.
    pub queued: [Duration; 3],
    /// How long it was in transmission.
    pub serialised: Duration,
}

impl From<Transit> for Journey {
    fn from(transit: Transit) -> Journey {
        Journey { sent: transit.sent, queued: transit.queued, serialised: transit.serialised }
    }
}

/// The table `measures`, of what transports have measured; none if nothing.
pub fn measure_table(mut rows: Vec<Measured>) -> Option<Table> {
    if rows.is_empty() {
        return None;
    }
    rows.sort_by_key(|row| (row.flow, row.what));
    let mut names: Vec<String> = Vec::new();
    let mut index = Vec::with_capacity(rows.len());
    for row in &rows {
        let known = names.iter().position(|name| name == row.what);
        index.push(known.unwrap_or_else(|| {
            names.push(row.what.to_owned());
            names.len() - 1
        }) as u32);
    }
    Some(Table {
        name: "measures",
        columns: vec![
            Column::new("flow", "", "the flow's number", Data::U32(rows.iter().map(|row| row.flow.0).collect())),
            Column::new(
                "measure",
                "",
                "what its transport measured; the name ends in the unit",
                Data::Names { index, names },
            ),
            Column::new("value", "", "how much", Data::U64(rows.iter().map(|row| row.value).collect())),
        ],
    })
}

/// The fate of each flow, gathered from the notes of its two hosts.
pub struct Flows {
    /// Per flow, when its application handed it over, in picoseconds; [`Flows::NONE`] for never.
    pub started: Vec<u64>,
    /// When its receiver had its last byte.
    pub delivered: Vec<u64>,
    /// When its sender knew that.
    pub completed: Vec<u64>,
    /// The same three by the network's time, where a machine was late.
    by_network: Option<[Vec<u64>; 3]>,
    journey: Vec<Journey>,
    submissions: Vec<u32>,
    /// One more than the index of the transport that delivered it, or 0.
    delivered_over: Vec<u32>,
    sent_packets: Vec<u64>,
    resent_packets: Vec<u64>,
    /// Its status at the end of the run.
    pub status: Vec<Status>,
    reason: Vec<u32>,
    reasons: Vec<String>,
    /// Flows for which a host reported the same event twice: a fault.
    pub said_twice: u64,
    /// The outcome of flows that have no row.
    pub unlisted: Unlisted,
}

/// How a flow stands at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    /// It was delivered, and its sender knows.
    Completed,
    /// It was delivered; its sender does not know yet.
    Delivered,
    /// The network refused it.
    Rejected,
    /// Its sender gave it up.
    Failed,
    /// It is under way, or never started.
    Unfinished,
}

impl Status {
    const NAMES: [&str; 5] = ["completed", "delivered", "rejected", "failed", "unfinished"];

    /// The state of a flow that was neither refused nor given up, and which of [`Flows::REASONS`] says why.
    pub fn of(started: u64, delivered: u64, completed: u64) -> (Status, u32) {
        match (started != Flows::NONE, delivered != Flows::NONE, completed != Flows::NONE) {
            (_, true, true) => (Status::Completed, 0),
            (false, ..) => (Status::Unfinished, 1),
            (_, false, _) => (Status::Unfinished, 2),
            _ => (Status::Delivered, 3),
        }
    }
}

/// Why a flow was given up that got no answer: where its packets waited then, and what is known of them at the end.
pub(crate) mod reasons {
    /// Packets of it waited at its host's rate limiter.
    pub const AT_LIMITER: &str = "no answer in time: packets wait at its host's rate limiter";
    /// Packets of it waited in its host's NIC, which may not send them.
    pub const HELD: &str = "no answer in time: its host's NIC may not send its packets";
    /// Packets of it were lost.
    pub const LOST: &str = "no answer: packets were lost";
    /// By what its host said: the same, if none of its packets was lost.
    pub const NOT_LOST: [(&str, &str); 3] = [
        (node::Event::NO_ANSWER, "no answer in time, and no packet was lost"),
        (AT_LIMITER, "no answer in time: packets wait at its host's rate limiter, and none was lost"),
        (HELD, "no answer in time: its host's NIC may not send its packets, and none was lost"),
    ];
}

/// The outcome of flows that have no row of their own in results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, node::Saved)]
pub struct Unlisted {
    /// How many there are in all.
    pub flows: u64,
    /// How many their applications handed over.
    pub started: u64,
    /// How many were delivered.
    pub delivered: u64,
    /// Of how many the sender knew.
    pub completed: u64,
    /// How many were refused or given up.
    pub failed: u64,
    /// When the last was handed over.
    pub last_start: Time,
    /// Their share in a run's totals.
    pub rest: Rest,
}

/// The share of flows without a row of their own in a run's totals, so that these don't depend on how many rows are
/// kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, node::Saved)]
pub struct Rest {
    /// How many there are.
    pub flows: u64,
    /// Bytes of those that were delivered.
    pub delivered_bytes: u64,
    /// When the first was handed over, in picoseconds; `None` if none was.
    pub first_start_ps: Option<u64>,
    /// When the last was delivered, in picoseconds; `None` if none was.
    pub last_delivery_ps: Option<u64>,
    /// Data packets that were sent for those that completed.
    pub sent_packets: u64,
    /// Of these, packets that had been sent before.
    pub resent_packets: u64,
}

impl Rest {
    /// One is handed over.
    pub fn start(&mut self, at: Time) {
        let first = self.first_start_ps.get_or_insert(at.ps());
        *first = at.ps().min(*first);
    }

    /// One of this size is delivered.
    pub fn deliver(&mut self, at: Time, bytes: u64) {
        self.delivered_bytes += bytes;
        self.last_delivery_ps = self.last_delivery_ps.max(Some(at.ps()));
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: Rest) -> Rest {
        let starts = [self.first_start_ps, other.first_start_ps].into_iter().flatten();
        Rest {
            flows: self.flows + other.flows,
            delivered_bytes: self.delivered_bytes + other.delivered_bytes,
            first_start_ps: starts.min(),
            last_delivery_ps: self.last_delivery_ps.max(other.last_delivery_ps),
            sent_packets: self.sent_packets + other.sent_packets,
            resent_packets: self.resent_packets + other.resent_packets,
        }
    }

    /// `None` if there is no such flow.
    pub fn if_any(self) -> Option<Rest> {
        (self.flows > 0).then_some(self)
    }
}

impl Unlisted {
    /// Something happened to one of this size.
    pub fn add(&mut self, fate: FlowEvent, at: Time, bytes: u64) {
        match fate {
            FlowEvent::Started => {
                (self.started, self.last_start) = (self.started + 1, at.max(self.last_start));
                self.rest.start(at);
            }
            FlowEvent::Resubmitted => {}
            FlowEvent::Delivered { .. } => {
                self.delivered += 1;
                self.rest.deliver(at, bytes);
            }
            FlowEvent::Completed { sent_packets, resent_packets } => {
                self.completed += 1;
                self.rest.sent_packets += sent_packets;
                self.rest.resent_packets += resent_packets;
            }
            FlowEvent::Rejected | FlowEvent::Failed(_) => self.failed += 1,
        }
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: Unlisted) -> Unlisted {
        Unlisted {
            flows: self.flows + other.flows,
            started: self.started + other.started,
            delivered: self.delivered + other.delivered,
            completed: self.completed + other.completed,
            failed: self.failed + other.failed,
            last_start: self.last_start.max(other.last_start),
            rest: self.rest.and(other.rest),
        }
    }

    /// How many are under way.
    pub fn under_way(&self) -> u64 {
        self.started.saturating_sub(self.completed + self.failed)
    }
}

impl Flows {
    /// In place of a time that there is not.
    pub const NONE: u64 = u64::MAX;
    /// Reasons that need no transport to say them, as [`Status::of`] numbers them.
    pub const REASONS: [&str; 4] = ["", "not started", "not delivered", "not acknowledged"];

    /// Gathers what hosts noted about flows: of each that has a row, and of the others together.
    pub fn gather<'a>(table: &FlowTable, unlisted: Unlisted, records: impl Iterator<Item = &'a FlowRecord>) -> Flows {
        let count = table.row_count();
        let rest = Rest { flows: table.unlisted(), ..unlisted.rest };
        let mut flows = Flows {
            unlisted: Unlisted { flows: table.unlisted(), rest, ..unlisted },
            started: vec![Flows::NONE; count],
            delivered: vec![Flows::NONE; count],
            completed: vec![Flows::NONE; count],
            by_network: None,
            journey: vec![Journey::default(); count],
            submissions: vec![0; count],
            delivered_over: vec![0; count],
            sent_packets: vec![0; count],
            resent_packets: vec![0; count],
            status: vec![Status::Unfinished; count],
            reason: vec![0; count],
            reasons: Flows::REASONS.map(str::to_owned).to_vec(),
            said_twice: 0,
        };
        for record in records {
            let at = record.at.ps();
            let Some(index) = table.row(record.flow) else { continue };
            flows.note_due(record, index);
            let mut note = |slot: &mut u64| {
                flows.said_twice += u64::from(*slot != Flows::NONE);
                *slot = at;
            };
            match record.fate {
                FlowEvent::Started => {
                    note(&mut flows.started[index]);
                    flows.submissions[index] += 1;
                }
                FlowEvent::Resubmitted => flows.submissions[index] += 1,
                FlowEvent::Delivered { journey, transport } => {
                    note(&mut flows.delivered[index]);
                    flows.journey[index] = journey;
                    flows.delivered_over[index] = u32::from(transport) + 1;
                }
                FlowEvent::Completed { sent_packets, resent_packets } => {
                    note(&mut flows.completed[index]);
                    flows.sent_packets[index] = sent_packets;
                    flows.resent_packets[index] = resent_packets;
                }
                FlowEvent::Rejected => flows.status[index] = Status::Rejected,
                FlowEvent::Failed(reason) => {
                    flows.status[index] = Status::Failed;
                    let known = flows.reasons.iter().position(|known| known == reason);
                    flows.reason[index] = known.unwrap_or_else(|| {
                        flows.reasons.push(reason.to_owned());
                        flows.reasons.len() - 1
                    }) as u32;
                }
            }
        }
        // In the order of the alphabet, whichever host has said one first.
        let mut sorted = flows.reasons.split_off(Flows::REASONS.len());
        let said = sorted.clone();
        sorted.sort_unstable();
        for reason in flows.reason.iter_mut().filter(|reason| **reason as usize >= Flows::REASONS.len()) {
            let text = &said[*reason as usize - Flows::REASONS.len()];
            *reason = (Flows::REASONS.len() + sorted.partition_point(|other| other < text)) as u32;
        }
        flows.reasons.append(&mut sorted);
        for index in 0..count {
            if flows.status[index] != Status::Unfinished {
                continue;
            }
            (flows.status[index], flows.reason[index]) =
                Status::of(flows.started[index], flows.delivered[index], flows.completed[index]);
        }
        flows
    }

    /// Says of each flow that was given up for want of an answer whether packets of it were lost. `lost` are all flows
    /// of which any were.
    pub fn explain(&mut self, lost: impl Iterator<Item = FlowId>) {
        let mut unanswered = Vec::new();
        for (said, not_lost) in reasons::NOT_LOST {
            if let Some(index) = self.reasons.iter().position(|reason| reason == said) {
                self.reasons[index] = not_lost.to_owned();
                unanswered.push(index as u32);
            }
        }
        if unanswered.is_empty() {
            return;
        }
        let because = self.reasons.len() as u32;
        for flow in lost.map(FlowId::index) {
            if self.reason.get(flow).is_some_and(|reason| unanswered.contains(reason)) {
                self.reason[flow] = because;
            }
        }
        if self.reason.contains(&because) {
            self.reasons.push(reasons::LOST.to_owned());
        }
    }

    /// Notes when something happened in the network, once something has been late.
    fn note_due(&mut self, record: &FlowRecord, index: usize) {
        if record.due == record.at && self.by_network.is_none() {
            return;
        }
        // Before the first that was late, both times were the same.
        let [started, delivered, completed] = match &mut self.by_network {
            Some(known) => known,
            none => none.insert([self.started.clone(), self.delivered.clone(), self.completed.clone()]),
        };
        let times = match record.fate {
            FlowEvent::Started => started,
            FlowEvent::Delivered { .. } => delivered,
            FlowEvent::Completed { .. } => completed,
            _ => return,
        };
        times[index] = record.due.ps();
    }

    /// By row of a flow, when it was handed over, was there, and was known to be, by the network's time, in
    /// picoseconds.
    pub fn times(&self) -> [&[u64]; 3] {
        match &self.by_network {
            Some([started, delivered, completed]) => [started, delivered, completed],
            None => [&self.started, &self.delivered, &self.completed],
        }
    }

    /// By flow, how late the machine was at its end, in picoseconds; [`Flows::NONE`] if it has none.
    pub fn late_ps(&self, scenario: &Scenario) -> Vec<u64> {
        let by_machine = [&self.started, &self.delivered, &self.completed];
        let last = |[started, delivered, completed]: [&[u64]; 3], flow: usize| {
            FlowColumns::last_of(scenario, started[flow], delivered[flow], completed[flow])
        };
        let late = |flow| Some(last(by_machine.map(|of| &of[..]), flow)?.saturating_sub(last(self.times(), flow)?));
        (0..self.started.len()).map(|flow| late(flow).unwrap_or(Flows::NONE)).collect()
    }

    /// Data packets that were sent for all flows that completed, and those of them that had been sent before.
    pub fn all_packets(&self) -> (u64, u64) {
        let rest = self.unlisted.rest;
        let listed = |of: &[u64]| of.iter().sum::<u64>();
        (listed(&self.sent_packets) + rest.sent_packets, listed(&self.resent_packets) + rest.resent_packets)
    }

    /// Data packets that were sent for a flow, and those of them that had been sent before, as its sender said on
    /// completion.
    pub fn packets(&self, flow: usize) -> (u64, u64) {
        (self.sent_packets[flow], self.resent_packets[flow])
    }

    /// How many completed.
    pub fn completed(&self) -> u64 {
        let listed = self.status.iter().filter(|&&status| status == Status::Completed).count() as u64;
        listed + self.unlisted.completed
    }

    /// The table `flows`.
    pub fn table(self, plan: &Plan) -> Table {
        let flows = self;
        let ideal_ps = plan.ideals();
        let common = FlowColumns {
            scenario: &plan.scenario,
            fabric: &plan.fabric,
            flows: &plan.flows,
            transports: &plan.transports,
            ideal_ps: &ideal_ps,
        };
        let parts_of_fct = flows.parts_of_fct(&common);
        let names = plan.transports.iter().map(|transport| transport.name().to_owned());
        let delivered_over =
            Data::Names { index: flows.delivered_over, names: std::iter::once(String::new()).chain(names).collect() };
        let mut columns = common.who();
        columns.extend([
            Column::new(
                "submissions",
                "",
                "how often it was submitted to a transport; after a rejection or failure again, if its class says so",
                Data::U32(flows.submissions),
            ),
            Column::new("delivered_over", "", "transport that delivered it; empty if none has", delivered_over),
        ]);
        columns.extend(common.when(flows.started, flows.delivered, flows.completed));
        columns.extend([
            Column::new(
                "sent_packets",
                "",
                "data packets sent for it, as its sender reports on completion",
                Data::U64(flows.sent_packets),
            ),
            Column::new(
                "resent_packets",
                "",
                "of those, packets that had been sent before",
                Data::U64(flows.resent_packets),
            ),
        ]);
        columns.extend(standing_columns(&flows.status, flows.reason, flows.reasons));
        columns.extend(part_columns(parts_of_fct));
        Table { name: "flows", columns }
    }

    /// By flow, what its completion time is made of, in the order of [`part_columns`]; [`Flows::NONE`] where it was not
    /// completed.
    fn parts_of_fct(&self, common: &FlowColumns<'_>) -> [Vec<u64>; 7] {
        let count = self.started.len();
        let mut parts_of_fct: [Vec<u64>; 7] = std::array::from_fn(|_| vec![Flows::NONE; count]);
        for flow in 0..count {
            let (start, delivered, completed) = (self.started[flow], self.delivered[flow], self.completed[flow]);
            let Some(last) = common.last(start, delivered, completed) else { continue };
            let journey = self.journey[flow];
            let queued = journey.queued.map(|queued| queued.ps());
            // Another process's report on a packet's path need not add up.
            let transit = delivered.saturating_sub(journey.sent.ps());
            let propagation = transit.saturating_sub(queued.iter().sum::<u64>() + journey.serialised.ps());
            let spent = [
                journey.sent.ps().saturating_sub(start),
                queued[Hop::Up as usize],
                queued[Hop::Down as usize],
                queued[Hop::Last as usize],
                journey.serialised.ps(),
                propagation,
                last.saturating_sub(delivered),
            ];
            for (column, spent) in parts_of_fct.iter_mut().zip(spent) {
                column[flow] = spent;
            }
        }
        parts_of_fct
    }
}

/// The parts of completion times.
fn part_columns(parts_of_fct: [Vec<u64>; 7]) -> [Column; 7] {
    let [wait, up, down, last, serialised, propagation, back] = parts_of_fct.map(Data::OptU64);
    [
        Column::new("wait_ps", "ps", "of fct_ps: until the packet that completed it left the sender", wait),
        Column::new("queued_up_ps", "ps", "of fct_ps: that packet in queues of links that lead away from hosts", up),
        Column::new(
            "queued_down_ps",
            "ps",
            "of fct_ps: that packet in queues of links between switches that lead towards hosts",
            down,
        ),
        Column::new("queued_last_ps", "ps", "of fct_ps: that packet in the queue to its host", last),
        Column::new("serialised_ps", "ps", "of fct_ps: that packet in transmission, link after link", serialised),
        Column::new(
            "propagation_ps",
            "ps",
            "of fct_ps: that packet's propagation, and processing in switches and hosts",
            propagation,
        ),
        Column::new(
            "return_ps",
            "ps",
            "of fct_ps: from delivery until the sender knew; zero if completion is delivery",
            back,
        ),
    ]
}

/// The columns of the table `flows` at every level of detail.
#[derive(Clone, Copy)]
pub struct FlowColumns<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Its fabric, whose hosts have names.
    pub fabric: &'a Fabric,
    /// Its flows.
    pub flows: &'a FlowTable,
    /// Its transports.
    pub transports: &'a [Transport],
    /// By row, its completion time alone in the network, in picoseconds.
    pub ideal_ps: &'a [u64],
}

impl FlowColumns<'_> {
    /// When a flow was complete, as the scenario defines completion; none if it was not, or never started.
    pub fn last(&self, start: u64, delivered: u64, completed: u64) -> Option<u64> {
        FlowColumns::last_of(self.scenario, start, delivered, completed)
    }

    fn last_of(scenario: &Scenario, start: u64, delivered: u64, completed: u64) -> Option<u64> {
        let last = match scenario.measure.completion {
            Completion::Delivered => delivered,
            Completion::Acknowledged => completed.max(delivered),
        };
        let known = [start, delivered, last].iter().all(|at| *at != Flows::NONE);
        known.then_some(last)
    }

    /// Who sends what to whom.
    pub fn who(&self) -> Vec<Column> {
        let flows = || self.flows.rows().map(|of| of.1);
        let class = Data::Names {
            index: flows().map(|flow| u32::from(flow.class)).collect(),
            names: self.scenario.classes().map(|class| class.name.to_owned()).collect(),
        };
        let transport = Data::Names {
            index: flows().map(|flow| u32::from(flow.transport)).collect(),
            names: self.transports.iter().map(|transport| transport.name().to_owned()).collect(),
        };
        vec![
            Column::new(
                "flow",
                "",
                "the flow's number, in order of start",
                Data::U32(self.flows.rows().map(|of| of.0.0).collect()),
            ),
            Column::new("src", "", "sending host", Data::U32(flows().map(|flow| flow.src.0).collect())),
            Column::new("dst", "", "receiving host", Data::U32(flows().map(|flow| flow.dst.0).collect())),
            Column::new(
                "source",
                "",
                "name of the sending host",
                host_names(self.fabric, flows().map(|flow| flow.src)),
            ),
            Column::new(
                "destination",
                "",
                "name of the receiving host",
                host_names(self.fabric, flows().map(|flow| flow.dst)),
            ),
            Column::new("bytes", "B", "length of the message", Data::U64(flows().map(|flow| flow.bytes).collect())),
            Column::new("class", "", "traffic class of the scenario", class),
            Column::new("transport", "", "transport that it was first submitted to", transport),
        ]
    }

    /// When what happened to each, in picoseconds; [`Flows::NONE`] for never.
    pub fn when(&self, started: Vec<u64>, delivered: Vec<u64>, completed: Vec<u64>) -> Vec<Column> {
        let mut fct = vec![Flows::NONE; started.len()];
        let mut slowdown = vec![f64::NAN; started.len()];
        for flow in 0..started.len() {
            if let Some(last) = self.last(started[flow], delivered[flow], completed[flow]) {
                fct[flow] = last.saturating_sub(started[flow]);
                slowdown[flow] = fct[flow] as f64 / self.ideal_ps[flow] as f64;
            }
        }
        vec![
            Column::new(
                "start_ps",
                "ps",
                "when the application submitted it; null if it never did",
                Data::OptU64(started),
            ),
            Column::new("delivered_ps", "ps", "when the receiver had its last byte", Data::OptU64(delivered)),
            Column::new("completed_ps", "ps", "when the sender knew of that", Data::OptU64(completed)),
            Column::new(
                "fct_ps",
                "ps",
                "flow completion time, as measure.completion defines completion",
                Data::OptU64(fct),
            ),
            Column::new(
                "ideal_ps",
                "ps",
                "completion time of the same flow alone in the network, sent at line rate over all shortest paths",
                Data::U64(self.ideal_ps.to_vec()),
            ),
            Column::new("slowdown", "", "fct_ps / ideal_ps", Data::F64(slowdown)),
        ]
    }
}

/// How flows stand at the end of a run, and why, by the index of a reason.
pub fn standing_columns(status: &[Status], reason: Vec<u32>, reasons: Vec<String>) -> [Column; 2] {
    let status = Data::Names {
        index: status.iter().map(|&status| status as u32).collect(),
        names: Status::NAMES.map(str::to_owned).to_vec(),
    };
    [
        Column::new(
            "status",
            "",
            "completed; delivered (the sender does not know yet); rejected; failed; unfinished",
            status,
        ),
        Column::new("reason", "", "why it is not completed", Data::Names { index: reason, names: reasons }),
    ]
}
