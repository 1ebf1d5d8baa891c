//! Selecting routing protocols (section 3.4): a genetic algorithm that looks for the assignment of a protocol to each
//! long flow that makes a utility of the whole rack largest.
//!
//! A genotype is one protocol's code a flow. What it is worth, its fitness, is the caller's: the rates that the
//! water-filling gives under it ([`Fitness`]), summed up by a [`Utility`]. The paper takes a genetic algorithm because
//! such fitness has many local maxima, on which greedy search stays, and because it has few parameters. It gives a
//! population of 100 and mutation of one gene in 100 (section 5.2), a first population of "the current routing
//! allocation and other randomly-generated ones", and a next one of "the top genotypes of the current population and
//! other genotypes obtained by recombining (crossover) and mutating existing genotypes". It does not say, and is
//! decided here:
//!
//! - the top genotypes that are kept are the better half: of 2, 10, 25 and 50 in 100 that found most on Figure 18's
//!   problem, with the fewest evaluations;
//! - the first population also holds each protocol for all flows, so that the search is never worse than any single
//!   protocol;
//! - each parent is the better of two drawn from the population (a tournament), which needs no scale of fitness;
//! - a child takes each gene from either parent alike (uniform crossover): neighbours in a genotype are flows that have
//!   nothing to do with each other, so there is nothing to keep together;
//! - a mutated gene becomes another protocol than it was;
//! - what has been tried before is not tried again;
//! - time is counted in evaluations of fitness, so that the answer depends on no clock; 50 generations without
//!   improvement end a search, as with 20 it often stayed where all flows have the same protocol.
//!
//! The answer is never worth less than the current assignment, and is that one if nothing is worth more. Whether an
//! improvement is worth announcing ("if a significant improvement is possible", section 3.1) is the caller's to say;
//! what is announced is in [`assignments`].
//!
//! Absent on purpose: which node searches and when, and the exploring of rates at a finer grain than a protocol a flow.

pub mod assignments;
mod fitness;
mod utility;

use rustc_hash::FxHashSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Problem, Stream};

pub use fitness::Fitness;
pub use utility::{Measure, Tail, Tenants, Utility};

/// How to search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Genotypes in a population (section 5.2).
    pub population: u32,
    /// Probability that a gene of a child mutates (section 5.2).
    pub mutation: f64,
    /// The top genotypes that the next population keeps.
    pub elite: u32,
    /// Ends after so many generations without improvement.
    pub patience: u32,
    /// Ends after so many evaluations of fitness.
    pub evaluations: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { population: 100, mutation: 0.01, elite: 50, patience: 50, evaluations: 50_000 }
    }
}

impl Settings {
    /// What the types can't forbid.
    pub fn check(&self) -> Result<(), Problem> {
        let Settings { population, mutation, elite, patience, evaluations } = *self;
        if population < 2 {
            return Err(Problem::new("population", format!("is {population}; it takes two to recombine")));
        }
        if !(0.0..=1.0).contains(&mutation) {
            return Err(Problem::new("mutation", format!("is {mutation}; it is a probability, from 0 to 1")));
        }
        if elite == 0 || elite >= population {
            let message = format!("is {elite}; it must be at least 1 and less than the population, {population}");
            return Err(Problem::new("elite", message));
        }
        if patience == 0 {
            return Err(Problem::new("patience", "is 0; it must be at least 1"));
        }
        if evaluations == 0 {
            return Err(Problem::new("evaluations", "is 0; the current assignment alone takes 1"));
        }
        Ok(())
    }
}

/// What a search has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// The protocol of each flow.
    pub assignment: Vec<u8>,
    /// What it is worth.
    pub utility: f64,
    /// What the current assignment is worth.
    pub before: f64,
    /// Generations after the first population.
    pub generations: u32,
    /// Evaluations of fitness.
    pub evaluations: u32,
}

impl Selection {
    /// How much more the found assignment is worth, as a share of the current one's worth; infinite where that is 0.
    pub fn gain(&self) -> f64 {
        match self.utility > self.before {
            true => (self.utility - self.before) / self.before,
            false => 0.0,
        }
    }
}

