//! Repository chores; the rules of the house are the tests in this crate.
fn main() {}
