//! What stands in switches and at hosts so that entities share as the scenario says.

use std::collections::{BTreeMap, BTreeSet};

use catalogue::Sharing;
use node::{Shaper, Site};
use sharing::aq::{LinkSpec, Path, Place, Step, SwitchError, SwitchPart};
use sharing::limiter::elastic_switch::Hose;
use units::{Bytes, FlowId, Problem, Rate, Stream, SwitchId, Time};

use crate::Plan;

impl Plan {
    /// What limits the rate of the host at `site`, whose transport is the limiter's own.
    pub(super) fn shaper(&self, site: &Site) -> Option<Box<dyn Shaper>> {
        let [outbound, inbound] = self.hoses.get(site.host.index()).copied()?;
        match &self.scenario.sharing {
            Sharing::PhysicalQueue | Sharing::Aq(_) => None,
            Sharing::RateLimiter(config) => Some(config.shaper(site, outbound?)),
            Sharing::ElasticSwitch(config) => {
                // Every host has a hypervisor, since every hypervisor hears from others; what nobody asked for is free.
                let whole = site.nic_rate;
                let hose = Hose { outbound: outbound.unwrap_or(whole), inbound: inbound.unwrap_or(whole) };
                Some(config.shaper(site, hose, site.transport))
            }
        }
    }

    /// The AQs of a switch; none if it has none. An error names the request that is declined, and why.
    pub(super) fn switch_part(&self, id: SwitchId) -> Result<Option<SwitchPart>, Problem> {
        let (Sharing::Aq(config), Some(steps)) = (&self.scenario.sharing, self.steps.get(&id)) else {
            return Ok(None);
        };
        let place = |(_, step): &(Time, Step)| match step {
            Step::Request(_, request) => Some(request.place),
            Step::Release(_) => None,
        };
        let places: BTreeSet<Place> = steps.iter().filter_map(place).collect();
        let links: Vec<LinkSpec> = places.iter().map(|&place| self.aq_link(place)).collect();
        let random = Stream::new(self.scenario.seed, u64::from(id.0), "aq");
        let untagged = self.entities.untagged.iter().filter(|(switch, ..)| *switch == id);
        let untagged: Vec<_> =
            untagged.map(|&(_, id, place)| (self.fabric.link(place.link).from_port, place.position, id)).collect();
        let part = SwitchPart::new(config, &links, steps.clone(), random);
        part.map(|part| Some(part.with_untagged(untagged))).map_err(|error| match error {
            SwitchError::Setting(problem) => problem.under("sharing.aq"),
            SwitchError::Declined(declined, why) => {
                let asked = self.entities.requests.iter().find(|asked| asked.id == declined && asked.switch == id);
                let key = asked.map_or("sharing.aq.untagged".to_owned(), |asked| {
                    format!("entity[{}].request[{}].share", asked.entity, asked.index)
                });
                Problem::new(key, format!("declined: {why}"))
            }
        })
    }

    /// A link that AQs share.
    fn aq_link(&self, place: Place) -> LinkSpec {
        let site = &self.sites[0];
        LinkSpec {
            place,
            capacity: self.fabric.link(place.link).rate,
            queue: self.settings.buffer.bytes(),
            path: Path { rtt: site.data_rtt, mtu: Bytes(u64::from(site.mtu_bytes)) },
        }
    }

    /// What is set so that it can hardly work, though it runs.
    pub(super) fn sharing_warnings(&self) -> Vec<Problem> {
        let Sharing::Aq(config) = &self.scenario.sharing else { return Vec::new() };
        let mut warnings = Vec::new();
        // By place, the least rate: what is wrong for any is wrong for that.
        let mut least: BTreeMap<Place, Rate> = BTreeMap::new();
        for (asked, rate) in self.entities.requests.iter().zip(self.entities.rates(&self.fabric)) {
            let at = least.entry(asked.place).or_insert(rate);
            *at = rate.min(*at);
            if !asked.derive_threshold {
                let limit = config.limit_of(&self.aq_link(asked.place), rate);
                let problem = config.feedback_warning(limit, asked.feedback);
                warnings.extend(problem.map(|problem| problem.under(format!("entity[{}]", asked.entity))));
            }
        }
        for (place, rate) in least {
            let link = self.aq_link(place);
            warnings.extend(config.warnings(&link, rate).into_iter().map(|problem| problem.under("sharing.aq")));
        }
        let untagged = |flow: &FlowId| self.entities.is_untagged(&self.flows, *flow);
        if config.untagged.is_none()
            && !self.steps.is_empty()
            && let Some(flow) = (0..self.flows.len()).map(FlowId::from).find(untagged)
        {
            let class = usize::from(self.flows.get(flow).class);
            let message = format!(
                "\"{}\" belongs to no entity that asks for anything: on links with AQs its packets take also what was granted; give it a \
                 request, or all such packets an AQ (sharing.aq.untagged = {{ weight = 1 }})",
                self.scenario.traffic[class].name
            );
            warnings.push(Problem::new(format!("traffic[{class}]"), message));
        }
        let mut seen = BTreeSet::new();
        warnings.retain(|problem| seen.insert(problem.key.clone()));
        warnings
    }
}