/// Looks for the assignment of one of `protocols` to each flow that has the largest `fitness`, from the `current` one
/// on.
///
/// `current` may hold protocols that are not among `protocols`: those are kept where nothing better is found. A fitness
/// that is no number counts as the least.
pub fn select(
    current: &[u8],
    protocols: &[u8],
    settings: &Settings,
    random: &mut Stream,
    fitness: impl FnMut(&[u8]) -> f64,
) -> Selection {
    let mut search = Search { settings, protocols, tried: FxHashSet::default(), fitness };
    let mut population = Vec::new();
    search.try_out(current.to_vec(), &mut population);
    let before = population[0].fitness;
    for &protocol in protocols {
        search.try_out(vec![protocol; current.len()], &mut population);
    }
    // Drawn for the places that are left, not until they are taken: a small space has fewer genotypes than that.
    for _ in population.len()..settings.population as usize {
        let drawn = current.iter().map(|&now| *random.choose(protocols).unwrap_or(&now)).collect();
        search.try_out(drawn, &mut population);
    }
    rank(&mut population);

    let (mut generations, mut since_better) = (0, 0);
    while since_better < settings.patience && !search.is_spent() {
        let best = population[0].fitness;
        let mut next = Vec::with_capacity(settings.population as usize);
        for _ in settings.elite..settings.population {
            let child = search.child(&population, random);
            search.try_out(child, &mut next);
        }
        population.truncate(settings.elite.max(1) as usize);
        population.append(&mut next);
        rank(&mut population);
        generations += 1;
        since_better = if population[0].fitness > best { 0 } else { since_better + 1 };
    }
    let evaluations = search.tried.len() as u32;
    let Genotype { genes: assignment, fitness: utility } = population.swap_remove(0);
    Selection { assignment, utility, before, generations, evaluations }
}

struct Genotype {
    genes: Vec<u8>,
    fitness: f64,
}

struct Search<'a, F> {
    settings: &'a Settings,
    protocols: &'a [u8],
    tried: FxHashSet<Vec<u8>>,
    fitness: F,
}

impl<F: FnMut(&[u8]) -> f64> Search<'_, F> {
    fn is_spent(&self) -> bool {
        self.tried.len() >= self.settings.evaluations as usize
    }

    /// Adds a genotype to a population, unless it has been tried before or there is no time; the very first always is.
    fn try_out(&mut self, genes: Vec<u8>, population: &mut Vec<Genotype>) {
        if (self.is_spent() && !self.tried.is_empty()) || !self.tried.insert(genes.clone()) {
            return;
        }
        let fitness = (self.fitness)(&genes);
        let fitness = if fitness.is_nan() { f64::NEG_INFINITY } else { fitness };
        population.push(Genotype { genes, fitness });
    }

    /// Recombines two parents and mutates what comes of it.
    fn child(&self, population: &[Genotype], random: &mut Stream) -> Vec<u8> {
        let [mother, father] = [(); 2].map(|()| parent(population, random));
        let mut halves = 0;
        let recombine = |(at, (&hers, &his)): (usize, (&u8, &u8))| {
            if at % 64 == 0 {
                halves = random.bits();
            }
            if halves >> (at % 64) & 1 == 0 { hers } else { his }
        };
        let mut genes: Vec<u8> = mother.genes.iter().zip(&father.genes).enumerate().map(recombine).collect();
        for gene in &mut genes {
            if random.chance(self.settings.mutation) {
                let others = self.protocols.iter().filter(|&protocol| protocol != gene);
                let drawn = random.below(others.clone().count().max(1) as u64);
                *gene = *others.clone().nth(drawn as usize).unwrap_or(gene);
            }
        }
        genes
    }
}

/// The better of two that are drawn; `population` is ranked.
fn parent<'a>(population: &'a [Genotype], random: &mut Stream) -> &'a Genotype {
    let [one, other] = [(); 2].map(|()| random.below(population.len() as u64) as usize);
    &population[one.min(other)]
}

/// Best first; of equals, those that came first, and before all others the current assignment.
fn rank(population: &mut [Genotype]) {
    population.sort_by(|one, other| other.fitness.total_cmp(&one.fitness));
}

#[cfg(test)]
mod tests;
