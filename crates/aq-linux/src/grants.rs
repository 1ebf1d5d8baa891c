//! The grants of tenants at one position of a device: requests, admission and rates by the simulator's own controller
//! ([`sharing::aq::Controller`], section 4.1 of the paper), as rows for the program.

use std::collections::BTreeMap;

use contract::sharing::{Ids, Place, Position, Request, Share};
use sharing::aq::gap::LIMIT_MAX;
use sharing::aq::{AqId, Controller, Decline, Limit, LinkSpec, Order, Path};
use units::{Bytes, Duration, LinkId, Problem, Rate};

use crate::tenants::{Tenant, Tenants};
use crate::word::{RATE_MAX, RATE_MIN, Word};

/// The name of the entity to which all packets belong that match no tenant.
pub const DEFAULT_NAME: &str = "(default)";

/// The assumptions on senders where the file says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Senders {
    /// The longest round trip while nothing queues.
    pub rtt: Duration,
    /// The least retransmission timeout.
    pub timeout: Duration,
}

impl Senders {
    /// A data center's round trip, and Linux's timeout.
    pub const USUAL: Senders = Senders { rtt: Duration::from_ms(1), timeout: Duration::from_ms(200) };
}

/// The grant of one tenant at one position.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The tenant's name.
    pub name: String,
    /// Its request, for all its AQs together; none for a default entity without an AQ.
    pub share: Option<Share>,
    /// The rate of all its AQs together.
    pub rate: Rate,
    /// The limit of each of its AQs.
    pub limit: Bytes,
    /// The threshold of each of its AQs.
    pub threshold: Option<Bytes>,
    /// How many AQs it has.
    pub flows: u32,
    /// Whether its threshold follows from its rate.
    derives: bool,
}

impl Row {
    /// A row without a share.
    pub fn plain(name: &str, rate: Rate, limit: Bytes, flows: u32) -> Row {
        Row { name: name.to_owned(), share: None, rate, limit, threshold: None, flows, derives: false }
    }

    /// The rate of each of its AQs.
    pub fn each(&self) -> Rate {
        Rate::from_bps(self.rate.bps() / u64::from(self.flows.max(1)))
    }

    /// Its configuration in the program's units.
    pub fn word(&self) -> Word {
        if self.share.is_none() {
            return Word::OPEN;
        }
        Word::new(self.each(), self.limit, self.threshold)
    }
}

/// The grants at one position.
#[derive(Debug)]
pub struct Grants {
    position: Position,
    link: LinkSpec,
    controller: Controller,
    /// In the order of the file; the default entity first.
    rows: Vec<Row>,
    by_id: BTreeMap<AqId, usize>,
    /// Settings that run but can hardly work.
    pub warnings: Vec<String>,
}

/// The limit of an AQ of `rate`. A derived limit may exceed the physical queue, as it never does in a switch: a
/// kernel's senders wait 200 ms for a timer, and the bytes by which an AQ runs ahead in that time need not be queued
/// anywhere.
fn limit(tenants: &Tenants, link: &LinkSpec, rate: Rate) -> Bytes {
    let config = tenants.config();
    let link = link_at(link, rate);
    match config.limit {
        Limit::Derived => config.limit_of(&link, rate).max(link.path.least_limit(rate)).min(LIMIT_MAX),
        _ => config.limit_of(&link, rate),
    }
}

/// The link as an AQ of `rate` sees it: only the most bytes that arrive at once differ.
///
/// A packet of several segments is part of a window, and no window that keeps to its rate is more than what the rate
/// delivers in a round trip through a full queue behind the device. A Linux sender makes packets of two segments even
/// so (`tcp_min_tso_segs`). Without this, a share of 2 Mbps may run 2 s ahead: eight bursts of 64 KiB.
fn link_at(link: &LinkSpec, rate: Rate) -> LinkSpec {
    let path = link.path;
    let full = link.capacity.transmit(link.queue.get());
    let window = Bytes(rate.bytes_in(path.rtt + full));
    let burst = path.burst.min(window.max(Bytes(2 * path.mtu.get())));
    LinkSpec { path: Path { burst, ..path }, ..*link }
}

