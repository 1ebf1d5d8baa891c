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
mod tests {
    use super::*;

    /// Computed in rational arithmetic outside this program: the sum of (q - p) (a + b) / 2 over neighbouring points.
    const MEANS_BYTES: &[(&str, f64)] = &[
        ("websearch", 1140.98 * 1460.0),
        ("datamining", 5116.6 * 1460.0),
        ("imc10", 133.80625 * 1460.0),
        ("memcached", 184.613_024_544_739_4),
        ("webserver", 62_228.780_275),
        ("hadoop", 121_848.960_505),
        ("cache_follower", 686_866.116_3),
        ("google_rpc", 2_890.271_570_639_885),
        ("ali_storage", 40_869.8),
        ("websearch_hpcc", 1_711_250.0),
        ("hadoop_hpcc", 120_420.75),
        ("google_rpc_hpcc", 2_891.621_250_05),
    ];

    #[test]
    fn every_mean_is_the_closed_form() {
        assert_eq!(Named::ALL.len(), MEANS_BYTES.len());
        for (named, (name, mean)) in Named::ALL.iter().zip(MEANS_BYTES) {
            assert_eq!(named.name, *name);
            assert!((named.cdf().mean_bytes() / mean - 1.0).abs() < 1e-9, "{name}: {}", named.cdf().mean_bytes());
        }
    }

    #[test]
    fn the_published_means_are_the_computed_ones() {
        let readme = include_str!("../../data/README.md");
        for named in Named::ALL {
            let row = format!("| `{}` |", named.name);
            let row = readme.lines().find(|line| line.starts_with(&row)).expect("every table has its row");
            let mean = row.split('|').nth(5).unwrap().trim().replace(',', "").parse::<f64>().unwrap();
            assert!((named.cdf().mean_bytes() - mean).abs() <= 0.5, "{row}: {}", named.cdf().mean_bytes());
        }
    }

    #[test]
    fn names_are_the_scenarios_names() {
        #[derive(serde::Deserialize)]
        struct Doc {
            sizes: crate::Sizes,
        }
        for named in Named::ALL {
            let doc: Doc = toml::from_str(&format!("sizes = '{}'", named.name)).unwrap();
            assert_eq!(doc.sizes.named().unwrap().name, named.name);
        }
        assert!(toml::from_str::<Doc>("sizes = 'websarch'").is_err());
    }
}
