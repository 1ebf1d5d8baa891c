//! Augmented Queue as a scenario and a plan see it.

use node::Stages;
use units::{Problem, Rate};

use super::{Config, LinkSpec, Path, SwitchError, SwitchPart};
use contract::sharing::{SharedLink, SharingScheme, SwitchShares, Tagging};
use contract::{About, CongestionSignal};

impl SharingScheme for Config {
    fn about(&self) -> About {
        About {
            title: "Augmented Queue",
            source: "Wu, Wang, Wang, Ng, SIGCOMM 2023",
            summary: "Each entity gets congestion feedback from a virtual queue of its own that drains at the \
                      entity's rate.",
            needs: "switches: 15 bytes for each entity, integer arithmetic for each packet; hosts: tags in packets",
        }
    }

    fn check(&self) -> Result<(), Problem> {
        if !(0.0..1.0).contains(&self.headroom) {
            let message = format!("{} is not at least 0 and below 1", self.headroom);
            return Err(Problem::new("headroom", message));
        }
        if let Some(conserving) = self.work_conserving {
            conserving.check().map_err(|problem| problem.under("work_conserving"))?;
        }
        Ok(())
    }

    fn advice(&self) -> Vec<Problem> {
        let lends = self.work_conserving.as_ref().is_some_and(|conserving| conserving.lends());
        let message = "has no effect with re-allocation, which measures use itself; delete one of the two";
        (lends && self.idle_after.is_some()).then(|| Problem::new("idle_after", message)).into_iter().collect()
    }

    fn tagging(&self) -> Option<Tagging> {
        let work_conserving = self.work_conserving.is_some();
        Some(Tagging { untagged: self.untagged, work_conserving, headroom: self.headroom })
    }

    fn switch_part(&self, asked: SwitchShares) -> Result<Option<Box<dyn Stages>>, SwitchError> {
        let links: Vec<LinkSpec> = asked.links.iter().map(LinkSpec::from).collect();
        let part = SwitchPart::new(self, &links, asked.steps, asked.random)?;
        Ok(Some(Box::new(part.with_untagged(asked.untagged))))
    }

    fn warnings(&self, link: &SharedLink, least: Rate, most: Rate) -> Vec<Problem> {
        let mut warnings = self.warnings_at(&link.into(), least);
        warnings.extend(self.halving_warning(&link.into(), most));
        warnings
    }

    fn signal_warning(&self, link: &SharedLink, rate: Rate, signal: CongestionSignal) -> Option<Problem> {
        self.feedback_warning(self.limit_of(&link.into(), rate), signal)
    }
}

impl From<&SharedLink> for LinkSpec {
    fn from(link: &SharedLink) -> LinkSpec {
        let SharedLink { place, capacity, queue, sees_queue, rtt, mtu } = *link;
        LinkSpec { place, capacity, queue, path: Path::simulated(rtt, mtu), sees_queue }
    }
}
