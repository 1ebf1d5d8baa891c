//! The arithmetic of headroom at all ports of a plan.

use catalogue::LinkControl;
use link_control::mmu::GroupAtPort;
use units::{Problem, SwitchId};

use super::Plan;

impl Plan {
    /// By switch, the lossless groups at its ports, if switches have `flow_control.mmu`: what each is given and what it
    /// needs with frames of up to `frame_bytes`, or of the hosts' size. None at ports to which nothing is linked.
    pub fn lossless_groups(&self, frame_bytes: Option<u64>) -> Result<Vec<(SwitchId, GroupAtPort)>, Problem> {
        let LinkControl::Mmu(config) = &self.scenario.flow_control else { return Ok(Vec::new()) };
        let view = self.link_view();
        let mut found = Vec::new();
        for switch in (0..self.fabric.switches).map(SwitchId) {
            let groups = config.lossless_groups(&view, switch, frame_bytes);
            let groups = groups.map_err(|problem| problem.under("mmu").under("flow_control"))?;
            found.extend(groups.into_iter().map(|group| (switch, group)));
        }
        Ok(found)
    }
}
