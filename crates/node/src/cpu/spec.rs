//! The keys of a scenario for hosts' cores.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, PerByte, Problem, Rate};

/// Times that hosts' cores spend on messages and packets, and how these are spread over them. Each time is zero unless
/// `like` or the key itself says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CpuSpec {
    /// Measured hosts whose times, cores and batches are the defaults of all keys here. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<CpuLike>,
    /// Cores, each of which does one thing at a time. Flows are spread over them by a hash, as by RSS. Default: that of
    /// `like`, else 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024))]
    pub cores: Option<u32>,
    /// How many times as long a core takes for what it begins while its sibling (cores 0 and 1, 2 and 3, ...) works or
    /// has a thread that polls: two hardware threads of one core (SMT). Default: that of `like`, else 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1.0, max = 100.0))]
    pub sibling_slowdown: Option<f64>,
    /// Time of a core from an application's call until its transport has the message. Default: that of `like`, else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-most" = "1s"))]
    pub per_message_send: Option<Duration>,
    /// Time of a core for a packet on its way to the NIC, or for a batch of `tso`. Default: that of `like`, else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-most" = "1s"))]
    pub per_packet_send: Option<Duration>,
    /// Most bytes of a batch: packets of a flow that its transport makes one behind the other, which the NIC cuts
    /// apart. Default: that of `like`, else a packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tso: Option<Bytes>,
    /// Bytes that may be on their way from transports to the link; with more, transports are not asked for packets.
    /// Default: that of `like`, else a batch for each core and two packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic_queue: Option<Bytes>,
    /// Rate of the PCIe bus, in each direction. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_rate: Option<Rate>,
    /// Time for which a packet is on its way over the bus, in each direction, besides its bytes' time. Default: that of
    /// `like`, else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-most" = "1s"))]
    pub pcie_latency: Option<Duration>,
    /// Time for which the NIC holds an interrupt back after a packet, so that more may come (`rx-usecs`). Default: that
    /// of `like`, else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-most" = "1s"))]
    pub interrupt_moderation: Option<Duration>,
    /// Time of a core for an interrupt. There is none while the core polls. Default: that of `like`, else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-most" = "1s"))]
    pub interrupt: Option<Duration>,
    /// Time of a core for a packet that it polls: driver and GRO. Default: that of `like`, else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-most" = "1s"))]
    pub per_packet_receive: Option<Duration>,
    /// Most data packets of a batch: packets of a flow that were polled together. Default: that of `like`, else 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024))]
    pub gro: Option<u32>,
    /// Time until another core, that of the flow's hash, begins with a batch. At 0 the core that has polled goes on
    /// itself. Default: that of `like`, else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-most" = "1s"))]
    pub hand_over: Option<Duration>,
    /// Time of a core for a batch: the protocol stack. Default: that of `like`, else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-most" = "1s"))]
    pub per_batch_receive: Option<Duration>,
    /// Threads of applications that receive messages, spread over the cores in turn. Default: that of `like`, else one
    /// for each core.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4096))]
    pub threads: Option<u32>,
    /// Sockets among which threads are divided in turn. A message comes to the socket that its flow's hash names, and
    /// waits for that thread of the socket that has least to do. With as many as threads each flow has one thread, as a
    /// connection has. Default: that of `like`, else 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4096))]
    pub ports: Option<u32>,
    /// Time until a sleeping thread runs. Default: that of `like`, else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-most" = "1s"))]
    pub wake_up: Option<Duration>,
    /// How long a thread polls for the next message before it sleeps. Default: that of `like`, else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polling: Option<Duration>,
    /// Time of a core for a message that its thread receives. Default: that of `like`, else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-most" = "1s"))]
    pub per_message_receive: Option<Duration>,
}

/// Hosts that have been measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CpuLike {
    /// CloudLab's xl170 (10 cores of two hardware threads, 25 Gbps) under Linux 5.17.7 with Homa, messages of 100 B one
    /// at a time: means of the client's and the server's column of HomaModule's notes on performance, item 33; item 29
    /// for `wake_up`.
    LinuxXl170,
}

impl CpuSpec {
    /// Checks what types can't express. Keys of errors are relative to the table.
    ///
    /// # Errors
    /// The key, and what would be right.
    pub fn check(&self) -> Result<(), Problem> {
        if self.pcie_rate == Some(Rate::ZERO) {
            return Err(Problem::new("pcie_rate", "at 0 no packet would come through; leave it out for no limit"));
        }
        if self.nic_queue == Some(Bytes(0)) {
            return Err(Problem::new("nic_queue", "at 0B no packet would leave; write at least a packet, \"9KB\""));
        }
        let Costs { threads, ports, .. } = self.costs(1_500);
        if ports > threads {
            let message = format!("{ports} sockets are more than {threads} threads, and some would have none");
            return Err(Problem::new("ports", format!("{message}; write at most {threads}, or more threads")));
        }
        Ok(())
    }

