//! Shares of containers: what a CNI plugin (`cni`) and a hook of a container's runtime (`oci`) have in common.
//!
//! A container with rates has a program at the host's end of its device, at both directions; whatever it sends or
//! receives is one tenant's. A container with a weight joins the tenants of a device that containers share, by its
//! addresses. Both are attached as by a command, and the record says whose they are. So no process has to run, and a
//! daemon, where one runs, heals them and removes those whose container is gone.

use std::net::IpAddr;

use contract::sharing::{Position, Share};
use scenario::RequestSpec;
use sharing::aq::Config;
use units::Rate;

use super::attach::{Asked, attach};
use super::detach::{detach, remove};
use super::device::name_of;
use super::netlink::{addresses, links};
use super::netns::within;
use super::place::{By, DevicePlace, Joined, Record, Roots};
use super::show::View;
use crate::matching::{Matches, Prefix};
use crate::tenants::{Link, Tenant, Tenants};

/// The shares that a container asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wish {
    /// The most that it may receive.
    pub ingress: Option<Rate>,
    /// The most that it may send.
    pub egress: Option<Rate>,
    /// The only addresses of others for which its rates hold; all if empty.
    pub subnets: Vec<Prefix>,
    /// A weight on a shared device.
    pub weight: Option<(u32, Shared)>,
}

/// A device that containers share by weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Shared {
    /// Its name.
    pub device: String,
    /// The capacity of its link.
    pub capacity: Rate,
    /// The part of the link that no container gets.
    pub headroom: f64,
}

/// A container, as its runtime knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its name in records: unique on this machine.
    pub owner: String,
    /// Its name in tables.
    pub name: String,
    /// Its namespace.
    pub netns: String,
}

/// The two ends of a container's device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The host's end.
    pub host: String,
    /// The addresses of the container's end.
    pub addresses: Vec<IpAddr>,
}

impl Wish {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.ingress.is_none() && self.egress.is_none() && self.weight.is_none()
    }

    /// The tenants of the container's own device; none without rates.
    fn tenants(&self) -> Option<Tenants> {
        // The host's end sends what the container receives.
        let request = |rate: Option<Rate>, position| rate.map(|rate| request(Share::Absolute(rate), position));
        let (to, from) = (request(self.ingress, Position::Egress), request(self.egress, Position::Ingress));
        let capacity = self.ingress.max(self.egress)?;
        let all = ["0.0.0.0/0", "::/0"].map(|text| text.parse().ok());
        let entity = if self.subnets.is_empty() {
            let matches = Matches { source: all.into_iter().flatten().collect(), ..Matches::default() };
            vec![tenant("container", matches, to.into_iter().chain(from).collect())]
        } else {
            let source = Matches { source: self.subnets.clone(), ..Matches::default() };
            let destination = Matches { destination: self.subnets.clone(), ..Matches::default() };
            let one = |name: &str, matches, request: Option<RequestSpec>| Some(tenant(name, matches, vec![request?]));
            one("received", source, to).into_iter().chain(one("sent", destination, from)).collect()
        };
        let config = Config { headroom: 0.0, ..Config::default() };
        Some(Tenants { link: Link::of(capacity), sharing: catalogue::Sharing::Aq(config), entity })
    }
}

fn request(share: Share, position: Position) -> RequestSpec {
    RequestSpec { share, position, link: None }
}

fn tenant(name: &str, matches: Matches, request: Vec<RequestSpec>) -> Tenant {
    Tenant { matches, request, ..Tenant::named(name) }
}

/// The ends of a container's device; of the one with a name, else of the first that has its other end outside.
pub fn ends(netns: &str, name: Option<&str>) -> Result<Ends, String> {
    let found = within(Some(netns), || {
        let all = links()?;
        let link = all.into_iter().find(|link| match name {
            Some(name) => link.name == name,
            None => link.peer_is_elsewhere,
        });
        link.map(|link| Ok::<_, String>((addresses(link.index)?, link))).transpose()
    })??;
    let Some((addresses, link)) = found else {
        return Err(match name {
            Some(name) => format!("{netns} has no device {name}"),
            None => format!("{netns} has no device with an end outside; a hook must run after the network is made"),
        });
    };
    let peer = link.peer.filter(|_| link.peer_is_elsewhere);
    let host = peer.and_then(name_of).ok_or_else(|| {
        format!("{}: its other end is not in this namespace; only veth pairs have their shares there", link.name)
    })?;
    Ok(Ends { host, addresses })
}

