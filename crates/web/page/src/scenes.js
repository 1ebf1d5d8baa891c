// Lessons, examples and their files. A scene is a lesson, `crates/web/scenes/NAME.md`, with the scenario that its head names.

export const LESSONS = ["dcpim", "harmony", "pyrrha", "r2c2", "tenants", "counterexample", "all-reduce"];

// Shipped scenarios that a page can run: each is small, and names no file.
export const EXAMPLES = [
  "tiny", "dcpim-vs-tcp", "congestion-trees", "training", "gpt", "dragonfly", "dual-homed", "faults", "rails", "sustain",
  "live",
].map((name) => ({ id: name, title: `${name}.toml`, file: `examples/${name}.toml` }));

// Files that scenarios name, by the paths that they name them by.
export const FILES = { "counterexample.csv": "python/clearway/papers/harmony/counterexample.csv" };
