//! Where in a description something stands: `links[3].forward.rate`.

use std::fmt;

/// A place in a description, by the keys of its canonical form. The empty path is the whole
/// description.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct SpecPath(Vec<PathStep>);

/// One step into a description.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PathStep {
    /// The value of a key.
    Key(String),
    /// An element of a list, from 0.
    Index(usize),
}

impl SpecPath {
    /// Returns the path of the element `index` of a list of the description: `links[3]`.
    pub fn of(list: &str, index: usize) -> SpecPath {
        SpecPath::default().key(list).index(index)
    }

    /// Returns the path of `key` in the table at this path.
    pub fn key(mut self, key: &str) -> SpecPath {
        self.0.push(PathStep::Key(key.to_owned()));
        self
    }

    /// Returns the path of element `index` in the list at this path.
    pub fn index(mut self, index: usize) -> SpecPath {
        self.0.push(PathStep::Index(index));
        self
    }

    /// Returns the steps from the whole description to this place.
    pub fn steps(&self) -> &[PathStep] {
        &self.0
    }

    /// Returns the path one step shorter, or `None` for the whole description.
    pub fn parent(&self) -> Option<SpecPath> {
        let (_, rest) = self.0.split_last()?;
        Some(SpecPath(rest.to_vec()))
    }
}

impl fmt::Display for SpecPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Index(index) => write!(f, "[{index}]")?,
                PathStep::Key(key) if key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                    write!(f, "{}{key}", if number > 0 { "." } else { "" })?;
                }
                PathStep::Key(key) => write!(f, "[\"{}\"]", key.escape_debug())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_prints_as_its_steps() {
        let path = SpecPath::of("links", 3).key("forward").key("rate");
        assert_eq!(path.to_string(), "links[3].forward.rate");
        let path = SpecPath::of("nodes", 0).key("addresses").key("a-r").index(1);
        assert_eq!(path.to_string(), "nodes[0].addresses[\"a-r\"][1]");
        assert_eq!(path.parent().unwrap().to_string(), "nodes[0].addresses[\"a-r\"]");
        assert_eq!(SpecPath::default().parent(), None);
    }
}
