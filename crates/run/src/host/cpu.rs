//! A host whose software costs time: what its cores have done, and what they are given.

use node::cpu::{Arrived, Cpu, Done, Message};
use node::pool::Transit;
use node::{Packet, Telemetry};
use units::{FlowId, Time};

use super::Host;
use crate::{FlowEvent, FlowRecord};

impl Host {
    /// The same host, whose software costs time.
    pub(crate) fn with_cpu(self, cpu: Option<Cpu>) -> Host {
        Host { keeps_time: self.keeps_time || cpu.is_some(), cpu: cpu.map(Box::new), ..self }
    }

    /// Goes on with what cores have done by now.
    #[cold]
    pub(super) fn go_on(&mut self, now: Time) {
        while let Some(done) = self.cpu.as_mut().and_then(|cpu| cpu.next(now)) {
            match done {
                Done::Packets(batch) => {
                    for Arrived { packet, transit, telemetry } in batch {
                        self.reach(now, &packet, &transit, telemetry.as_ref());
                    }
                }
                Done::Submitted(flow, transport) => self.submit_over(now, flow, transport),
                Done::Read(message) => self.received(now, message),
            }
        }
    }

    /// Asks transports for packets while there is room for them on the way to the link, and gives them to the cores.
    #[cold]
    pub(super) fn feed(&mut self, now: Time) {
        let mut room = self.cpu.as_ref().map_or(0, |cpu| cpu.room());
        while room > 0 {
            let (Some(packet), Some(cpu)) = (self.ask_endpoints(now), &mut self.cpu) else { break };
            room = room.saturating_sub(packet.wire_bytes.into());
            cpu.send(packet);
        }
        if let Some(cpu) = &mut self.cpu {
            cpu.hand_out(now);
        }
    }

    /// The next packet that cores have brought to the NIC.
    #[cold]
    pub(super) fn pull_from_cores(&mut self, now: Time) -> Option<Packet> {
        let packet = self.cpu.as_mut()?.pull();
        self.feed(now);
        packet
    }

    /// A packet has come to the NIC.
    #[cold]
    pub(super) fn come_to_cores(
        &mut self,
        now: Time,
        packet: &Packet,
        transit: &Transit,
        telemetry: Option<&Telemetry>,
    ) {
        if let Some(cpu) = &mut self.cpu {
            cpu.arrive(now, Arrived { packet: *packet, transit: *transit, telemetry: telemetry.copied() });
        }
    }

    /// A transport has a message that came whole. Returns whether a thread has to receive it first.
    #[cold]
    pub(super) fn is_read_later(
        &mut self,
        now: Time,
        flow: FlowId,
        transport: usize,
        transit: Option<&Transit>,
    ) -> bool {
        let Some(cpu) = &mut self.cpu else { return false };
        cpu.read(now, Message { flow, transport: transport as u8, transit: transit.copied() });
        true
    }

    /// A thread has received a message. With software that costs time each message ends twice: for its sender and here.
    fn received(&mut self, now: Time, message: Message) {
        let Message { flow, transport, transit } = message;
        let journey = Host::journey(now, transit.as_ref());
        self.note(FlowRecord { flow, at: now, due: now, fate: FlowEvent::Delivered { journey, transport } });
        self.tell_jobs(|jobs, start| jobs.delivered(now, flow, start), now);
        self.ended += 1;
    }
}
