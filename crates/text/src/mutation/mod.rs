//! One word of a text changed, removed or misspelled, for tests of readers: every word of an author
//! changes the result, or is named.

pub mod keyed;
pub mod lexical;
