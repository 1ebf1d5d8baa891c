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
    let readme = include_str!("../../../data/README.md");
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
