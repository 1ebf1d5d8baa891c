//! The probes of a run: one line each. The scenario says which of them are active.

mod arrivals;
mod captured;
mod congestion;
mod entities;
mod guarantee;
mod packets;
mod ports;
mod queues;
mod states;
mod utilisation;
mod words;

use std::sync::Arc;

pub use captured::{Capturing, Content, Lost, TellsLosses};
use node::pool::{Pool, Transit};
use node::wire::{Malformed, Reader, Writer};
use node::{Loss, Packet};
use run::{Finding, Plan, Table};
use units::{Duration, PortId, Time};

use crate::{HostSlot, Leaving, NodePort, Probe, SwitchSlot, Upcoming, View, Wants, Whole};

macro_rules! probes {
    ($($name:ident: $kind:ty,)*) => {
        /// The probes of a run that record something.
        #[derive(node::State)]
        pub struct Probes {
            $($name: Option<Box<$kind>>,)*
        }

        impl Probes {
            /// The probes that a scenario asks for.
            pub fn new(plan: &Plan) -> Probes {
                Probes { $($name: <$kind>::new(plan).map(Box::new),)* }
            }

            /// Whether the scenario asks for no probe.
            pub fn is_empty(&self) -> bool {
                true $(&& self.$name.is_none())*
            }
        }

        impl Probe for Probes {
            fn wants(&self) -> Wants {
                Wants::default() $(.or(self.$name.as_ref().map_or(Wants::default(), |probe| probe.wants())))*
            }

            #[inline]
            fn on_arrival(&mut self, now: Time, host: &HostSlot, packet: &Packet, transit: &Transit) {
                $(if let Some(probe) = &mut self.$name { probe.on_arrival(now, host, packet, transit); })*
            }

            fn on_frame(&mut self, now: Time, switch: &SwitchSlot, port: PortId, frame: &Packet, pool: &Pool) {
                $(if let Some(probe) = &mut self.$name { probe.on_frame(now, switch, port, frame, pool); })*
            }

            fn on_host(&mut self, now: Time, host: &HostSlot) {
                $(if let Some(probe) = &mut self.$name { probe.on_host(now, host); })*
            }

            #[inline]
            fn on_enqueue(&mut self, now: Time, switch: &SwitchSlot, port: PortId) {
                $(if let Some(probe) = &mut self.$name { probe.on_enqueue(now, switch, port); })*
            }

            #[inline]
            fn on_departure(&mut self, now: Time, from: NodePort, leaving: Leaving<'_>) {
                $(if let Some(probe) = &mut self.$name { probe.on_departure(now, from, leaving); })*
            }

            #[inline]
            fn on_drop(&mut self, now: Time, at: NodePort, packet: &Packet, why: Loss) {
                $(if let Some(probe) = &mut self.$name { probe.on_drop(now, at, packet, why); })*
            }

            fn on_sample(&mut self, now: Time, view: View<'_>) {
                $(if let Some(probe) = &mut self.$name { probe.on_sample(now, view); })*
            }

            fn on_thin(&mut self, interval: Duration) {
                $(if let Some(probe) = &mut self.$name { probe.on_thin(interval); })*
            }

            fn on_change(&mut self, now: Time, change: Upcoming<'_>, view: View<'_>) {
                $(if let Some(probe) = &mut self.$name { probe.on_change(now, change, view); })*
            }

            fn end(&mut self, view: View<'_>) {
                $(if let Some(probe) = &mut self.$name { probe.end(view); })*
            }

            fn pack(&self, to: &mut Writer<'_>) {
                $(if let Some(probe) = &self.$name { probe.pack(to); })*
            }

            fn absorb(&mut self, from: &mut Reader<'_>) -> Result<(), Malformed> {
                $(if let Some(probe) = &mut self.$name { probe.absorb(from)?; })*
                Ok(())
            }

            fn tables(seen: &[&Probes], whole: &Whole<'_>) -> Vec<Table> {
                let mut tables = Vec::new();
                $({
                    let seen: Vec<&$kind> = seen.iter().filter_map(|probes| probes.$name.as_deref()).collect();
                    tables.extend(<$kind>::tables(&seen, whole));
                })*
                tables
            }

            fn notes(seen: &[&Probes], whole: &Whole<'_>) -> Vec<String> {
                let mut notes = Vec::new();
                $({
                    let seen: Vec<&$kind> = seen.iter().filter_map(|probes| probes.$name.as_deref()).collect();
                    notes.extend(<$kind>::notes(&seen, whole));
                })*
                notes
            }

            fn findings(seen: &[&Probes], whole: &Whole<'_>) -> Vec<Finding> {
                let mut findings = Vec::new();
                $({
                    let seen: Vec<&$kind> = seen.iter().filter_map(|probes| probes.$name.as_deref()).collect();
                    findings.extend(<$kind>::findings(&seen, whole));
                })*
                findings
            }
        }
    };
}

impl Probes {
    /// Adds the probe that records captured links.
    pub fn capturing(mut self, links: Option<&Arc<Capturing>>) -> Probes {
        self.captured = links.map(|links| Box::new(captured::Captured::of(links.clone())));
        self
    }

    /// Adds the probe that reports packets lost at the receiving ends of captured links.
    pub fn telling(mut self, losses: Option<&TellsLosses>) -> Probes {
        self.losses = losses.map(|losses| Box::new(losses.clone()));
        self
    }
}

probes! {
    queues: queues::Queues,
    utilisation: utilisation::Utilisation,
    congestion: congestion::Congestion,
    entities: entities::EntityProbe,
    guarantee: guarantee::Watch,
    arrivals: arrivals::Arrivals,
    packets: packets::Packets,
    events: packets::Events,
    ports: ports::Ports,
    states: states::States,
    captured: captured::Captured,
    losses: captured::TellsLosses,
}
