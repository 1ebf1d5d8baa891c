//! Selecting routing protocols (section 3.4): a genetic algorithm that looks for the assignment of a protocol to each
//! long flow that makes a utility of the whole rack largest.
//!
//! A genotype is the code of a protocol for each flow. The caller defines its fitness: the water-filling rates under it
//! ([`Fitness`]), summarised by a [`Utility`]. The paper uses a genetic algorithm because this fitness has many local
//! maxima, in which greedy search gets stuck, and because it has few parameters. It gives a population of 100 and
//! mutation of one gene in 100 (section 5.2), a first population of "the current routing allocation and other
//! randomly-generated ones", and a next one of "the top genotypes of the current population and other genotypes
//! obtained by recombining (crossover) and mutating existing genotypes". Decided here, since the paper is silent:
//!
//! - the top genotypes that are kept are the better half: of 2, 10, 25 and 50 in 100 that found most on Figure 18's
//!   problem, with the fewest evaluations;
//! - the first population also holds each protocol for all flows, so that the search is never worse than any single
//!   protocol;
//! - each parent is the better of two drawn from the population (a tournament), which needs no scale of fitness;
//! - a child takes each gene from either parent alike (uniform crossover): neighbours in a genotype are unrelated
//!   flows, so there is nothing to keep together;
//! - a mutated gene becomes another protocol than it was;
//! - a genotype is not tried twice;
//! - time is counted in evaluations of fitness, so that the result does not depend on a clock; 50 generations without
//!   improvement end a search, since with 20 it often stopped where all flows have the same protocol.
//!
//! The result is never worse than the current assignment, and is that one if nothing is better. The caller decides
//! whether an improvement is worth announcing ("if a significant improvement is possible", section 3.1);
//! [`assignments`] has the announcement.
//!
//! Deliberately absent: which node searches and when, and finer choices than one protocol for each flow.

pub mod assignments;
mod fitness;
mod utility;

use rustc_hash::FxHashSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Problem, Stream};

pub use fitness::Fitness;
pub use utility::{Measure, Tail, Tenants, Utility};

/// Parameters of the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Genotypes in a population (section 5.2). Default: 100.
    pub population: u32,
    /// Probability that a gene of a child mutates (section 5.2). Default: 0.01.
    pub mutation: f64,
    /// Number of best genotypes that the next population keeps. Default: 50.
    pub elite: u32,
    /// Generations without improvement that end the search. Default: 50.
    pub patience: u32,
    /// Evaluations of fitness that end the search. Default: 50000.
    pub evaluations: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { population: 100, mutation: 0.01, elite: 50, patience: 50, evaluations: 50_000 }
    }
}

impl Settings {
    /// Checks what the types can't express.
    pub fn check(&self) -> Result<(), Problem> {
        let Settings { population, mutation, elite, patience, evaluations } = *self;
        if population < 2 {
            return Err(Problem::new(
                "population",
                format!("is {population}; it must be at least 2, because two assignments are recombined"),
            ));
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
            return Err(Problem::new("evaluations", "is 0; it must be at least 1, for the current assignment"));
        }
        Ok(())
    }
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// The protocol of each flow.
    pub assignment: Vec<u8>,
    /// Utility of the assignment.
    pub utility: f64,
    /// Utility of the current assignment.
    pub before: f64,
    /// Generations after the first population.
    pub generations: u32,
    /// Evaluations of fitness.
    pub evaluations: u32,
}

impl Selection {
    /// The relative gain over the current assignment; infinite if that has utility 0.
    pub fn gain(&self) -> f64 {
        match self.utility > self.before {
            true => (self.utility - self.before) / self.before,
            false => 0.0,
        }
    }
}

/// Searches for the assignment of one of `protocols` to each flow with the largest `fitness`, starting from `current`.
///
/// `current` may hold protocols that are not among `protocols`: those are kept if nothing better is found. A fitness of
/// NaN counts as the least.
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
    // A fixed number of draws for the remaining places: a small space may have fewer genotypes than places.
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

    /// Evaluates a genotype and adds it to a population, unless it has been tried before or the search is over. The
    /// first one is always evaluated.
    fn try_out(&mut self, genes: Vec<u8>, population: &mut Vec<Genotype>) {
        if (self.is_spent() && !self.tried.is_empty()) || !self.tried.insert(genes.clone()) {
            return;
        }
        let fitness = (self.fitness)(&genes);
        let fitness = if fitness.is_nan() { f64::NEG_INFINITY } else { fitness };
        population.push(Genotype { genes, fitness });
    }

    /// Recombines two parents and mutates the result.
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

/// The better of two drawn genotypes; `population` is ranked.
fn parent<'a>(population: &'a [Genotype], random: &mut Stream) -> &'a Genotype {
    let [one, other] = [(); 2].map(|()| random.below(population.len() as u64) as usize);
    &population[one.min(other)]
}

/// Sorts by fitness, best first. Equal genotypes keep their order, and the current assignment goes first.
fn rank(population: &mut [Genotype]) {
    population.sort_by(|one, other| other.fitness.total_cmp(&one.fitness));
}

#[cfg(test)]
mod tests;
