//! DCQCN under the names and in the units of NVIDIA's tools, so that numbers can be copied from a NIC.
//!
//! Meanings, units and defaults are those of "DCQCN CC Parameters" (NVIDIA, DOCA documentation 3.4; Mellanox community,
//! DOC-2790). Where the page leaves a unit out, that of the driver in FreeBSD (`mlx5ib`, written by Mellanox) holds:
//! `rpg_byte_reset` in bytes, `min_time_between_cnps` in microseconds and for a whole port. The defaults are also what
//! `mlxconfig` prints for ConnectX-5 to ConnectX-7, but that older firmware has 0 or 2 for `min_time_between_cnps`.
//!
//! A cut is what the page gives: the rate becomes `1 - alpha / 2^rpg_gd` of itself, with `alpha` in 1,024ths, but no
//! less than `rpg_min_dec_fac` percent of itself. With 11 that is the paper's half of alpha.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem, Rate};

use super::{Config, Reaction};
use crate::rdma::control::{Cnp, Spaced};

/// DCQCN's parameters under NVIDIA's names and in NVIDIA's units: whole numbers. It stands in place of all other keys
/// of the table but the marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "DcqcnNvidia")]
pub struct Nvidia {
    /// The share of alpha that each update keeps, in 1,024ths, 0 to 1023. Default: 1019.
    pub dce_tcp_g: u32,
    /// Microseconds between updates of alpha, 1 to 131071. Default: 1.
    pub dce_tcp_rtt: u32,
    /// Alpha at the first notification of a queue pair, in 1,024ths, 1 to 1023. Default: 1023.
    pub initial_alpha_value: u32,
    /// Rate and target in Mbps at the first notification of a queue pair; 0 for line rate. Default: 0.
    pub rate_to_set_on_first_cnp: u32,
    /// The least share of its rate that a queue pair keeps in a cut, in percent, 0 to 100. Default: 50.
    pub rpg_min_dec_fac: u32,
    /// Lowest rate in Mbps. Default: 1.
    pub rpg_min_rate: u32,
    /// Rate in Mbps from which a queue pair is not limited any more; 0 for line rate. Default: 0.
    pub rpg_max_rate: u32,
    /// A cut takes alpha, in 1,024ths, over 2 to the power of this, 1 to 15. Default: 11.
    pub rpg_gd: u32,
    /// Microseconds between cuts. Default: 4.
    pub rate_reduce_monitor_period: u32,
    /// Whether each cut sets the target to the rate before it. Otherwise only the first cut after an increase does.
    /// Default: false.
    pub clamp_tgt_rate: bool,
    /// Whether an increase by the timer counts as one for that. Default: true.
    pub clamp_tgt_rate_after_time_inc: bool,
    /// Microseconds between increases since the last cut, 1 to 131071. Default: 300.
    pub rpg_time_reset: u32,
    /// Bytes sent between further increases; 0 for none. Default: 32767.
    pub rpg_byte_reset: u32,
    /// Number of increases of each kind that only recover to the target, 1 to 31. Default: 1.
    pub rpg_threshold: u32,
    /// Growth of the target in Mbps in an additive increase. Default: 5.
    pub rpg_ai_rate: u32,
    /// Growth of the target in Mbps in a hyper increase. Default: 50.
    pub rpg_hai_rate: u32,
    /// Least microseconds between two notifications of a receiver, for all of its queue pairs, 0 to 4095. Default: 4.
    pub min_time_between_cnps: u32,
}

impl Default for Nvidia {
    fn default() -> Nvidia {
        Nvidia {
            dce_tcp_g: 1019,
            dce_tcp_rtt: 1,
            initial_alpha_value: 1023,
            rate_to_set_on_first_cnp: 0,
            rpg_min_dec_fac: 50,
            rpg_min_rate: 1,
            rpg_max_rate: 0,
            rpg_gd: 11,
            rate_reduce_monitor_period: 4,
            clamp_tgt_rate: false,
            clamp_tgt_rate_after_time_inc: true,
            rpg_time_reset: 300,
            rpg_byte_reset: 32_767,
            rpg_threshold: 1,
            rpg_ai_rate: 5,
            rpg_hai_rate: 50,
            min_time_between_cnps: 4,
        }
    }
}

