//! Reports in the formats of others.

mod ctrf;
mod junit;

pub use ctrf::ctrf;
pub use junit::junit;

#[cfg(test)]
mod tests;
