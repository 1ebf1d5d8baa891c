//! What tenants are granted at one position of a device: requests, admission and rates by the simulator's own
//! controller ([`sharing::aq::Controller`], section 4.1 of the paper), as rows for the program.

use std::collections::BTreeMap;

use contract::sharing::{Ids, Place, Position, Request, Share};
use sharing::aq::{AqId, Controller, Decline, LinkSpec, Order, Path};
use units::{Bytes, Duration, LinkId, Problem, Rate};

use crate::tenants::{Tenant, Tenants};
use crate::word::{RATE_MAX, RATE_MIN, Word};

/// The name of the entity to which all packets belong that match no tenant.
pub const DEFAULT_NAME: &str = "(default)";

/// What one tenant has at one position.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The tenant's name.
    pub name: String,
    /// What it asked for, for all its AQs together; none for a default entity without an AQ.
    pub share: Option<Share>,
    /// The rate of all its AQs together.
    pub rate: Rate,
    /// The limit of each of its AQs.
    pub limit: Bytes,
    /// The threshold of each of its AQs.
    pub threshold: Option<Bytes>,
    /// How many AQs it has.
    pub flows: u32,
}

impl Row {
    /// Its configuration in the program's units.
    pub fn word(&self) -> Word {
        if self.share.is_none() {
            return Word::OPEN;
        }
        let rate = Rate::from_bps(self.rate.bps() / u64::from(self.flows.max(1)));
        Word::new(rate, self.limit, self.threshold)
    }
}

/// The grants at one position.
#[derive(Debug)]
pub struct Grants {
    position: Position,
    controller: Controller,
    /// In the order of the file; the default entity first.
    rows: Vec<Row>,
    by_id: BTreeMap<AqId, usize>,
    /// Settings that run but can hardly work.
    pub warnings: Vec<String>,
}

/// The link as the controller sees it.
fn spec(tenants: &Tenants, position: Position, timeout: Duration) -> LinkSpec {
    let link = &tenants.link;
    let capacity = Rate::from_bps(link.capacity.mul_f64(1.0 - tenants.config().headroom).bps().max(1));
    let path = Path { rtt: link.rtt, mtu: link.mtu, burst: link.burst, timeout: link.timeout.unwrap_or(timeout) };
    LinkSpec { place: Place { link: LinkId(0), position }, capacity, queue: link.queue, path }
}

/// All AQs of a tenant as one request.
fn combined(share: Share, states: u32) -> Result<Share, Problem> {
    let too_much = || Problem::new("share", format!("is too large for {states} AQs"));
    Ok(match share {
        Share::Absolute(rate) => {
            Share::Absolute(Rate::from_bps(rate.bps().checked_mul(u64::from(states)).ok_or_else(too_much)?))
        }
        Share::Weight(weight) => Share::Weight(weight.checked_mul(states).ok_or_else(too_much)?),
    })
}

impl Grants {
    /// Grants what is asked at a position, or says which request is declined and why. `timeout` is the senders' least
    /// retransmission timeout where the file sets none.
    pub fn new(tenants: &Tenants, position: Position, timeout: Duration) -> Result<Grants, Problem> {
        let config = tenants.config();
        let link = spec(tenants, position, timeout);
        let wrong = |problem: Problem| problem.under("sharing.aq");
        let mut controller = Controller::new(config.limit, config.work_conserving).map_err(wrong)?;
        controller.add_link(link).map_err(wrong)?;
        let open = Row {
            name: DEFAULT_NAME.to_owned(),
            share: config.untagged,
            rate: Rate::default(),
            limit: Bytes(0),
            threshold: None,
            flows: 1,
        };
        let mut grants =
            Grants { position, controller, rows: vec![open], by_id: BTreeMap::new(), warnings: Vec::new() };
        let mut ids = Ids::default();
        if let Some(share) = config.untagged {
            let request = Request::new(share, contract::CongestionSignal::Drop, link.place);
            let id = ids.next_id().ok_or_else(|| Problem::new("entity", "there are too many"))?;
            grants.controller.request(id, request).map_err(|decline| declined("sharing.aq.untagged", &decline))?;
            grants.by_id.insert(id, 0);
        }
        for (index, tenant) in tenants.entity.iter().enumerate() {
            let Some(at) = tenant.request.iter().position(|request| request.position == position) else { continue };
            let key = format!("entity[{index}].request[{at}]");
            let share = combined(tenant.request[at].share, tenant.states()).map_err(|p| p.under(&key))?;
            let id = ids.next_id().ok_or_else(|| Problem::new("entity", "there are too many"))?;
            let (feedback, derive_threshold) = tenant.signal();
            let capped = tenant.work_conserving == Some(false);
            let request = Request { share, feedback, derive_threshold, capped, place: link.place };
            grants.controller.request(id, request).map_err(|decline| declined(&key, &decline))?;
            grants.by_id.insert(id, grants.rows.len());
            grants.rows.push(Row {
                name: tenant.name.clone(),
                share: Some(share),
                rate: Rate::default(),
                limit: Bytes(0),
                threshold: None,
                flows: tenant.states(),
            });
        }
        grants.apply();
        grants.check(tenants, &link)?;
        Ok(grants)
    }