impl Nvidia {
    pub(super) fn check(&self) -> Result<(), Problem> {
        let bounds = [
            ("dce_tcp_g", self.dce_tcp_g, 0, 1023),
            ("dce_tcp_rtt", self.dce_tcp_rtt, 1, 131_071),
            ("initial_alpha_value", self.initial_alpha_value, 1, 1023),
            ("rpg_min_dec_fac", self.rpg_min_dec_fac, 0, 100),
            ("rpg_min_rate", self.rpg_min_rate, 1, u32::MAX),
            ("rpg_gd", self.rpg_gd, 1, 15),
            ("rate_reduce_monitor_period", self.rate_reduce_monitor_period, 1, u32::MAX),
            ("rpg_time_reset", self.rpg_time_reset, 1, 131_071),
            ("rpg_threshold", self.rpg_threshold, 1, 31),
            ("min_time_between_cnps", self.min_time_between_cnps, 0, 4_095),
        ];
        match bounds.iter().find(|(_, value, least, most)| !(least..=most).contains(&value)) {
            Some((key, value, least, most)) => {
                Err(Problem::new(*key, format!("{value} is not between {least} and {most}")))
            }
            None => Ok(()),
        }
    }

    /// How its receivers report marks.
    pub(super) fn cnp(&self) -> Cnp {
        Cnp::Packet { interval: us(self.min_time_between_cnps), spaced: Spaced::Receiver }
    }

    /// The same in Clearway's units.
    pub(super) fn reaction(&self) -> Reaction {
        let of_1024 = |number: u32| f64::from(number) / 1024.0;
        let rate = |number: u32| (number > 0).then(|| mbps(number));
        Reaction {
            g: 1.0 - of_1024(self.dce_tcp_g),
            initial_alpha: of_1024(self.initial_alpha_value),
            cut_by: 1024.0 / f64::from(1u32 << self.rpg_gd),
            kept_least: f64::from(self.rpg_min_dec_fac) / 100.0,
            first_rate: rate(self.rate_to_set_on_first_cnp),
            rate_max: rate(self.rpg_max_rate),
            clamp_after_timer: self.clamp_tgt_rate_after_time_inc,
            alpha_interval: us(self.dce_tcp_rtt),
            decrease_interval: us(self.rate_reduce_monitor_period),
            increase_timer: us(self.rpg_time_reset),
            byte_counter: (self.rpg_byte_reset > 0).then_some(Bytes(u64::from(self.rpg_byte_reset))),
            fast_recovery: self.rpg_threshold,
            additive_increase: mbps(self.rpg_ai_rate),
            hyper_increase: mbps(self.rpg_hai_rate),
            clamp_target: self.clamp_tgt_rate,
            rate_min: mbps(self.rpg_min_rate),
        }
    }

    /// The first key of the table that says something beside `nvidia`, with the name under which it goes there.
    pub(super) fn doubled(config: &Config) -> Option<(&'static str, &'static str)> {
        let Config { g, alpha_interval, decrease_interval, increase_timer, byte_counter, .. } = Config::default();
        let Config { cnp, fast_recovery, additive_increase, hyper_increase, clamp_target, rate_min, .. } =
            Config::default();
        let both = [
            ("cnp", "min_time_between_cnps", config.cnp != cnp),
            ("g", "dce_tcp_g", config.g != g),
            ("alpha_interval", "dce_tcp_rtt", config.alpha_interval != alpha_interval),
            ("decrease_interval", "rate_reduce_monitor_period", config.decrease_interval != decrease_interval),
            ("increase_timer", "rpg_time_reset", config.increase_timer != increase_timer),
            ("byte_counter", "rpg_byte_reset", config.byte_counter != byte_counter),
            ("fast_recovery", "rpg_threshold", config.fast_recovery != fast_recovery),
            ("additive_increase", "rpg_ai_rate", config.additive_increase != additive_increase),
            ("hyper_increase", "rpg_hai_rate", config.hyper_increase != hyper_increase),
            ("clamp_target", "clamp_tgt_rate", config.clamp_target != clamp_target),
            ("rate_min", "rpg_min_rate", config.rate_min != rate_min),
        ];
        both.into_iter().find(|(_, _, differs)| *differs).map(|(own, theirs, _)| (own, theirs))
    }
}

fn us(number: u32) -> Duration {
    Duration::from_us(u64::from(number))
}

fn mbps(number: u32) -> Rate {
    Rate::from_bps(u64::from(number) * 1_000_000)
}

#[cfg(test)]
mod tests;
