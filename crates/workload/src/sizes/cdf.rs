use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Problem;

use crate::trace::TraceError;

/// Payload bytes of a full packet, in all tables here that count packets.
const PACKET_BYTES: f64 = 1460.0;

/// The unit of a table's sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SizeUnit {
    /// Bytes of payload.
    Bytes,
    /// Packets of 1,460 B of payload.
    Packets,
}

/// The scale of a table's probabilities.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Probability {
    /// Up to 1.
    Fraction,
    /// Up to 100.
    Percent,
}

/// A cumulative distribution given by its points. Unit and scale have no default, since tables that look alike differ
/// in both.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Pairs of a size and the probability of at most that size. Both ascend, and the last probability is 1 (or 100).
    pub points: Vec<[f64; 2]>,
    /// Unit of the sizes.
    pub unit: SizeUnit,
    /// Scale of the probabilities.
    pub probability: Probability,
}

/// A table in a file: one point on a line, with the size first and the probability last. Columns between are ignored,
/// as in pFabric's tables. Lines with `#` are comments, and single numbers above the first point (a count or a mean, as
/// in Homa's tables) are headings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableFile {
    /// Path of the file, relative to the scenario's folder.
    pub path: String,
    /// Unit of the sizes.
    pub unit: SizeUnit,
    /// Scale of the probabilities.
    pub probability: Probability,
}

/// A distribution of sizes in bytes.
///
/// The distribution function is linear between neighbouring points, and the probability of the first point is
/// concentrated at its size. (Homa's own generator uses the upper point's size for the whole step. The means at the
/// head of its files follow that rule and are 1 to 5% higher than ours.)
#[derive(Clone, PartialEq, Debug)]
pub struct Cdf {
    /// (size in bytes, probability of at most that), the last with probability 1.
    points: Vec<(f64, f64)>,
}

impl TableFile {
    /// The mean that the file's text states: a single number above the first point, unless that is the number of
    /// points.
    pub fn stated_mean_bytes(&self, text: &str) -> Option<f64> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        let lines: Vec<Vec<&str>> =
            lines.map(|line| line.split_whitespace().collect()).filter(|words: &Vec<_>| !words.is_empty()).collect();
        let headings = lines.iter().take_while(|words| words.len() == 1).filter_map(|words| words[0].parse().ok());
        let points = lines.iter().filter(|words| words.len() > 1).count() as f64;
        let scale = if self.unit == SizeUnit::Packets { PACKET_BYTES } else { 1.0 };
        headings.filter(|&heading: &f64| heading > 0.0 && heading != points).last().map(|mean| mean * scale)
    }
}

impl Table {
    /// Reads the text of a [`TableFile`]; `file` is the name that errors give.
    pub fn parse(text: &str, file: &str, unit: SizeUnit, probability: Probability) -> Result<Table, TraceError> {
        let mut points = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = content.split_whitespace().collect();
            let number = |field: &'static str, word: &str| match word.parse::<f64>() {
                Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
                _ => Err(TraceError::new(file, index + 1, field, word, "a number, zero or more")),
            };
            match words[..] {
                [] => {}
                [heading] if points.is_empty() => drop(number("heading", heading)?),
                [lone] => {
                    return Err(TraceError::new(file, index + 1, "line", lone, "a size and a probability"));
                }
                [size, .., probability] => {
                    points.push([number("size", size)?, number("probability", probability)?]);
                }
            }
        }
        Ok(Table { points, unit, probability })
    }

    /// The distribution, or the error of the points.
    pub fn cdf(&self) -> Result<Cdf, Problem> {
        let scale = if self.unit == SizeUnit::Packets { PACKET_BYTES } else { 1.0 };
        let certain = if self.probability == Probability::Percent { 100.0 } else { 1.0 };
        let at = |index: usize, message: String| Err(Problem::new(format!("points[{index}]"), message));
        let (mut size_before, mut probability_before) = (0.0, 0.0);
        for (index, &[size, probability]) in self.points.iter().enumerate() {
            if !(size_before..=1e15).contains(&size) {
                return at(
                    index,
                    format!("size {size} must be at least the size before it, {size_before}, and at most 1e15"),
                );
            }
            if !(probability_before..=100.0).contains(&probability) {
                return at(
                    index,
                    format!(
                        "probability {probability} must be at least the one before it, {probability_before}, and at \
                         most 100"
                    ),
                );
            }
            (size_before, probability_before) = (size, probability);
        }
        if (probability_before / certain - 1.0).abs() > 1e-9 {
            let likely = if certain == 1.0 { "percent" } else { "fraction" };
            let message = format!(
                "the last probability is {probability_before}, not {certain}; is `probability = \"{likely}\"` meant?"
            );
            return Err(Problem::new("points", message));
        }
        if size_before <= 0.0 {
            return Err(Problem::new(
                "points",
                "the largest size is 0, so that every message would be empty; write sizes above 0",
            ));
        }
        Ok(Cdf { points: self.points.iter().map(|&[s, p]| (s * scale, p / probability_before)).collect() })
    }
}

impl Cdf {
    pub(super) fn constant(bytes: f64) -> Cdf {
        Cdf { points: vec![(bytes, 1.0)] }
    }

    pub(super) fn uniform(min: f64, max: f64) -> Cdf {
        Cdf { points: vec![(min, 0.0), (max, 1.0)] }
    }

    /// The size, in bytes, below which a share `u` of the messages lies.
    pub fn quantile(&self, u: f64) -> f64 {
        let upper = self.points.partition_point(|point| point.1 <= u).min(self.points.len() - 1);
        let (size, probability) = self.points[upper];
        let Some(&(size_before, probability_before)) = upper.checked_sub(1).map(|lower| &self.points[lower]) else {
            return size;
        };
        let step = probability - probability_before;
        if step <= 0.0 { size } else { size_before + (size - size_before) * ((u - probability_before) / step) }
    }

    /// The mean size in bytes.
    pub fn mean_bytes(&self) -> f64 {
        self.segments().map(|((a, p), (b, q))| (q - p) * 0.5 * (a + b)).sum()
    }

    /// The mean of sizes rounded to the nearest multiple of `quantum`, and at least one of them.
    pub(super) fn mean_rounded(&self, quantum: f64) -> f64 {
        let multiples = |x: f64| libm::floor(x / quantum + 0.5).max(1.0);
        // The integral of `multiples` from 0 to x: 1 up to 1.5 quanta, then steps of one quantum's width.
        let integral = |x: f64| {
            let (y, n) = (x / quantum, multiples(x));
            if n < 2.0 { y } else { 1.5 + (n * (n - 1.0) * 0.5 - 1.0) + n * (y - (n - 0.5)) }
        };
        let mean = |a: f64, b: f64| {
            // Differences of integrals lose digits on narrow segments, where the value at the ends is enough.
            if multiples(a) == multiples(b) { multiples(a) } else { (integral(b) - integral(a)) * quantum / (b - a) }
        };
        self.segments().map(|((a, p), (b, q))| (q - p) * quantum * mean(a, b)).sum()
    }

    /// Pairs of neighbouring points. The first point's own probability is a segment of zero width.
    fn segments(&self) -> impl Iterator<Item = ((f64, f64), (f64, f64))> + '_ {
        let atom = ((self.points[0].0, 0.0), self.points[0]);
        std::iter::once(atom).chain(self.points.windows(2).map(|pair| (pair[0], pair[1])))
    }
}

#[cfg(test)]
mod tests;
