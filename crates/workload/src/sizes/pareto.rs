use libm::{expm1, log, pow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Problem};

/// A Pareto distribution given by its mean.
///
/// Without `cap`, P(size > x) = (scale / x)^shape with scale = mean (shape - 1) / shape; shape must exceed 1, or there
/// is no mean. Near 1 the mean of even a million draws is far below the true mean, and so is the offered load. That is
/// the nature of a heavy tail; use `cap` against it.
///
/// With `cap` the distribution is truncated there (the bounded Pareto distribution: the density of the Pareto
/// distribution up to the cap and zero beyond), so no messages accumulate at the cap. The scale is solved for so that
/// the mean is still `mean`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pareto {
    /// Exponent of the tail, above 1 without `cap`.
    pub shape: f64,
    /// Mean size, with or without cap.
    pub mean: Bytes,
    /// Largest size. Default: none.
    pub cap: Option<Bytes>,
}

/// The distribution with its scale.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    pub mean: f64,
    scale: f64,
    shape: f64,
    /// The probability of a size below the cap without truncation; 1 if there is no cap.
    below_cap: f64,
}

impl Pareto {
    pub(super) fn law(&self) -> Result<Law, Problem> {
        let (shape, mean) = (self.shape, super::positive("mean", self.mean)?.0 as f64);
        if !(shape > 0.0 && shape <= 100.0) {
            return Err(Problem::new("shape", format!("{shape} is not between 0 and 100")));
        }
        let Some(cap) = self.cap else {
            if shape <= 1.0 {
                let message = format!("a Pareto law of shape {shape} has no mean; take a shape above 1, or set cap");
                return Err(Problem::new("shape", message));
            }
            return Ok(Law { mean, shape, scale: mean * (shape - 1.0) / shape, below_cap: 1.0 });
        };
        let cap_bytes = cap.0 as f64;
        if cap <= self.mean {
            return Err(Problem::new("cap", format!("{cap} must be above the mean, {}", self.mean)));
        }
        let scale = cap_bytes * scale_over_cap(shape, mean / cap_bytes);
        if scale < 0.5 {
            let message =
                format!("is too small: with shape {shape} and cap {cap}, most messages would be smaller than a byte");
            return Err(Problem::new("mean", message));
        }
        Ok(Law { mean, shape, scale, below_cap: -expm1(shape * log(scale / cap_bytes)) })
    }
}

/// The r = scale / cap at which the mean of the truncated distribution is `target` caps. The mean, `shape / (shape - 1)
/// * (r - r^shape) / (1 - r^shape)` caps, grows with r, so bisection (in ln r) finds it.
fn scale_over_cap(shape: f64, target: f64) -> f64 {
    let mean = |ln_r: f64| {
        let less = shape - 1.0;
        // The limit at shape 1, where both parts of the quotient vanish.
        let growth = if less.abs() < 1e-9 { ln_r } else { expm1(less * ln_r) / less };
        shape * libm::exp(ln_r) * growth / expm1(shape * ln_r)
    };
    let (mut low, mut high) = (-100.0, -1e-12);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if mean(middle) < target { low = middle } else { high = middle }
    }
    libm::exp(0.5 * (low + high))
}

impl Law {
    pub fn quantile(&self, u: f64) -> f64 {
        self.scale * pow(1.0 - u * self.below_cap, -1.0 / self.shape)
    }
}

#[cfg(test)]
mod tests;
