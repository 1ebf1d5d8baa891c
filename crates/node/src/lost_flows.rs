use rustc_hash::FxHashSet;
use units::FlowId;

use crate::Packet;

/// Flows of which packets were lost, if anybody asks. It costs something only where a packet is lost.
#[derive(Clone, Debug, Default, node::State)]
pub struct LostFlows(Option<Box<FxHashSet<FlowId>>>);

impl LostFlows {
    /// None so far; from now on they are noted.
    pub fn noted() -> LostFlows {
        LostFlows(Some(Box::default()))
    }

    /// A packet is lost.
    #[inline]
    pub fn note(&mut self, packet: &Packet) {
        if let Some(flows) = &mut self.0 {
            flows.insert(packet.flow);
        }
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = FlowId> + '_ {
        self.0.iter().flat_map(|flows| flows.iter().copied())
    }
}
