//! The shares that tenants would get, by the simulator: a scenario with the same entities, before anything is deployed.
//!
//! The device's link becomes the bottleneck of a dumbbell, each tenant's senders become hosts with the tenant's
//! transport and endless flows, and its AQ stands where the program does: before the link's queue. A third of the round
//! trip is in each link. Rates of the result are bytes on the wire, as the program counts them.

use catalogue::Transport;
use contract::sharing::Position;
use run::{Column, Data};
use serde::Serialize;
use units::{Bytes, Rate};

use crate::grants::{DEFAULT_NAME, Grants, Senders};
use crate::tenants::Tenants;

/// The prediction for a tenant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Predicted {
    /// The tenant.
    pub tenant: String,
    /// Its rate by the controller.
    pub allocated_bps: u64,
    /// Its share in the simulator, in bytes on the wire.
    pub passed_bps: u64,
}

/// Ethernet, IPv4 and TCP with time stamps.
const HEADERS: u64 = 66;
/// Packets over the bottleneck for which a run lasts, packets of the least share for which it goes on, and the most of
/// all. And the part of the run that is left out.
const PACKETS: u64 = 200_000;
const PACKETS_EACH: u64 = 3_000;
const PACKETS_MAX: u64 = 2_000_000;
const WARM_UP: f64 = 0.25;
/// Hosts on each side.
const HOSTS_MAX: u32 = 4_000;

/// The scenario for the tenants that ask at `position`.
pub fn scenario(tenants: &Tenants, position: Position, grants: &Grants) -> Result<String, String> {
    let asks = |tenant: &&crate::tenants::Tenant| tenant.request.iter().any(|request| request.position == position);
    let all: Vec<_> = tenants.entity.iter().filter(asks).collect();
    let hosts: u32 = all.iter().map(|tenant| tenant.senders).sum();
    if hosts > HOSTS_MAX {
        return Err(format!("{hosts} senders are too many to simulate; at most {HOSTS_MAX}: set `senders`"));
    }
    let link = &tenants.link;
    let capacity = link.capacity;
    let config = tenants.config();
    let least = grants.rows().iter().filter(|row| row.name != DEFAULT_NAME).map(|row| row.rate.bps()).min();
    let wanted = PACKETS_EACH.saturating_mul(capacity.bps()) / least.unwrap_or(capacity.bps()).max(1);
    let end = capacity.transmit(wanted.clamp(PACKETS, PACKETS_MAX) * link.mtu.get());
    let step = Rate::from_bps(1_000_000_000_000).transmit(1);
    let delay_ps = (link.rtt.unwrap_or(Senders::USUAL.rtt).ps() / 6 / step.ps().max(1)) * step.ps().max(1);
    let mut text = format!(
        "name = \"tenants\"\nhost = {{ mtu = \"{}\", header = \"{HEADERS}B\" }}\n\
         switch.buffer = {{ per_port = {{ bytes = \"{}\" }} }}\n\
         measure = {{ end = \"{}ps\", interval = \"{}ps\" }}\n\
         [sharing.aq]\nheadroom = {:?}\n",
        plain(link.mtu),
        plain(Bytes(link.queue.get().max(2 * link.mtu.get()))),
        end.ps(),
        end.ps() / 100,
        config.headroom,
    );
    if let Some(conserving) = config.work_conserving {
        text += &format!("work_conserving = {}\n", inline(&conserving)?);
    }
    text += &format!(
        "[fabric.dumbbell]\nhosts_per_side = {}\nhost_rate = \"{}bps\"\nbottleneck_rate = \"{}bps\"\n\
         propagation = \"{delay_ps}ps\"\nswitch_delay = \"0s\"\n",
        hosts.max(1),
        capacity.bps().saturating_mul(2),
        capacity.bps(),
    );
    let mut first = 0;
    for tenant in all {
        let request = tenant.request.iter().find(|request| request.position == position);
        let Some(request) = request else { continue };
        let last = first + tenant.senders - 1;
        let each = if tenant.states() > 1 { "each = \"flow\"\n" } else { "" };
        let capped = tenant.work_conserving.filter(|_| tenants.divides());
        let capped = capped.map_or(String::new(), |may| format!("work_conserving = {may}\n"));
        text += &format!(
            "[[entity]]\nname = {name}\ntraffic = [{name}]\n{each}{capped}\
             request = [{{ share = {share}, link = [\"left\", \"right\"], position = \"ingress\" }}]\n\
             [[traffic]]\nname = {name}\ntransport = {transport}\nsizes = {{ constant = \"1TB\" }}\n\
             pattern = {{ stride = {{ by = {hosts} }} }}\narrivals = \"all_at_once\"\nsenders = \"{first}-{last}\"\n",
            name = inline(&tenant.name)?,
            share = inline(&request.share)?,
            transport = inline::<Transport>(&tenant.transport)?,
        );
        first = last + 1;
    }
    Ok(text)
}

/// A size as scenarios write it.
fn plain(bytes: Bytes) -> String {
    format!("{}B", bytes.get())
}

/// A value as TOML within a line.
fn inline<T: Serialize>(value: &T) -> Result<String, String> {
    let value = toml::Value::try_from(value).map_err(|error| error.to_string())?;
    Ok(value.to_string())
}

/// Runs the scenario and says what each tenant gets.
pub fn predict(tenants: &Tenants, position: Position, grants: &Grants) -> Result<Vec<Predicted>, String> {
    let text = scenario(tenants, position, grants)?;
    let scenario = scenario::read(&text, "the tenants' scenario", &[]).map_err(|error| error.to_string())?;
    let result = sim::run(&scenario, 1, |_| false).map_err(|problem| problem.to_string())?;
    let table = result.tables.iter().find(|table| table.name == "entities").ok_or("the run has no entities")?;
    let column = |name: &str| {
        let found = table.columns.iter().find(|column: &&Column| column.name == name);
        found.ok_or_else(|| format!("the table of entities has no {name}"))
    };
    let Data::Names { index, names } = &column("entity")?.data else { return Err("entities have no names".into()) };
    let (Data::U64(at), Data::U64(bytes)) = (&column("time_ps")?.data, &column("delivered_bytes")?.data) else {
        return Err("bytes and times are no numbers".into());
    };
    let from_ps = (result.info.end_ps as f64 * WARM_UP) as u64;
    let seconds = (result.info.end_ps - from_ps) as f64 / 1e12;
    let mtu = tenants.link.mtu.get();
    let wire = mtu as f64 / mtu.saturating_sub(HEADERS).max(1) as f64;
    let passed = |name: &str| {
        let mut sum = 0;
        for row in 0..at.len() {
            if at[row] > from_ps && names[index[row] as usize] == name {
                sum += bytes[row];
            }
        }
        (sum as f64 * wire * 8.0 / seconds) as u64
    };
    let rows = grants.rows().iter().filter(|row| row.name != DEFAULT_NAME);
    let predicted = |row: &crate::grants::Row| Predicted {
        tenant: row.name.clone(),
        allocated_bps: row.rate.bps(),
        passed_bps: passed(&row.name),
    };
    Ok(rows.map(predicted).collect())
}
