use serde::*;
use units::*;
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub src: HostId,
    pub dst: HostId,
    pub bytes: u64,
    pub start: Time,
    pub class: u16,
    pub after: Option<FlowId>,
}
pub struct Ground {
    pub rack_of: Vec<u32>,
    pub host_rate: Vec<Rate>,
    pub bisection: Rate,
    pub narrowest: Rate,
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Traffic<T> {
    pub name: String,
    #[serde(default = "none::<T>", bound(deserialize = "T: Deserialize<'de>"))]
    pub transport: Option<T>,
    pub load: f64,
    pub bytes: u64,
    pub flows: u64,
}
fn none<T>() -> Option<T> {
    None
}
pub fn generate<T>(classes: &[Traffic<T>], ground: &Ground, seed: u64) -> Result<Vec<Flow>, Problem> {
    let mut flows = Vec::new();
    let n = ground.rack_of.len() as u64;
    for (i, c) in classes.iter().enumerate() {
        let mut r = Stream::new(seed, i as u64, "t");
        let mut t = 0.0;
        let mean = c.bytes as f64 * 8.0 / (ground.host_rate[0].bps() as f64 * c.load * n as f64);
        for _ in 0..c.flows {
            t += r.exponential(mean);
            let src = r.below(n);
            let dst = (src + 1 + r.below(n - 1)) % n;
            flows.push(Flow {
                src: HostId(src as u32),
                dst: HostId(dst as u32),
                bytes: c.bytes,
                start: Time::from_secs_f64(t),
                class: i as u16,
                after: None,
            });
        }
    }
    flows.sort_by_key(|f| f.start);
    Ok(flows)
}
