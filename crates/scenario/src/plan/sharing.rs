//! What stands in switches and at hosts so that entities share as the scenario says.

use std::collections::BTreeSet;

use node::{Shaper, Site};
use schemes::Sharing;
use schemes::aq::{Place, Step, SwitchError, SwitchPart};
use schemes::limiter::elastic_switch::Hose;
use units::{Problem, Stream, SwitchId, Time};

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
        let queue = self.settings.buffer.bytes();
        let place = |(_, step): &(Time, Step)| match step {
            Step::Request(_, request) => Some(request.place),
            Step::Release(_) => None,
        };
        let places: BTreeSet<Place> = steps.iter().filter_map(place).collect();
        let links: Vec<_> = places.iter().map(|&place| (place, self.fabric.link(place.link).rate, queue)).collect();
        let random = Stream::new(self.scenario.seed, u64::from(id.0), "aq");
        SwitchPart::new(config, &links, steps.clone(), random).map(Some).map_err(|error| match error {
            SwitchError::Setting(problem) => problem.under("sharing.aq"),
            SwitchError::Declined(declined, why) => {
                let asked = self.entities.requests.iter().find(|asked| asked.id == declined && asked.switch == id);
                let asked = asked.expect("every step is a request's");
                let key = format!("entity[{}].request[{}].share", asked.entity, asked.index);
                Problem::new(key, format!("declined: {why}"))
            }
        })
    }
}