/// The link as the controller sees it.
fn spec(tenants: &Tenants, position: Position, senders: Senders) -> LinkSpec {
    let link = &tenants.link;
    let capacity = Rate::from_bps(link.capacity.mul_f64(1.0 - tenants.config().headroom).bps().max(1));
    let (rtt, timeout) = (link.rtt.unwrap_or(senders.rtt), link.timeout.unwrap_or(senders.timeout));
    let path = Path { rtt, mtu: link.mtu, burst: link.burst, timeout };
    LinkSpec { place: Place { link: LinkId(0), position }, capacity, queue: link.queue, path, sees_queue: false }
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
    /// Grants what is asked at a position, or says which request is declined and why. `senders` is taken where the
    /// file sets nothing.
    pub fn new(tenants: &Tenants, position: Position, senders: Senders) -> Result<Grants, Problem> {
        let config = tenants.config();
        let link = spec(tenants, position, senders);
        let wrong = |problem: Problem| problem.under("sharing.aq");
        let mut controller = Controller::new(config.limit, config.work_conserving).map_err(wrong)?;
        controller.add_link(link).map_err(wrong)?;
        let open = Row { share: config.untagged, ..Row::plain(DEFAULT_NAME, Rate::default(), Bytes(0), 1) };
        let mut grants =
            Grants { position, link, controller, rows: vec![open], by_id: BTreeMap::new(), warnings: Vec::new() };
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
                derives: derive_threshold,
            });
        }
        grants.apply(tenants, &link);
        grants.check(tenants, &link)?;
        Ok(grants)
    }

    /// The position.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The present grant of each entity, the default entity first.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Re-divides the link by the bytes that arrived for each row in the `period` that ends now.
    pub fn divide(&mut self, tenants: &Tenants, period: Duration, arrived: &[u64]) {
        let place = Place { link: LinkId(0), position: self.position };
        let bytes = |id: AqId| Bytes(self.by_id.get(&id).and_then(|&row| arrived.get(row)).copied().unwrap_or(0));
        self.controller.measured(place, period, bytes);
        let link = self.link;
        self.apply(tenants, &link);
    }

    /// Carries the controller's orders out on the rows.
    fn apply(&mut self, tenants: &Tenants, link: &LinkSpec) {
        while let Some(order) = self.controller.poll_order() {
            let Order::Deploy { id, rate, policy, .. } = order else { continue };
            let Some(row) = self.by_id.get(&id).and_then(|&row| self.rows.get_mut(row)) else { continue };
            row.rate = rate.rate();
            // All AQs of a tenant were one to the controller.
            let each = row.each();
            row.limit = limit(tenants, link, each);
            let path = link_at(link, each).path;
            row.threshold = policy
                .threshold()
                .map(|given| if row.derives { path.threshold(each, link.capacity, row.limit) } else { given });
        }
    }

    /// Functions that a switch has and a kernel has not, and settings that can hardly work.
    fn check(&mut self, tenants: &Tenants, link: &LinkSpec) -> Result<(), Problem> {
        for (row, tenant) in self.rows.iter_mut().skip(1).zip(at(tenants, self.position)) {
            let each = row.each();
            if !(RATE_MIN..=RATE_MAX).contains(&each) {
                let message = format!("gives an AQ {each}; a kernel's AQ has from {RATE_MIN} to {RATE_MAX}");
                return Err(Problem::new(format!("entity \"{}\"", row.name), message));
            }
            if let Some(warning) = tenants.config().feedback_warning(row.limit, tenant.signal().0)
                && tenant.feedback.is_some()
            {
                self.warnings.push(format!("entity \"{}\": {warning}", row.name));
            }
        }
        let by_ports = |tenant: &Tenant| !tenant.matches.ports.is_empty() || !tenant.matches.source_ports.is_empty();
        let claims = |tenant: &Tenant| !tenant.matches.portless.is_empty();
        if tenants.config().untagged.is_none()
            && at(tenants, self.position).any(by_ports)
            && !at(tenants, self.position).any(claims)
        {
            self.warnings.push(
                "packets whose ports can't be known, such as a later fragment that comes before its first, are no \
                 tenant's and pass untouched; give sharing.aq.untagged a share, or a tenant match.portless"
                    .to_owned(),
            );
        }
        let least = self.rows.iter().skip(1).map(|row| row.rate).min().unwrap_or(link.capacity);
        for warning in tenants.config().warnings_at(&link_at(link, least), least) {
            self.warnings.push(format!("sharing.aq.{warning}"));
        }
        self.warn_of_limits(link);
        Ok(())
    }

    /// Limits below those that the simulator derives, by cause; of each cause the tenant that lacks most.
    fn warn_of_limits(&mut self, link: &LinkSpec) {
        let path = |row: &Row| link_at(link, row.each()).path;
        let short = |needs: &dyn Fn(&Row) -> Bytes| {
            let lacking = self.rows.iter().skip(1).filter(|row| row.limit < needs(row));
            lacking.max_by_key(|row| needs(row).get() - row.limit.get()).map(|row| (row.clone(), needs(row)))
        };
        if let Some((row, needed)) = short(&|row| path(row).halving(row.each())) {
            self.warnings.push(format!(
                "entity \"{}\": its limit of {} can't carry a share of {} over a round trip of {}: a window that was \
                 halved needs B^2/(18 M) = {needed} to come back (B is what the share delivers in a round trip, M a \
                 full packet), and none is above {LIMIT_MAX}; more flows or tenants need less each",
                row.name,
                row.limit,
                row.each(),
                link.path.rtt
            ));
        }
        let waits =
            |row: &Row| Bytes(row.each().bytes_in(path(row).timeout * 3).saturating_add(8 * path(row).burst.get()));
        if let Some((row, needed)) = short(&waits) {
            self.warnings.push(format!(
                "link.timeout: a sender that waits for its retransmission timer, {}, can fall behind a share of {}, \
                 which needs a limit of {needed}; the limit of \"{}\" is {}, and none is above {LIMIT_MAX}; where you \
                 own the senders, lower it (net.ipv4.tcp_rto_min_us)",
                link.path.timeout,
                row.each(),
                row.name,
                row.limit
            ));
        }
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
