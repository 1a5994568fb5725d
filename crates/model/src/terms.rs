//! Terms of a model written as text: `const,p,h,p*h`, `h^2`, `cores/rate`. A term is a product of columns
//! with whole powers; the coefficient in front is what a fit finds.

use crate::table::{Table, TableError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The most terms a model may have.
pub const TERMS_MAX: usize = 64;
const POWER_MAX: i32 = 9;

/// A product of columns with whole powers; no factor at all is the constant 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Term {
    text: String,
    /// Column and power, by column name; no power is 0.
    factors: Vec<(String, i32)>,
}

/// The right-hand side of a model: distinct terms in the order written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Terms(Vec<Term>);

/// What is wrong with the text of a term.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TermError {
    /// Nothing between two commas or operators.
    #[error("in `{text}`: a column's name is missing: write terms like const,p,h,p*h")]
    Missing {
        /// The text.
        text: String,
    },
    /// A power that is no whole number from −9 to 9.
    #[error("in `{text}`: the power `{power}` must be a whole number from -9 to 9, not 0")]
    Power {
        /// The text.
        text: String,
        /// The power.
        power: String,
    },
    /// A number other than 1.
    #[error(
        "in `{text}`: `{number}` is a number: its value is what the fit finds, leave it out (1 and const mean the constant)"
    )]
    Number {
        /// The text.
        text: String,
        /// The number.
        number: String,
    },
    /// Two terms that are the same product.
    #[error("terms `{first}` and `{second}` are the same product: remove one")]
    Duplicate {
        /// The earlier.
        first: String,
        /// The later.
        second: String,
    },
    /// More terms than [`TERMS_MAX`].
    #[error("{count} terms are more than {TERMS_MAX}: leave some out")]
    TooMany {
        /// How many there are.
        count: usize,
    },
}

impl Term {
    /// The term as written, without spaces.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the term is the constant.
    pub fn is_const(&self) -> bool {
        self.factors.is_empty()
    }

    /// Columns and their powers, by name.
    pub fn factors(&self) -> &[(String, i32)] {
        &self.factors
    }

    /// The term's value where `value_of` gives each column's; `None` when it does not know one.
    pub fn value(&self, value_of: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        self.factors
            .iter()
            .try_fold(1.0, |product, (name, power)| Some(product * value_of(name)?.powi(*power)))
    }

    /// The term's value in every row of `table`.
    ///
    /// # Errors
    /// [`TableError`] for a missing column or a cell that is no number, also where a zero is divided by.
    pub fn column(&self, table: &Table) -> Result<Vec<f64>, TableError> {
        let mut product = vec![1.0; table.len()];
        for (name, power) in &self.factors {
            for (row, (p, x)) in product.iter_mut().zip(table.numbers(name)?).enumerate() {
                *p *= x.powi(*power);
                if !p.is_finite() {
                    let text = format!("{x} in `{}`", self.text);
                    return Err(TableError::NotANumber { line: table.line(row), column: name.clone(), text });
                }
            }
        }
        Ok(product)
    }
}

impl FromStr for Term {
    type Err = TermError;

    fn from_str(text: &str) -> Result<Term, TermError> {
        let mut factors: Vec<(String, i32)> = Vec::new();
        let mut sign = 1;
        let mut rest = text.trim();
        loop {
            let (name, power, after) = factor(rest, text)?;
            match name.as_str() {
                "const" | "1" => {}
                number if number.parse::<f64>().is_ok() => {
                    return Err(TermError::Number { text: text.trim().to_owned(), number: name });
                }
                _ => match factors.iter_mut().find(|(n, _)| *n == name) {
                    Some((_, p)) => *p += sign * power,
                    None => factors.push((name, sign * power)),
                },
            }
            let Some(operator) = after.chars().next() else { break };
            sign = if operator == '/' { -1 } else { 1 };
            rest = &after[1..];
        }
        factors.retain(|(_, power)| *power != 0);
        factors.sort();
        let spaced = text.split('*').map(str::trim).collect::<Vec<_>>().join("*");
        Ok(Term { text: spaced.split('/').map(str::trim).collect::<Vec<_>>().join("/"), factors })
    }
}

