//! What the files of this directory share: a publication, and a figure as this crate computes it.

use serde::Serialize;

/// A published document whose figures this crate computes again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Publication {
    /// Author and year, as cited in text: `Joglekar 2004`.
    pub short: &'static str,
    /// The full citation.
    pub citation: &'static str,
    /// What the ids of its figures start with: `004`.
    pub key: &'static str,
}

/// A figure as this crate computes it: one number, or several in the document's notation.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Ours {
    /// One number.
    Number(f64),
    /// Several numbers, like `9.987 / 0.1300`.
    Text(String),
}

/// Figures by the part of their ids after the publication's key.
pub(super) type Computed = Vec<(String, Ours)>;

pub(super) fn number(value: f64) -> Ours {
    Ours::Number(value)
}
