use super::*;

fn table(text: &str, probability: Probability) -> Result<Cdf, Problem> {
    Table::parse(text, "t", SizeUnit::Bytes, probability).unwrap().cdf()
}

#[test]
fn between_points_the_function_is_linear_and_the_first_point_holds_its_own_probability() {
    let cdf = table("7.5\n100 0.5\n300 x 0.75\n300 0.9\n1000 1\n", Probability::Fraction).unwrap();
    for (u, size) in [(0.0, 100.0), (0.49, 100.0), (0.625, 200.0), (0.8, 300.0), (0.95, 650.0)] {
        assert!((cdf.quantile(u) - size).abs() < 1e-9, "{u}: {}", cdf.quantile(u));
    }
    // 0.5 * 100 + 0.25 * 200 + 0.15 * 300 + 0.1 * 650
    assert!((cdf.mean_bytes() - 210.0).abs() < 1e-9);
}

#[test]
fn the_rounded_mean_is_that_of_an_enumeration() {
    // Uniform on [0, 10], rounded to multiples of 4: below 6 gives 4, up to 10 gives 8.
    assert!((Cdf::uniform(0.0, 10.0).mean_rounded(4.0) - (0.6 * 4.0 + 0.4 * 8.0)).abs() < 1e-12);
    // Integer ends keep the mean.
    assert!((Cdf::uniform(3.0, 1200.0).mean_rounded(1.0) - 601.5).abs() < 1e-9);
    assert_eq!(Cdf::constant(1000.0).mean_rounded(1460.0), 1460.0);
}

#[test]
fn a_scale_mixed_up_is_found_out() {
    let message = table("0 0\n10 100\n", Probability::Fraction).unwrap_err().message;
    assert!(message.contains("percent"), "{message}");
    assert!(table("0 0\n10 1\n", Probability::Percent).unwrap_err().message.contains("fraction"));
    assert_eq!(table("5 0\n4 1\n", Probability::Fraction).unwrap_err().key, "points[1]");
    assert_eq!(table("5 0.5\n6 0.4\n", Probability::Fraction).unwrap_err().key, "points[1]");
    assert!(table("", Probability::Fraction).is_err());
}

#[test]
fn a_malformed_line_is_named() {
    let error = Table::parse("1 0\nx 1\n", "ws.txt", SizeUnit::Bytes, Probability::Fraction).unwrap_err();
    assert_eq!((error.file.as_str(), error.line, error.value.as_str()), ("ws.txt", 2, "x"));
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "([0-9.e#x -]{0,9}\n){0,6}") {
        if let Ok(table) = Table::parse(&text, "t", SizeUnit::Packets, Probability::Percent) {
            let _ = table.cdf().map(|cdf| cdf.quantile(0.5));
        }
    }

    #[test]
    fn quantiles_ascend(u in 0.0..1.0, v in 0.0..1.0) {
        let cdf = table("0 0\n10 20\n10 30\n70 30\n99 100\n", Probability::Percent).unwrap();
        let (low, high) = if u < v { (u, v) } else { (v, u) };
        proptest::prop_assert!(cdf.quantile(low) <= cdf.quantile(high));
    }
}