    /// Keys that have no effect, with the reason. They are relative to the table.
    pub fn advice(&self) -> Vec<Problem> {
        let costs = self.costs(1_500);
        let idle = [
            (
                "gro",
                self.gro.is_some() && costs.per_batch_receive == Duration::ZERO,
                "has no effect without per_batch_receive, which a batch costs once; write that or delete this",
            ),
            (
                "tso",
                self.tso.is_some() && costs.per_packet_send == Duration::ZERO,
                "has no effect without per_packet_send, which a batch costs once; write that or delete this",
            ),
            (
                "polling",
                self.polling.is_some() && costs.wake_up == Duration::ZERO,
                "has no effect without wake_up, which polling saves; write that or delete this",
            ),
        ];
        idle.into_iter().filter(|idle| idle.1).map(|(key, _, why)| Problem::new(key, why)).collect()
    }

    /// All values, for packets of at most `mtu_bytes`.
    pub fn costs(&self, mtu_bytes: u64) -> Costs {
        let like = self.like.map_or(Costs::NONE, CpuLike::costs);
        let cores = self.cores.unwrap_or(like.cores).max(1);
        let tso = self.tso.map_or(like.tso, |tso| tso.get());
        let threads = self.threads.unwrap_or(if like.threads > 0 { like.threads } else { cores }).max(1);
        let queue = u64::from(cores).saturating_mul(tso.max(mtu_bytes)).saturating_add(2 * mtu_bytes);
        Costs {
            cores,
            sibling_slowdown: self.sibling_slowdown.unwrap_or(like.sibling_slowdown),
            per_message_send: self.per_message_send.unwrap_or(like.per_message_send),
            per_packet_send: self.per_packet_send.unwrap_or(like.per_packet_send),
            tso,
            nic_queue: self.nic_queue.map_or(if like.nic_queue > 0 { like.nic_queue } else { queue }, |of| of.get()),
            pcie: self.pcie_rate.map(Rate::per_byte),
            pcie_latency: self.pcie_latency.unwrap_or(like.pcie_latency),
            interrupt_moderation: self.interrupt_moderation.unwrap_or(like.interrupt_moderation),
            interrupt: self.interrupt.unwrap_or(like.interrupt),
            per_packet_receive: self.per_packet_receive.unwrap_or(like.per_packet_receive),
            gro: self.gro.unwrap_or(like.gro).max(1),
            hand_over: self.hand_over.unwrap_or(like.hand_over),
            per_batch_receive: self.per_batch_receive.unwrap_or(like.per_batch_receive),
            threads,
            ports: self.ports.unwrap_or(like.ports.min(threads)),
            wake_up: self.wake_up.unwrap_or(like.wake_up),
            polling: self.polling.unwrap_or(like.polling),
            per_message_receive: self.per_message_receive.unwrap_or(like.per_message_receive),
        }
    }
}

/// All values of [`CpuSpec`]; the keys there have their meaning.
#[derive(Clone, Copy, Debug, PartialEq, crate::Saved)]
pub struct Costs {
    /// Number of cores.
    pub cores: u32,
    /// Factor of a core's times while its sibling is busy.
    pub sibling_slowdown: f64,
    /// Of a core, for a message that an application sends.
    pub per_message_send: Duration,
    /// Of a core, for a batch to the NIC.
    pub per_packet_send: Duration,
    /// Most bytes of a batch; less than a packet stands for one packet.
    pub tso: u64,
    /// Bytes from which on transports are not asked.
    pub nic_queue: u64,
    /// Of the bus, for a byte; none for no time.
    pub pcie: Option<PerByte>,
    /// Of the bus, besides.
    pub pcie_latency: Duration,
    /// Until the NIC raises an interrupt.
    pub interrupt_moderation: Duration,
    /// Of a core, for an interrupt.
    pub interrupt: Duration,
    /// Of a core, for a packet.
    pub per_packet_receive: Duration,
    /// Most packets of a batch that came.
    pub gro: u32,
    /// Until another core has a batch; 0 for the same core.
    pub hand_over: Duration,
    /// Of a core, for a batch that came.
    pub per_batch_receive: Duration,
    /// Number of threads that receive messages.
    pub threads: u32,
    /// Number of sockets that they are divided among.
    pub ports: u32,
    /// Until a sleeping thread runs.
    pub wake_up: Duration,
    /// Until a thread sleeps.
    pub polling: Duration,
    /// Of a core, for a message that is received.
    pub per_message_receive: Duration,
}

