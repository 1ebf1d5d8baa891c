//! How many tokens each expert gets.
//!
//! Shares come from a family of Lorenz curves with one parameter, L(x) = x^a: of n experts in the order of their loads
//! the first j get (j/n)^a of all tokens together. The Gini coefficient of these n shares is
//! (n + 1 - 2 sum_j (j/n)^a) / n, which is 0 at a = 1 and grows with a to 1 - 1/n; a is found by halving. Which expert
//! has which share is drawn for each layer and iteration.

use units::Stream;

use super::Training;

/// Shares of `n` experts with this Gini coefficient, from the least to the greatest; their sum is 1.
pub fn shares(n: u32, gini: f64) -> Vec<f64> {
    let up_to = |a: f64, j: u32| libm::pow(f64::from(j) / f64::from(n), a);
    let of = |a: f64| {
        let sum: f64 = (1..=n).map(|j| up_to(a, j)).sum();
        (f64::from(n) + 1.0 - 2.0 * sum) / f64::from(n)
    };
    // In logarithms: at e^12 one expert of thousands gets nearly all.
    let (mut low, mut high) = (0.0, 12.0);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if of(libm::exp(middle)) < gini {
            low = middle;
        } else {
            high = middle;
        }
    }
    let a = if gini == 0.0 { 1.0 } else { libm::exp(high) };
    (1..=n).map(|j| up_to(a, j) - up_to(a, j - 1)).collect()
}

/// For each expert of a layer, how many of the choices of a rank's tokens are for it.
///
/// Each rank's tokens choose alike. Choices are rounded so that their sum is that of all tokens.
pub(super) fn choices(training: &Training, seed: u64, iteration: u32, layer: u32) -> Vec<u64> {
    let experts = training.model.shape().experts;
    let shares = experts.map(|experts| shares(experts.count, experts.gini));
    shares.and_then(|shares| choices_by(training, shares, seed, iteration, layer)).unwrap_or_default()
}

/// The same by the experts' [`shares`]; none without experts.
pub(super) fn choices_by(
    training: &Training,
    mut shares: Vec<f64>,
    seed: u64,
    iteration: u32,
    layer: u32,
) -> Option<Vec<u64>> {
    let experts = training.model.shape().experts?;
    Stream::new(seed, u64::from(iteration) << 32 | u64::from(layer), "expert loads").shuffle(&mut shares);
    let all = training.tokens() * u64::from(experts.top_k);
    let (mut so_far, mut given) = (0.0, 0);
    let last = shares.len() - 1;
    let rounded = |(at, share): (usize, f64)| {
        so_far += share;
        let until = if at == last { all } else { ((so_far * all as f64 + 0.5) as u64).clamp(given, all) };
        let own = until - given;
        given = until;
        own
    };
    Some(shares.into_iter().enumerate().map(rounded).collect())
}
