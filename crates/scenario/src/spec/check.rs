//! Checks that types can't express and that need no network. Those that need one are in `run::compatibility`.

use units::{Duration, Problem, Rate};

use super::{HostSpec, Scenario};

impl Scenario {
    /// What the types can't forbid and needs no fabric to see.
    pub fn check(&self) -> Result<(), Problem> {
        super::bounds::check(self)?;
        self.check_crates()?;
        self.check_traffic()?;
        self.check_mechanisms()?;
        self.check_host()?;
        self.check_timing()?;
        self.check_times()?;
        self.live.check()?;
        self.check_end()
    }

    fn check_traffic(&self) -> Result<(), Problem> {
        self.transport.check().map_err(|problem| problem.under("transport"))?;
        for (index, class) in self.traffic.iter().enumerate() {
            if let Some(transport) = &class.transport {
                transport.check().map_err(|problem| problem.under("transport").under(format!("traffic[{index}]")))?;
            }
            self.check_resubmit(class).map_err(|problem| problem.under(format!("traffic[{index}]")))?;
        }
        for (index, job) in self.job.iter().enumerate() {
            let under = |problem: Problem| problem.under(format!("job[{index}]"));
            if let Some(transport) = &job.transport {
                transport.check().map_err(|problem| under(problem.under("transport")))?;
            }
            let place = self.traffic.len() + index;
            if let Some(twin) = self.classes().take(place).position(|other| other.name == job.name) {
                let (name, twin) = (&job.name, self.class_key(twin));
                let message = format!("\"{name}\" is also the name of {twin}; give each a different name");
                return Err(under(Problem::new("name", message)));
            }
        }
        for (index, (name, socket)) in self.live.sockets.iter().enumerate() {
            let key = format!("live.sockets.{name}");
            if let Some(transport) = &socket.transport {
                transport.check().map_err(|problem| problem.under("transport").under(&key))?;
            }
            let place = self.first_socket_class() + index;
            if let Some(twin) = self.classes().take(place).position(|other| other.name == name) {
                let message = format!("is also the name of {}; give each a different name", self.class_key(twin));
                return Err(Problem::new(key, message));
            }
        }
        // Where hosts are attached, or programs send, traffic may come from outside alone.
        if self.classes().next().is_none() && self.live.attach.is_empty() {
            let message = "missing: add a [[traffic]] table with sizes and a pattern, or a [[job]]; or live.sockets, \
                           for programs that send messages";
            return Err(Problem::new("traffic", message));
        }
        if self.classes().count() > usize::from(u16::MAX) {
            return Err(Problem::new("traffic", "has more than 65,535 classes; merge some"));
        }
        if self.carriers().transports.len() > 255 {
            return Err(Problem::new(
                "traffic",
                "the scenario has more than 255 transports with different settings; let more classes share their \
                 settings",
            ));
        }
        Ok(())
    }

    fn check_mechanisms(&self) -> Result<(), Problem> {
        if self.entity.len() > usize::from(u16::MAX) {
            return Err(Problem::new(
                "entity",
                "has more than 65535 entries; let one entry stand for many, by each = \"flow\" or each = \"host\"",
            ));
        }
        self.sharing.check().map_err(|problem| problem.under("sharing"))?;
        self.flow_control.check().map_err(|problem| problem.under("flow_control"))?;
        if let Some(llr) = &self.link.llr {
            llr.check().map_err(|problem| problem.under("llr").under("link"))?;
        }
        Ok(())
    }

    fn check_host(&self) -> Result<(), Problem> {
        let HostSpec { mtu, header, .. } = self.host;
        if header.get() == 0 || header.get() > 1_000 {
            return Err(Problem::new("host.header", format!("{header} is not between 1B and 1000B")));
        }
        if mtu <= header || mtu.get() > 9_216 {
            let message = format!("{mtu} is not between the header ({header}) and a jumbo frame (9216B)");
            return Err(Problem::new("host.mtu", message));
        }
        if self.host.intake_rate == Some(Rate::ZERO) {
            return Err(Problem::new(
                "host.intake_rate",
                "at 0 a host would take in nothing; leave it out for the rate of the link",
            ));
        }
        if self.host.intake_buffer.get() < 9_216 {
            let message = format!("{} can't hold a packet; write at least 9216B", self.host.intake_buffer);
            return Err(Problem::new("host.intake_buffer", message));
        }
        if let Some(cpu) = &self.host.cpu {
            cpu.check().map_err(|problem| problem.under("cpu").under("host"))?;
        }
        if self.host.clock_drift_ppb_max > 1_000_000 {
            let message = format!("{} ppb is too much for a clock; at most 1000000", self.host.clock_drift_ppb_max);
            return Err(Problem::new("host.clock_drift_ppb_max", message));
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), Problem> {
        let (second, day) = (Duration::from_ms(1_000), Duration::from_ms(86_400_000));
        let bounded = [
            ("host.delay", self.host.delay, second),
            ("host.clock_offset_max", self.host.clock_offset_max, second),
            ("reroute_delay", self.reroute_delay, day),
            ("reroute_per_hop", self.reroute_per_hop, day),
            ("reroute_compute_max", self.reroute_compute_max, day),
            ("transmission_step", self.transmission_step, Duration::from_ns(10)),
            ("measure.end", self.measure.end.unwrap_or_default(), day),
            ("measure.drain", self.measure.drain, day),
            ("measure.interval", self.measure.interval, day),
        ];
        if let Some((key, value, most)) = bounded.into_iter().find(|(_, value, most)| value > most) {
            return Err(Problem::new(key, format!("{value} is too long; at most {most}")));
        }
        Ok(())
    }

    fn check_end(&self) -> Result<(), Problem> {
        if self.measure.end == Some(Duration::ZERO) {
            return Err(Problem::new(
                "measure.end",
                "at 0 nothing would run; leave it out to run until every flow has ended",
            ));
        }
        Ok(())
    }
}