impl Costs {
    const NONE: Costs = Costs {
        cores: 1,
        sibling_slowdown: 1.0,
        per_message_send: Duration::ZERO,
        per_packet_send: Duration::ZERO,
        tso: 0,
        nic_queue: 0,
        pcie: None,
        pcie_latency: Duration::ZERO,
        interrupt_moderation: Duration::ZERO,
        interrupt: Duration::ZERO,
        per_packet_receive: Duration::ZERO,
        gro: 1,
        hand_over: Duration::ZERO,
        per_batch_receive: Duration::ZERO,
        threads: 0,
        ports: 1,
        wake_up: Duration::ZERO,
        polling: Duration::ZERO,
        per_message_receive: Duration::ZERO,
    };

    /// Time of this number of bytes on the bus.
    pub fn pcie_time(&self, bytes: u64) -> Duration {
        self.pcie.map_or(Duration::ZERO, |of| of.transmit(u32::try_from(bytes).unwrap_or(u32::MAX)))
    }

    /// The time of a lone packet of this length from its transport to the peer's, without the network's.
    pub fn of_packet(&self, bytes: u64) -> Duration {
        let bus = self.pcie_time(bytes) * 2 + self.pcie_latency * 2;
        let polled = self.interrupt_moderation + self.interrupt + self.per_packet_receive;
        self.per_packet_send + bus + polled + self.hand_over + self.per_batch_receive
    }

    /// The time of applications for a message, at both ends.
    pub fn of_message(&self) -> Duration {
        self.per_message_send + self.of_reading()
    }

    /// That of the receiving one, if no thread sleeps that polls at all.
    pub fn of_reading(&self) -> Duration {
        let wakes = if self.polling == Duration::ZERO { self.wake_up } else { Duration::ZERO };
        wakes + self.per_message_receive
    }

    /// The least time by which the last packet of a message is later for the others, `before` of them, each of
    /// `bytes` and as long as `link` on the slowest link: where a stage takes longer for them than that link.
    pub fn behind(&self, before: u128, bytes: u64, link: Duration) -> u128 {
        let wide = |time: Duration| u128::from(time.ps());
        let of_batch = |packets: u64| before / u128::from(packets.max(1));
        // The last packet's batch is counted with it, and so are packets that share it.
        let stages = [
            of_batch(self.tso / bytes.max(1)) * wide(self.per_packet_send),
            before * wide(self.pcie_time(bytes)),
            before * wide(self.per_packet_receive),
            of_batch(self.gro.into()) * wide(self.per_batch_receive),
        ];
        let slowest = stages.into_iter().max().unwrap_or_default();
        slowest.saturating_sub(before * wide(link))
    }
}

impl CpuLike {
    fn costs(self) -> Costs {
        let ns = Duration::from_ns;
        match self {
            // Item 33, client and server: homa_send 588 and 461, IP and driver 548 and 514; interrupt to GRO 1003 and
            // 923, GRO 227 and 200, wake SoftIRQ 480 and 601, IP 441 and 361 and Homa 469 and 702, wake application 106
            // and 94 and homa_recv 562 and 447. From NIC to NIC and back it is 6361: less that of the network (a switch
            // twice, 300 each; four links of 10 m, and 160 B on each at 25 Gbps), a quarter for each crossing of a bus.
            // Batches, the queue to the link and threads are as that cluster's scripts set them.
            //
            // The timeline does not say how much of the time until GRO is the interrupt's. It is counted for each
            // packet here: one core that polls is the bottleneck of a long message, at 18 to 27 Gbps with packets of
            // 3,000 B (items 9 and 39). Two siblings do about a quarter more than one alone (Marr et al.,
            // "Hyper-Threading Technology Architecture and Microarchitecture", 2002: 16 to 28% more for web servers).
            CpuLike::LinuxXl170 => Costs {
                cores: 20,
                sibling_slowdown: 1.6,
                per_message_send: ns(525),
                per_packet_send: ns(531),
                tso: 10_000,
                nic_queue: 6_250,
                pcie_latency: ns(1_339),
                per_packet_receive: ns(963 + 214),
                gro: 20,
                hand_over: ns(541),
                per_batch_receive: ns(987),
                threads: 18,
                ports: 6,
                wake_up: ns(2_000),
                polling: Duration::from_us(50),
                per_message_receive: ns(605),
                ..Costs::NONE
            },
        }
    }
}
