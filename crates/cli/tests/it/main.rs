//! Replaced by the stories.
fn main() {}
