use super::cdf::{Cdf, Probability, SizeUnit, Table};

/// A published table of sizes, with the unit and scale of its file.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// The name in a scenario.
    pub name: &'static str,
    /// Source of the numbers.
    pub source: &'static str,
    /// Unit of the file's sizes.
    pub unit: SizeUnit,
    /// Scale of the file's probabilities.
    pub probability: Probability,
    text: &'static str,
}

macro_rules! named {
    ($($constant:ident = $name:literal, $file:literal, $unit:ident, $probability:ident, $source:literal;)*) => {
        impl Named {
            $(pub(super) const $constant: Named = Named {
                name: $name,
                source: $source,
                unit: SizeUnit::$unit,
                probability: Probability::$probability,
                text: include_str!(concat!("../../data/", $file)),
            };)*

            /// All published tables.
            pub const ALL: &[Named] = &[$(Named::$constant),*];
        }
    };
}

named! {
    WEBSEARCH = "websearch", "websearch_dcpim.txt", Packets, Fraction,
        "DCTCP (SIGCOMM 2010), as in dcPIM's repository";
    DATAMINING = "datamining", "datamining_dcpim.txt", Packets, Fraction,
        "VL2 (SIGCOMM 2009), as in dcPIM's repository";
    IMC10 = "imc10", "imc10_dcpim.txt", Packets, Fraction,
        "Benson et al. (IMC 2010), as in dcPIM's repository";
    MEMCACHED = "memcached", "memcached_homa.txt", Bytes, Fraction,
        "Atikoglu et al. (SIGMETRICS 2012), as in the Homa simulator";
    WEBSERVER = "webserver", "webserver_homa.txt", Bytes, Fraction,
        "Roy et al. (SIGCOMM 2015), as in the Homa simulator";
    HADOOP = "hadoop", "hadoop_homa.txt", Bytes, Fraction,
        "Roy et al. (SIGCOMM 2015), as in the Homa simulator";
    CACHE_FOLLOWER = "cache_follower", "cache_follower_homa.txt", Bytes, Fraction,
        "Roy et al. (SIGCOMM 2015), as in the Homa simulator";
    GOOGLE_RPC = "google_rpc", "google_rpc_homa.txt", Bytes, Fraction,
        "Google, 2008, as in the Homa simulator";
    ALI_STORAGE = "ali_storage", "ali_storage_hpcc.txt", Bytes, Percent,
        "Alibaba, 2019, as in HPCC's repository";
    WEBSEARCH_HPCC = "websearch_hpcc", "websearch_hpcc.txt", Bytes, Percent,
        "DCTCP (SIGCOMM 2010), as in HPCC's repository";
    HADOOP_HPCC = "hadoop_hpcc", "hadoop_hpcc.txt", Bytes, Percent,
        "Roy et al. (SIGCOMM 2015), as in HPCC's repository";
    GOOGLE_RPC_HPCC = "google_rpc_hpcc", "google_rpc_hpcc.txt", Bytes, Percent,
        "Google, 2008, as in HPCC's repository";
}

impl Named {
    /// The distribution in bytes.
    pub fn cdf(&self) -> Cdf {
        let table = Table::parse(self.text, self.name, self.unit, self.probability).expect("our own tables are sound");
        table.cdf().expect("our own tables are sound")
    }
}

#[cfg(test)]
mod tests;
