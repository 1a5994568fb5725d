//! The examples of the crate run.
#![cfg(feature = "quinn")]

#[path = "../examples/quinn_over_lte.rs"]
mod quinn_over_lte;

#[test]
fn quinn_downloads_over_lte() {
    assert!(include_str!("../examples/quinn_over_lte.rs").lines().count() <= 40);
    quinn_over_lte::main().expect("all bytes arrive");
}
