//! The `fastpath` command: words in, exit code out.
fn main() {}
