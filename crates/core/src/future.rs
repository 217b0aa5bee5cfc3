//! Futures that cross from one crate to another.

use std::pin::Pin;

/// A boxed future.
///
/// A large asynchronous function that other crates await returns one of these instead of being `async` itself. An `async fn` is
/// compiled again in every crate that awaits it, with all that it awaits; a boxed one is compiled once, where it is defined.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
