use super::*;

fn sampled_mean(sizes: &Sizes, round_to: Bytes, n: u32) -> (f64, f64, f64) {
    let sampler = sizes.sampler(round_to).unwrap();
    let mut stream = Stream::new(3, 0, "sizes");
    let draws: Vec<f64> = (0..n).map(|_| sampler.draw(&mut stream, 1.0) as f64).collect();
    let mean = draws.iter().sum::<f64>() / f64::from(n);
    let variance = draws.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / f64::from(n - 1);
    (mean, (variance / f64::from(n)).sqrt(), sampler.mean_bytes())
}

#[test]
fn sampled_means_are_the_stated_means_within_four_standard_errors() {
    let kinds = [
        "sizes = { constant = '128KB' }",
        "sizes = { uniform = { min = '43800B', max = '58400B' } }",
        "sizes = { pareto = { shape = 2.5, mean = '100KB' } }",
        "sizes = { pareto = { shape = 1.05, mean = '100KB', cap = '10MB' } }",
        "sizes = { cdf = { points = [[0, 0], [1000, 50], [9000, 100]], unit = 'bytes', probability = 'percent' } }",
        "sizes = 'websearch'",
        "sizes = 'memcached'",
        "sizes = 'ali_storage'",
    ];
    #[derive(Deserialize)]
    struct Doc {
        sizes: Sizes,
    }
    for kind in kinds {
        for round_to in [1, 1460] {
            let sizes = toml::from_str::<Doc>(kind).unwrap().sizes;
            let pareto = matches!(sizes, Sizes::Pareto(_));
            if pareto && round_to > 1 {
                continue; // Its stated mean is the one before rounding.
            }
            let (mean, error, stated) = sampled_mean(&sizes, Bytes(round_to), 200_000);
            assert!((mean - stated).abs() <= 4.0 * error + 1e-6, "{kind}: {mean} +- {error}, stated {stated}");
        }
    }
}

#[test]
fn rounding_gives_whole_packets_and_at_least_one() {
    let sampler = Sizes::Memcached.sampler(Bytes(1460)).unwrap();
    let mut stream = Stream::new(1, 0, "sizes");
    let draws: Vec<u64> = (0..1000).map(|_| sampler.draw(&mut stream, 1.0)).collect();
    assert!(draws.iter().all(|d| *d >= 1460 && d % 1460 == 0));
}

#[test]
fn impossible_sizes_are_named() {
    let key = |sizes: Sizes| sizes.sampler(Bytes(1)).unwrap_err().key;
    assert_eq!(key(Sizes::Constant(Bytes(0))), "constant");
    assert_eq!(key(Sizes::Uniform(Uniform { min: Bytes(5), max: Bytes(4) })), "uniform.max");
    assert_eq!(key(Sizes::Pareto(Pareto { shape: 1.0, mean: Bytes(5), cap: None })), "pareto.shape");
    assert_eq!(key(Sizes::Pareto(Pareto { shape: 2.0, mean: Bytes(5), cap: Some(Bytes(5)) })), "pareto.cap");
}
