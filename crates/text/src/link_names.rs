//! Names for links whose author gave none: `a-b`, then `a-b-2`, `a-b-3`, …

use std::collections::{BTreeMap, BTreeSet};

/// Gives out names of links, each once. A name takes one try for itself and at most one for each
/// name that was reserved, so that n links take O(n log n).
#[derive(Clone, Debug, Default)]
pub struct LinkNames {
    taken: BTreeSet<String>,
    /// By `a-b`: the number to try next.
    next: BTreeMap<String, u64>,
    tries: u64,
}

impl LinkNames {
    /// Returns an allocator that gives out none of these names.
    pub fn reserving<'n>(names: impl Iterator<Item = &'n str>) -> LinkNames {
        LinkNames { taken: names.map(str::to_owned).collect(), ..LinkNames::default() }
    }

    /// Returns a name for one more link between two nodes.
    pub fn name(&mut self, a: &str, b: &str) -> String {
        let base = format!("{a}-{b}");
        let next = self.next.entry(base.clone()).or_insert(1);
        loop {
            let name = if *next == 1 { base.clone() } else { format!("{base}-{next}") };
            *next += 1;
            self.tries += 1;
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_links_are_numbered_past_the_names_that_are_given() {
        let mut names = LinkNames::reserving(["a-b-2"].into_iter());
        assert_eq!([(); 3].map(|()| names.name("a", "b")), ["a-b", "a-b-3", "a-b-4"]);
        assert_eq!(names.name("b", "a"), "b-a");
    }

    #[test]
    fn many_parallel_links_take_a_try_each() {
        let reserved: Vec<String> = (2..1_000).map(|n| format!("a-b-{n}")).collect();
        let mut names = LinkNames::reserving(reserved.iter().map(String::as_str));
        for _ in 0..20_000 {
            names.name("a", "b");
        }
        assert!(names.tries <= 21_000, "{} tries", names.tries);
    }
}
