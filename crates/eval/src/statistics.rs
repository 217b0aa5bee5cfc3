//! What a number of trials says, and how sure one can be of it.
//!
//! **Invariant:** what cannot be said is `None`, never 0 and never 1. Chance comes from a seed.

mod bootstrap;
mod chance;
mod comparison;
mod estimate;
mod interval;
mod percentile;

pub use bootstrap::{Cluster, bootstrap_mean};
pub use comparison::{Comparison, Method, compare_paired};
pub use estimate::{pass_at_k, pass_hat_k};
pub use interval::{Interval, wilson};
pub use percentile::percentile;
