use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Problem, Stream};

mod cdf;
mod named;
mod pareto;

pub use cdf::{Cdf, Probability, SizeUnit, Table, TableFile};
pub use named::Named;
pub use pareto::Pareto;

/// Message sizes: payload bytes without headers.
///
/// A drawn size is rounded to the nearest multiple of the class's `round_to` (default 1 byte) and is at least that.
/// Rounding to the nearest keeps the mean: exactly between two points that are themselves multiples, as in every
/// published table here.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Sizes {
    /// Web search (DCTCP's cluster), as dcPIM and pFabric ship it: mean 1,140.98 packets of 1,460 B.
    Websearch,
    /// Data mining (VL2's cluster), as dcPIM and pFabric ship it: mean 5,116.6 packets of 1,460 B.
    Datamining,
    /// IMC10 (Benson et al., IMC 2010), as dcPIM and pHost ship it: mean 133.806 packets of 1,460 B.
    Imc10,
    /// Facebook's Memcached pool ETC (Atikoglu et al., 2012), as Homa ships it: mean 185 B.
    Memcached,
    /// Facebook's web servers inside a cluster (Roy et al., 2015), as Homa ships it: mean 62.2 KB.
    Webserver,
    /// Facebook's Hadoop (Roy et al., 2015), as Homa ships it: mean 122 KB.
    Hadoop,
    /// Facebook's cache followers inside a cluster (Roy et al., 2015), as Homa ships it: mean 687 KB.
    CacheFollower,
    /// All RPCs of a Google datacenter (2008), as Homa ships it: mean 2.89 KB.
    GoogleRpc,
    /// Alibaba's block storage (2019), as HPCC ships it: mean 40.9 KB.
    AliStorage,
    /// Web search as HPCC ships it, in bytes rounded to thousands: mean 1.71 MB.
    WebsearchHpcc,
    /// Facebook's Hadoop as HPCC ships it, with 20 points: mean 120 KB.
    HadoopHpcc,
    /// Google's RPCs as HPCC ships it: mean 2.89 KB.
    GoogleRpcHpcc,
    /// The same size for every message.
    #[serde(alias = "fixed")]
    Constant(Bytes),
    /// Every size between two bounds equally likely.
    Uniform(Uniform),
    /// A heavy tail (R2C2 section 5.2).
    Pareto(Pareto),
    /// A cumulative distribution given by its points.
    Cdf(Table),
    /// A cumulative distribution from a file.
    CdfFile(TableFile),
}

/// Sizes uniform between two bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Uniform {
    /// The smallest size.
    pub min: Bytes,
    /// The largest size.
    pub max: Bytes,
}

impl Sizes {
    /// The published table of a name; `None` for the other kinds.
    pub fn named(&self) -> Option<Named> {
        Some(match self {
            Sizes::Websearch => Named::WEBSEARCH,
            Sizes::Datamining => Named::DATAMINING,
            Sizes::Imc10 => Named::IMC10,
            Sizes::Memcached => Named::MEMCACHED,
            Sizes::Webserver => Named::WEBSERVER,
            Sizes::Hadoop => Named::HADOOP,
            Sizes::CacheFollower => Named::CACHE_FOLLOWER,
            Sizes::GoogleRpc => Named::GOOGLE_RPC,
            Sizes::AliStorage => Named::ALI_STORAGE,
            Sizes::WebsearchHpcc => Named::WEBSEARCH_HPCC,
            Sizes::HadoopHpcc => Named::HADOOP_HPCC,
            Sizes::GoogleRpcHpcc => Named::GOOGLE_RPC_HPCC,
            Sizes::Constant(_) | Sizes::Uniform(_) | Sizes::Pareto(_) | Sizes::Cdf(_) | Sizes::CdfFile(_) => {
                return None;
            }
        })
    }

    /// Prepares to draw sizes in multiples of `round_to`.
    pub(crate) fn sampler(&self, round_to: Bytes) -> Result<Sampler, Problem> {
        let law = match self {
            Sizes::Constant(bytes) => Law::Cdf(Cdf::constant(positive("constant", *bytes)?.0 as f64)),
            Sizes::Uniform(Uniform { min, max }) => {
                positive("uniform.min", *min)?;
                if min > max {
                    return Err(Problem::new(
                        "uniform.max",
                        format!("{max} is less than min, {min}; write at least that"),
                    ));
                }
                Law::Cdf(Cdf::uniform(min.0 as f64, max.0 as f64))
            }
            Sizes::Pareto(pareto) => Law::Pareto(pareto.law().map_err(|p| p.under("pareto"))?),
            Sizes::Cdf(table) => Law::Cdf(table.cdf().map_err(|p| p.under("cdf"))?),
            Sizes::CdfFile(file) => {
                let message = format!("\"{}\" has not been read yet; load the files first", file.path);
                return Err(Problem::new("cdf_file.path", message));
            }
            named => Law::Cdf(named.named().expect("all other kinds are listed above").cdf()),
        };
        Ok(Sampler { law, quantum: round_to.0.max(1) })
    }
}

fn positive(key: &str, bytes: Bytes) -> Result<Bytes, Problem> {
    if bytes.0 == 0 { Err(Problem::new(key, "a message needs at least 1B")) } else { Ok(bytes) }
}

/// A size distribution, ready to draw from.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    law: Law,
    quantum: u64,
}

#[derive(Clone, Debug)]
enum Law {
    Cdf(Cdf),
    Pareto(pareto::Law),
}

impl Sampler {
    /// Draws a size; `weight` scales it before rounding.
    pub fn draw(&self, stream: &mut Stream, weight: f64) -> u64 {
        let size = match &self.law {
            Law::Cdf(cdf) => cdf.quantile(stream.unit()),
            Law::Pareto(law) => law.quantile(stream.unit()),
        };
        // Sizes are below 2^53 in any table, and a saturating cast bounds the rest.
        let multiples = (size * weight / self.quantum as f64 + 0.5) as u64;
        multiples.max(1).saturating_mul(self.quantum)
    }

    /// The mean of drawn sizes at weight 1: exact for tables, and before rounding for a Pareto distribution.
    pub fn mean_bytes(&self) -> f64 {
        match &self.law {
            Law::Cdf(cdf) => cdf.mean_rounded(self.quantum as f64),
            Law::Pareto(law) => law.mean,
        }
    }
}

#[cfg(test)]
mod tests;
