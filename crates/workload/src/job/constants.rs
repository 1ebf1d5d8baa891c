//! The library that a job's collectives follow, with its measured constants.

use job::collective::library::{self, Constants, Machine};
use units::{Duration, Problem, Rate};

use super::{Algorithm, Job, Library, Like};
use crate::FabricView;

/// Constants of no machine: a host whose GPUs and NICs are as NCCL's own constants have them.
pub const DEFAULT: Constants = Constants {
    launch: Duration::from_us(10),
    simple: Duration::from_us(5),
    send_recv: Duration::ZERO,
    latency: 1.0,
    nic_efficiency: 0.9,
    local_efficiency: 0.8,
    copy: Rate::from_gbps(160),
    channels: 16,
};

impl<T> Job<T> {
    /// Rate of a host into the network: that of the first host of the job, unless the library says another.
    pub(super) fn nic(&self, view: &FabricView) -> Result<Rate, Problem> {
        let first = self.hosts(view)?.first().map(|host| view.host_rate[host.index()]);
        Ok(self.library.nic.or(first).unwrap_or_default())
    }

    /// The library that carries out collectives, if it is to choose how.
    pub(super) fn own(
        &self,
        library: &Library,
        algorithm: Option<Algorithm>,
        nic: Rate,
    ) -> Result<Option<library::Library>, Problem> {
        library.unused()?;
        let Some(like) = library.like else { return Ok(None) };
        let constants = library.constants().map_err(|problem| problem.under("library"))?;
        let nic = library.nic.unwrap_or(nic);
        if nic.bps() == 0 {
            return Err(Problem::new(
                "library.nic",
                "at 0 nothing would leave a host; write a rate such as \"400Gbps\"",
            ));
        }
        let machine = Machine { nic, local: self.local.rate, multicast: self.local.multicast };
        let wanted = match (like, algorithm) {
            (Like::Ring, None) | (_, Some(Algorithm::Ring)) => Some(library::Algorithm::Ring),
            (Like::Nccl, None) => None,
            (Like::Nccl, Some(Algorithm::Tree)) => Some(library::Algorithm::Tree),
            (Like::Nccl, Some(Algorithm::Nvls)) if self.local.multicast => None,
            (Like::Nccl, Some(Algorithm::Pat)) => Some(library::Algorithm::Pat),
            (_, Some(Algorithm::Pairwise)) => None,
            (_, Some(Algorithm::Nvls)) => {
                let message = "nvls needs a switch between ranks that adds up: set local.multicast = true";
                return Err(Problem::new("algorithm", message));
            }
            (_, Some(other)) => {
                let known = if like == Like::Nccl { "ring, tree, nvls or pat" } else { "ring" };
                let message = format!("the library does not do {}; write {known}, or leave it out", other.name());
                return Err(Problem::new("algorithm", message));
            }
        };
        Ok(Some(library::Library { constants, machine, local: self.ranks_per_host, algorithm: wanted }))
    }
}

impl Library {
    /// Refuses constants of a library where there is none.
    fn unused(&self) -> Result<(), Problem> {
        if self.like.is_some() {
            return Ok(());
        }
        let given = [
            ("launch", self.launch.is_some()),
            ("simple", self.simple.is_some()),
            ("send_recv", self.send_recv.is_some()),
            ("step_latency", self.step_latency.is_some()),
            ("nic_efficiency", self.nic_efficiency.is_some()),
            ("local_efficiency", self.local_efficiency.is_some()),
            ("copy", self.copy.is_some()),
            ("nic", self.nic.is_some()),
        ];
        let Some((key, _)) = given.into_iter().find(|of| of.1) else { return Ok(()) };
        Err(Problem::new(format!("library.{key}"), "needs a library: write like = \"nccl\" beside it"))
    }

    fn constants(&self) -> Result<Constants, Problem> {
        let share = |key: &str, value: Option<f64>, default: f64| match value {
            Some(share) if !(share > 0.0 && share <= 1.0) => {
                Err(Problem::new(key, format!("{share} is no share; write one above 0 and up to 1, such as 0.9")))
            }
            given => Ok(given.unwrap_or(default)),
        };
        let latency = self.step_latency.unwrap_or(DEFAULT.latency);
        if !(0.0..=1e3).contains(&latency) {
            return Err(Problem::new(
                "step_latency",
                format!("{latency} is not between 0 and 1000; write 1, for example"),
            ));
        }
        let copy = self.copy.unwrap_or(DEFAULT.copy);
        if copy.bps() == 0 {
            return Err(Problem::new("copy", "at 0 nothing would be copied; write a rate such as \"160Gbps\""));
        }
        // One channel is the default of jobs without a library.
        let channels = if self.channels == 1 { DEFAULT.channels } else { self.channels };
        Ok(Constants {
            launch: self.launch.unwrap_or(DEFAULT.launch),
            simple: self.simple.unwrap_or(DEFAULT.simple),
            send_recv: self.send_recv.unwrap_or(DEFAULT.send_recv),
            latency,
            nic_efficiency: share("nic_efficiency", self.nic_efficiency, DEFAULT.nic_efficiency)?,
            local_efficiency: share("local_efficiency", self.local_efficiency, DEFAULT.local_efficiency)?,
            copy,
            channels,
        })
    }
}