    /// The position.
    pub fn position(&self) -> Position {
        self.position
    }

    /// What each entity has now, the default entity first.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Re-divides the link by the bytes that arrived for each row in the `period` that ends now.
    pub fn divide(&mut self, period: Duration, arrived: &[u64]) {
        let place = Place { link: LinkId(0), position: self.position };
        let bytes = |id: AqId| Bytes(self.by_id.get(&id).and_then(|&row| arrived.get(row)).copied().unwrap_or(0));
        self.controller.measured(place, period, bytes);
        self.apply();
    }

    /// Carries the controller's orders out on the rows.
    fn apply(&mut self) {
        while let Some(order) = self.controller.poll_order() {
            let Order::Deploy { id, rate, policy, .. } = order else { continue };
            let Some(row) = self.by_id.get(&id).and_then(|&row| self.rows.get_mut(row)) else { continue };
            (row.rate, row.limit, row.threshold) = (rate.rate(), policy.limit(), policy.threshold());
        }
    }

    /// What a kernel can't do though a switch could, and what can hardly work.
    fn check(&mut self, tenants: &Tenants, link: &LinkSpec) -> Result<(), Problem> {
        for (row, tenant) in self.rows.iter_mut().skip(1).zip(at(tenants, self.position)) {
            let each = Rate::from_bps(row.rate.bps() / u64::from(row.flows.max(1)));
            if !(RATE_MIN..=RATE_MAX).contains(&each) {
                let message = format!("gives an AQ {each}; a kernel's AQ has from {RATE_MIN} to {RATE_MAX}");
                return Err(Problem::new(format!("entity \"{}\"", row.name), message));
            }
            if row.flows > 1 {
                // The limit was worked out for all together.
                row.limit = tenants.config().limit_of(link, each).max(link.path.burst);
            }
            if let Some(warning) = tenants.config().feedback_warning(row.limit, tenant.signal().0)
                && tenant.feedback.is_some()
            {
                self.warnings.push(format!("entity \"{}\": {warning}", row.name));
            }
        }
        let least = self.rows.iter().skip(1).map(|row| row.rate).min().unwrap_or(link.capacity);
        for warning in tenants.config().warnings_at(link, least) {
            self.warnings.push(format!("sharing.aq.{warning}"));
        }
        let needed = link.path.least_limit(least);
        if needed > link.queue {
            self.warnings.push(format!(
                "link.queue: an AQ of {least} may need a limit of {needed}, and the queue holds {}: a sender that \
                 waits for its retransmission timer ({}) can fall behind its share",
                link.queue, link.path.timeout
            ));
        }
        Ok(())
    }
}

/// The tenants that ask at a position.
fn at(tenants: &Tenants, position: Position) -> impl Iterator<Item = &Tenant> {
    tenants.entity.iter().filter(move |tenant| tenant.request.iter().any(|request| request.position == position))
}

fn declined(key: &str, decline: &Decline) -> Problem {
    Problem::new(key, format!("declined: {decline}"))
}

#[cfg(test)]
mod tests;
