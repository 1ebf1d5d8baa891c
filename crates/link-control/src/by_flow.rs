use node::FlowMap;
use node::link::{Cause, LinkCx};
use units::{FlowId, PortId};

use node::flow_queues::FlowQueues;

use crate::queue_frame::Frame;

/// A queue for each flow that has packets at a port or is paused there, with data of type `T`.
#[derive(node::State)]
pub(crate) struct ByFlow<T> {
    flows: FlowMap<T>,
}

impl<T> Default for ByFlow<T> {
    fn default() -> Self {
        ByFlow { flows: FlowMap::default() }
    }
}

impl<T: Default> ByFlow<T> {
    /// The queue of a flow.
    #[inline]
    pub fn slot(&mut self, flow: FlowId) -> u32 {
        self.flows.slot(flow).unwrap_or_else(|| self.flows.insert(flow, T::default()))
    }

    /// The flow of a queue in use.
    pub fn cause(&self, slot: u32) -> Cause {
        Cause::Flow(self.flows.get(slot).expect("a queue in use has a flow").0)
    }

    /// The data of the flow of a queue.
    #[inline]
    pub fn noted(&mut self, slot: u32) -> &mut T {
        self.flows.get_mut(slot).expect("a queue in use has a flow").1
    }

    /// The data of a flow that has a queue.
    #[inline]
    pub fn of(&self, flow: FlowId) -> Option<&T> {
        self.flows.slot(flow).and_then(|slot| self.flows.get(slot)).map(|(_, noted)| noted)
    }

    /// Frees the queue of a flow if it is empty and not paused.
    #[inline]
    pub fn tidy(&mut self, queues: &FlowQueues, slot: u32) {
        if queues.bytes(slot) == 0 && !queues.is_paused(slot) {
            self.flows.remove(slot);
        }
    }

    /// A frame from the other end of the link at `port`, which names a flow.
    pub fn frame(&mut self, queues: &mut FlowQueues, cx: &mut LinkCx<'_>, port: PortId, frame: Frame) {
        let (flow, pause) = (FlowId(frame.queue), frame.pause);
        if pause || self.flows.slot(flow).is_some() {
            let slot = self.slot(flow);
            queues.set_paused(cx, port, slot, pause);
            self.tidy(queues, slot);
        }
    }

    /// The link at `port` has gone down or come up: nothing is paused.
    pub fn link_changed(&mut self, queues: &mut FlowQueues, cx: &mut LinkCx<'_>, port: PortId) {
        queues.resume_all(cx, port);
        for slot in 0..queues.slots() {
            self.tidy(queues, slot);
        }
    }
}