/// Gives a container what it asks for. Asked again, it changes it.
pub fn give(roots: &Roots, container: &Container, wish: &Wish, ends: &Ends) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    if let Some(tenants) = wish.tenants() {
        let text = toml::to_string(&tenants).map_err(|error| error.to_string())?;
        let (device, owner) = (ends.host.as_str(), Some(container.owner.as_str()));
        let (source, by) = ("the container's rates", By::Container);
        let asked = Asked { device, text: &text, source, by, owner, ..Asked::default() };
        lines.extend(attach(roots, &asked)?.lines);
    }
    if let Some((weight, shared)) = &wish.weight {
        if ends.addresses.is_empty() {
            return Err(format!("{} has no address by which {} could tell it", container.name, shared.device));
        }
        let sharing = catalogue::Sharing::Aq(Config { headroom: shared.headroom, ..Config::default() });
        let tenants = Tenants { link: Link::of(shared.capacity), sharing, entity: Vec::new() };
        let text = toml::to_string(&tenants).map_err(|error| error.to_string())?;
        let prefixes: Vec<Prefix> = ends.addresses.iter().filter(|one| !is_local(one)).map(|&one| one.into()).collect();
        let matches = Matches { source: prefixes.clone(), destination: prefixes, ..Matches::default() };
        let share = Share::Weight(*weight);
        let requests = vec![request(share, Position::Egress), request(share, Position::Ingress)];
        let joined = Joined { owner: container.owner.clone(), tenant: tenant(&container.name, matches, requests) };
        let (device, source, by) = (shared.device.as_str(), "the containers' weights", By::Container);
        let joins = Some(&joined);
        let asked = Asked { device, text: &text, source, by, joins, lenient: true, ..Asked::default() };
        lines.extend(attach(roots, &asked)?.lines);
    }
    Ok(lines)
}

/// An address of every device, by which no container is told.
fn is_local(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local()) || address.is_loopback()
}

/// Takes back what containers have; `ours` says by its name in records whether one is meant. It is no error if nothing
/// is there.
pub fn take(roots: &Roots, ours: impl Fn(&str) -> bool) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    for place in DevicePlace::all(roots) {
        let Some(record) = place.record()? else { continue };
        if record.owner.as_deref().is_some_and(&ours) {
            lines.push(detach(roots, &record.device, record.netns.as_deref(), Ok(()))?);
        }
        let leave: Vec<String> = record.joined.iter().map(|one| one.owner.clone()).filter(|name| ours(name)).collect();
        if !leave.is_empty() {
            lines.extend(leave_shared(roots, &place, &leave)?);
        }
    }
    Ok(lines)
}

/// Tenants leave a shared device; with the last one that only containers share, its program goes.
fn leave_shared(roots: &Roots, place: &DevicePlace, leave: &[String]) -> Result<Vec<String>, String> {
    loop {
        let lock = place.lock()?;
        let record = place.record()?;
        let others = |record: &Record| record.joined.iter().any(|one| !leave.contains(&one.owner));
        let Some(mut record) = record else {
            place.close(lock);
            return Ok(Vec::new());
        };
        if record.by == By::Container && !others(&record) {
            let done = remove(place, &record, &Ok(()));
            place.close(lock);
            return done.map(|said| vec![said]);
        }
        if name_of(record.index).is_none() {
            // The device is gone; when it comes back, it comes back without them.
            record.joined.retain(|one| !leave.contains(&one.owner));
            place.write(&record)?;
            return Ok(vec![format!("{}: the device is gone, and a container with it", record.device)]);
        }
        drop(lock);
        let (device, source, by) = (record.device.as_str(), "the containers' weights", record.by);
        let asked = Asked { device, text: &record.tenants, source, by, leave, lenient: true, ..Asked::default() };
        match attach(roots, &asked) {
            Ok(done) => return Ok(done.lines),
            // All others left meanwhile.
            Err(_) if place.record()?.is_none_or(|record| !others(&record)) => {}
            Err(why) => return Err(why),
        }
    }
}

/// Says why a container has not what it asks for; none if it has.
pub fn lacks(roots: &Roots, container: &Container, wish: &Wish, ends: &Ends) -> Result<Option<String>, String> {
    let see = |device: &str| -> Result<Option<(Record, View)>, String> {
        let place = DevicePlace::new(roots, device, None);
        Ok(place.record()?.zip(View::open(&place)?))
    };
    let troubles = |view: &mut View| -> Result<Option<String>, String> {
        Ok(view.lines()?.into_iter().find_map(|line| line.trouble.filter(|_| line.enforcing == Some(false))))
    };
    if let Some(tenants) = wish.tenants() {
        let Some((record, mut view)) = see(&ends.host)? else {
            return Ok(Some(format!("nothing is attached to {}", ends.host)));
        };
        if record.owner.as_ref() != Some(&container.owner) || *view.tenants() != tenants {
            return Ok(Some(format!("{} has other rates, or another container's", ends.host)));
        }
        if let Some(why) = troubles(&mut view)? {
            return Ok(Some(format!("{}: {why}", ends.host)));
        }
    }
    if let Some((weight, shared)) = &wish.weight {
        let found = see(&shared.device)?;
        let share = Share::Weight(*weight);
        let has = |joined: &Joined| {
            joined.owner == container.owner && joined.tenant.request.iter().all(|request| request.share == share)
        };
        let Some((_, mut view)) = found.filter(|(record, _)| record.joined.iter().any(has)) else {
            return Ok(Some(format!("it has no weight of {weight} on {}", shared.device)));
        };
        if let Some(why) = troubles(&mut view)? {
            return Ok(Some(format!("{}: {why}", shared.device)));
        }
    }
    Ok(None)
}
