//! Prints random descriptions, one a line, as the tests use them: `random_descriptions [COUNT]`.

use fastpath_spec::{Description, NO_FILES};

#[path = "../tests/random/mod.rs"]
mod random;

fn main() {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(3);
    for seed in 0..count {
        let text = random::description(seed).to_string();
        let description = Description::from_json(&text, NO_FILES).expect("a description without mistakes");
        println!("{}", description.to_json());
    }
}
