//! The parts in switches and at hosts that make entities share as the scenario says.

use std::collections::{BTreeMap, BTreeSet};

use contract::sharing::{Place, SharedLink, Step, SwitchError, SwitchShares};
use node::{EndpointParams, Shaper, Stages};
use units::{Bytes, FlowId, Problem, Rate, Stream, SwitchId, Time};

use crate::Plan;

impl Plan {
    /// The limiter of the host at `site`, whose transport is the limiter's own.
    pub(super) fn shaper(&self, site: &EndpointParams) -> Option<Box<dyn Shaper>> {
        let hose = self.hoses.get(site.host.index()).copied()?;
        self.scenario.sharing.as_scheme()?.shaper(site, hose)
    }

    /// A switch's part of the requests; none if there are no requests for it. An error names the request that is
    /// declined, and why.
    pub(super) fn switch_part(&self, id: SwitchId) -> Result<Option<Box<dyn Stages>>, Problem> {
        let (Some(scheme), Some(steps)) = (self.scenario.sharing.as_scheme(), self.steps.get(&id)) else {
            return Ok(None);
        };
        let place = |(_, step): &(Time, Step)| match step {
            Step::Request(_, request) => Some(request.place),
            Step::Release(_) => None,
        };
        let places: BTreeSet<Place> = steps.iter().filter_map(place).collect();
        let untagged = self.entities.untagged.iter().filter(|(switch, ..)| *switch == id);
        let untagged = untagged.map(|&(_, id, place)| (self.fabric.link(place.link).from_port, place.position, id));
        let asked = SwitchShares {
            links: places.iter().map(|&place| self.shared_link(place)).collect(),
            steps: steps.clone(),
            untagged: untagged.collect(),
            random: Stream::new(self.scenario.seed, u64::from(id.0), "aq"),
        };
        let name = self.scenario.sharing.name();
        scheme.switch_part(asked).map_err(|error| match error {
            SwitchError::Setting(problem) => problem.under(name).under("sharing"),
            SwitchError::Declined(declined, why) => {
                let asked = self.entities.requests.iter().find(|asked| asked.id == declined && asked.switch == id);
                let key = asked.map_or(format!("sharing.{name}.untagged"), |asked| {
                    format!("entity[{}].request[{}].share", asked.entity, asked.index)
                });
                Problem::new(key, format!("declined: {why}"))
            }
        })
    }

    /// A link that entities share.
    fn shared_link(&self, place: Place) -> SharedLink {
        let site = &self.sites[0];
        SharedLink {
            place,
            capacity: self.fabric.link(place.link).rate,
            queue: self.settings.buffer.bytes(),
            sees_queue: self.fabric.as_switch(self.fabric.link(place.link).from).is_some(),
            rtt: site.data_rtt,
            mtu: Bytes(u64::from(site.mtu_bytes)),
        }
    }

    /// Settings that can hardly work, though they run.
    pub(super) fn sharing_warnings(&self) -> Vec<Problem> {
        let Some(scheme) = self.scenario.sharing.as_scheme() else { return Vec::new() };
        let Some(tagging) = scheme.tagging() else { return Vec::new() };
        let name = self.scenario.sharing.name();
        let mut warnings = Vec::new();
        // By place, the least rate and the greatest: what is wrong for any is wrong for one of them.
        let mut ends: BTreeMap<Place, (Rate, Rate)> = BTreeMap::new();
        for (asked, rate) in self.entities.requests.iter().zip(self.entities.rates(&self.fabric)) {
            let (least, most) = ends.entry(asked.place).or_insert((rate, rate));
            (*least, *most) = (rate.min(*least), rate.max(*most));
            if !asked.derive_threshold {
                let problem = scheme.signal_warning(&self.shared_link(asked.place), rate, asked.feedback);
                warnings.extend(problem.map(|problem| problem.under(format!("entity[{}]", asked.entity))));
            }
        }
        for (place, (least, most)) in ends {
            let of_link = scheme.warnings(&self.shared_link(place), least, most).into_iter();
            warnings.extend(of_link.map(|problem| problem.under(name).under("sharing")));
        }
        let untagged = |flow: &FlowId| self.entities.is_untagged(&self.flows, *flow);
        if tagging.untagged.is_none()
            && !self.steps.is_empty()
            && let Some(flow) = (0..self.flows.len()).map(FlowId::from).find(untagged)
        {
            let class = usize::from(self.flows.get(flow).class);
            let message = format!(
                "\"{}\" belongs to no entity with a request: its packets have no AQ, and on links with AQs they can \
                 take bandwidth that entities were granted; give its entity a request, or give all such packets an AQ \
                 (sharing.{name}.untagged = {{ weight = 1 }})",
                self.scenario.classes().nth(class).map_or("", |class| class.name)
            );
            warnings.push(Problem::new(self.scenario.class_key(class), message));
        }
        let mut seen = BTreeSet::new();
        warnings.retain(|problem| seen.insert(problem.key.clone()));
        warnings
    }
}
