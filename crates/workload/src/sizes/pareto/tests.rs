use super::*;

#[test]
fn the_cap_truncates_and_keeps_the_mean() {
    for shape in [0.5, 1.0, 1.05, 2.0] {
        let law = Pareto { shape, mean: Bytes(100_000), cap: Some(Bytes(10_000_000)) }.law().unwrap();
        assert!((law.quantile(1.0) / 1e7 - 1.0).abs() < 1e-9, "the largest is the cap");
        // The mean is the integral of the quantile function: midpoints in v, with u = 1 - v^3 to smooth the tail.
        let n = 1_000_000;
        let integral: f64 = (0..n)
            .map(|i| (f64::from(i) + 0.5) / f64::from(n))
            .map(|v| law.quantile(1.0 - v * v * v) * 3.0 * v * v / f64::from(n))
            .sum();
        assert!((integral / 100_000.0 - 1.0).abs() < 1e-5, "shape {shape}: {integral}");
    }
}

#[test]
fn r2c2s_law_has_95_percent_below_100_kb() {
    // R2C2 section 5.2: shape 1.05, mean 100 KB, "95% of the flows are less than 100 KB".
    let law = Pareto { shape: 1.05, mean: Bytes(100_000), cap: None }.law().unwrap();
    assert!(law.quantile(0.95) < 100_000.0 && law.quantile(0.965) > 100_000.0, "{}", law.quantile(0.95));
}