/// Reads `name`, `"any name"` or `name^power`; returns what follows, which is empty or starts with an operator.
fn factor<'a>(rest: &'a str, text: &str) -> Result<(String, i32, &'a str), TermError> {
    let rest = rest.trim_start();
    let missing = || TermError::Missing { text: text.trim().to_owned() };
    let (name, after) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').ok_or_else(missing)?,
        None => rest.split_at(rest.find(['*', '/', '^']).unwrap_or(rest.len())),
    };
    let (name, after) = (name.trim(), after.trim_start());
    if name.is_empty() {
        return Err(missing());
    }
    let Some(raised) = after.strip_prefix('^') else {
        return if after.is_empty() || after.starts_with(['*', '/']) {
            Ok((name.to_owned(), 1, after))
        } else {
            Err(missing())
        };
    };
    let (power, after) = raised.split_at(raised.find(['*', '/', '^']).unwrap_or(raised.len()));
    match power.trim().parse::<i32>() {
        Ok(p) if p != 0 && p.abs() <= POWER_MAX && !after.starts_with('^') => Ok((name.to_owned(), p, after)),
        _ => Err(TermError::Power { text: text.trim().to_owned(), power: power.trim().to_owned() }),
    }
}

impl Terms {
    /// The terms in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Term> {
        self.0.iter()
    }

    /// Number of terms, at least 1.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The columns the terms use, each once, sorted.
    pub fn columns(&self) -> BTreeSet<&str> {
        self.0.iter().flat_map(|t| t.factors.iter().map(|(name, _)| name.as_str())).collect()
    }
}

impl FromStr for Terms {
    type Err = TermError;

    fn from_str(text: &str) -> Result<Terms, TermError> {
        let terms = split_unquoted(text).into_iter().map(str::parse).collect::<Result<Vec<Term>, _>>()?;
        if terms.len() > TERMS_MAX {
            return Err(TermError::TooMany { count: terms.len() });
        }
        for (i, term) in terms.iter().enumerate() {
            if let Some(twin) = terms[..i].iter().find(|t| t.factors == term.factors) {
                return Err(TermError::Duplicate { first: twin.text.clone(), second: term.text.clone() });
            }
        }
        Ok(Terms(terms))
    }
}

/// Splits at commas outside double quotes.
fn split_unquoted(text: &str) -> Vec<&str> {
    let mut quoted = false;
    text.split(|c: char| {
        quoted ^= c == '"';
        c == ',' && !quoted
    })
    .collect()
}

impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(Term::text).collect::<Vec<_>>().join(","))
    }
}

impl TryFrom<String> for Terms {
    type Error = TermError;

    fn try_from(text: String) -> Result<Terms, TermError> {
        text.parse()
    }
}

impl From<Terms> for String {
    fn from(terms: Terms) -> String {
        terms.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn factors(text: &str) -> Vec<(String, i32)> {
        text.parse::<Term>().expect("a term").factors
    }

    #[test]
    fn terms_are_products_of_columns_with_powers() {
        let golden: [(&str, &[(&str, i32)]); 7] = [
            ("const", &[]),
            ("1", &[]),
            ("p*h", &[("h", 1), ("p", 1)]),
            ("h ^ 2 * p", &[("h", 2), ("p", 1)]),
            ("1/rate", &[("rate", -1)]),
            ("cores / \"packets/s\"", &[("cores", 1), ("packets/s", -1)]),
            ("p*p/p", &[("p", 1)]),
        ];
        for (text, expected) in golden {
            let expected: Vec<(String, i32)> = expected.iter().map(|(n, p)| ((*n).to_owned(), *p)).collect();
            assert_eq!(factors(text), expected, "{text}");
        }
    }

    #[test]
    fn wrong_terms_get_one_clear_error() {
        let error = |text: &str| text.parse::<Terms>().unwrap_err().to_string();
        assert!(error("const,,p").contains("a column's name is missing"));
        assert!(error("").contains("a column's name is missing"));
        assert!(error("p*").contains("in `p*`"));
        assert!(error("2*p").contains("`2` is a number"));
        assert!(error("p^0").contains("power `0`"));
        assert!(error("p^x").contains("power `x`"));
        assert!(error("p^2^2").contains("power"));
        assert_eq!(error("p*h,h*p"), "terms `p*h` and `h*p` are the same product: remove one");
        assert!(error(&vec!["x"; 65].join(",")).contains("65 terms"));
    }

    proptest! {
        #[test]
        fn printing_and_parsing_terms_is_the_identity(names in prop::collection::btree_set("[a-z][a-z0-9_]{0,6}", 1..5), power in 1..5i32) {
            let text = names.iter().map(|n| format!("{n}^{power}")).collect::<Vec<_>>().join(",");
            prop_assert_eq!(text.parse::<Terms>().expect("terms").to_string(), text);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,30}") {
            let _ = text.parse::<Terms>();
        }
    }
}
