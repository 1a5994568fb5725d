//! Terms of a model written as text: `const,p,h,p*h`, `h^2`, `cores/rate`, `ceil(p/64)`,
//! `max(p-256,0)`. A term is a product of factors with integer powers; a fit finds the coefficient
//! in front. A factor is a column, or one of the two shapes in which packet costs depart from a
//! straight line: steps of a fixed size (cache lines), and the part above a threshold (a copy that
//! changes its method there).

use crate::table::{Table, TableError};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Maximum number of terms of a model.
pub const TERMS_MAX: usize = 64;
const POWER_MAX: i32 = 9;

/// A product of factors; the empty product is the constant 1.
#[derive(Clone, PartialEq, Debug)]
pub struct Term {
    text: String,
    /// In a canonical order; no power is 0.
    factors: Vec<Factor>,
}

/// A column in some shape, raised to a power.
#[derive(Clone, PartialEq, Debug)]
pub struct Factor {
    /// The column's name.
    pub column: String,
    /// The function applied to it.
    pub shape: Shape,
    /// The power, not 0.
    pub power: i32,
}

/// The function that a factor applies to a column's value.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub enum Shape {
    /// The value itself.
    Plain,
    /// `ceil(p/64)`: the number of whole pieces of this size, above 0.
    Ceil(f64),
    /// `max(p-256,0)`: the part above this threshold.
    Above(f64),
}

/// The right-hand side of a model: distinct terms in the order written.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Terms(Vec<Term>);

/// What is wrong with the text of a term.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum TermError {
    /// Nothing between two commas or operators.
    #[error("in `{text}`: a column's name is missing: write terms like const,p,h,p*h")]
    Missing {
        /// The text.
        text: String,
    },
    /// A power that is not an integer from −9 to 9, or is 0.
    #[error("in `{text}`: the power `{power}` must be an integer from -9 to 9, not 0")]
    Power {
        /// The text.
        text: String,
        /// The power.
        power: String,
    },
    /// A call of a function other than `ceil` and `max`.
    #[error("in `{text}`: write ceil(COLUMN/NUMBER) or max(COLUMN-NUMBER,0), the number above 0")]
    Function {
        /// The text.
        text: String,
    },
    /// A number other than 1.
    #[error(
        "in `{text}`: `{number}` is a number: omit it, because the fit finds the factor in front (1 and const mean the constant)"
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
    #[error("{count} terms are more than {TERMS_MAX}: omit some")]
    TooMany {
        /// Number of terms.
        count: usize,
    },
}

impl Term {
    /// Returns the term as written, without spaces.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the term is the constant.
    pub fn is_const(&self) -> bool {
        self.factors.is_empty()
    }

    /// Returns the factors.
    pub fn factors(&self) -> &[Factor] {
        &self.factors
    }

    /// Returns the columns of the factors.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.factors.iter().map(|factor| factor.column.as_str())
    }

    /// Returns the value of the term where `value_of` gives the value of each column; `None` when a
    /// column has none.
    pub fn value(&self, value_of: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        self.factors
            .iter()
            .try_fold(1.0, |product, factor| Some(product * factor.of(value_of(&factor.column)?)))
    }

    /// Returns the value of the term in every row of `table`.
    ///
    /// # Errors
    /// [`TableError`] for a missing column, a cell that is not a number, and a division by zero.
    pub fn column(&self, table: &Table) -> Result<Vec<f64>, TableError> {
        let mut product = vec![1.0; table.len()];
        for factor in &self.factors {
            for (row, (p, x)) in product.iter_mut().zip(table.numbers(&factor.column)?).enumerate() {
                *p *= factor.of(x);
                if !p.is_finite() {
                    let (line, column) = (table.line(row), factor.column.clone());
                    return Err(TableError::NotANumber {
                        line,
                        column,
                        text: format!("{x} in `{}`", self.text),
                    });
                }
            }
        }
        Ok(product)
    }
}

impl Factor {
    /// Returns the value of the factor where its column is `x`.
    fn of(&self, x: f64) -> f64 {
        let shaped = match self.shape {
            Shape::Plain => x,
            Shape::Ceil(piece) => (x / piece).ceil(),
            Shape::Above(knot) => (x - knot).max(0.0),
        };
        shaped.powi(self.power)
    }
}

impl FromStr for Term {
    type Err = TermError;

    fn from_str(text: &str) -> Result<Term, TermError> {
        let mut factors: Vec<Factor> = Vec::new();
        let mut sign = 1;
        let mut rest = text.trim();
        loop {
            let (Factor { column, shape, power }, after) = factor(rest, text)?;
            match column.as_str() {
                "const" | "1" => {}
                // A column may be called `inf` or `nan`.
                number if number.parse().is_ok_and(f64::is_finite) => {
                    return Err(TermError::Number { text: text.trim().to_owned(), number: column });
                }
                _ => match factors.iter_mut().find(|f| (&f.column, f.shape) == (&column, shape)) {
                    Some(factor) => factor.power += sign * power,
                    None => factors.push(Factor { column, shape, power: sign * power }),
                },
            }
            let Some(operator) = after.chars().next() else { break };
            sign = if operator == '/' { -1 } else { 1 };
            rest = &after[1..];
        }
        factors.retain(|factor| factor.power != 0);
        let shapes = |a: &Factor, b: &Factor| a.shape.partial_cmp(&b.shape).unwrap_or(Ordering::Equal);
        factors.sort_by(|a, b| a.column.cmp(&b.column).then(shapes(a, b)).then(a.power.cmp(&b.power)));
        let spaced = text.split('*').map(str::trim).collect::<Vec<_>>().join("*");
        Ok(Term { text: spaced.split('/').map(str::trim).collect::<Vec<_>>().join("/"), factors })
    }
}

/// Parses `name`, `"any name"` or a function of a name, and `^power`. Returns the rest, which is
/// empty or starts with an operator.
fn factor<'a>(rest: &'a str, text: &str) -> Result<(Factor, &'a str), TermError> {
    let rest = rest.trim_start();
    let missing = || TermError::Missing { text: text.trim().to_owned() };
    let (column, shape, after) = match rest.strip_prefix('"') {
        Some(quoted) => {
            let (name, after) = quoted.split_once('"').ok_or_else(missing)?;
            (name, Shape::Plain, after)
        }
        None if rest.starts_with("ceil(") || rest.starts_with("max(") => {
            function(rest).ok_or_else(|| TermError::Function { text: text.trim().to_owned() })?
        }
        None => {
            let (name, after) = rest.split_at(rest.find(['*', '/', '^']).unwrap_or(rest.len()));
            (name, Shape::Plain, after)
        }
    };
    let (column, after) = (column.trim(), after.trim_start());
    if column.is_empty() {
        return Err(missing());
    }
    let factor = |power| Factor { column: column.to_owned(), shape, power };
    let Some(raised) = after.strip_prefix('^') else {
        return if after.is_empty() || after.starts_with(['*', '/']) {
            Ok((factor(1), after))
        } else {
            Err(missing())
        };
    };
    let (power, after) = raised.split_at(raised.find(['*', '/', '^']).unwrap_or(raised.len()));
    match power.trim().parse::<i32>() {
        Ok(p) if p != 0 && p.abs() <= POWER_MAX && !after.starts_with('^') => Ok((factor(p), after)),
        _ => Err(TermError::Power { text: text.trim().to_owned(), power: power.trim().to_owned() }),
    }
}

/// Parses `ceil(p/64)` or `max(p-256,0)`. Returns the column, its shape, and the rest.
fn function(text: &str) -> Option<(&str, Shape, &str)> {
    let (name, rest) = text.split_once('(')?;
    let (inside, after) = rest.split_at(closing(rest)?);
    let number = |text: &str| text.trim().parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
    let (inside, operator) = match name {
        "ceil" => (inside, '/'),
        _ => (inside.trim_end().strip_suffix('0')?.trim_end().strip_suffix(',')?, '-'),
    };
    // The column's name may contain the operator, and the number a minus sign.
    let (at, number) =
        inside.match_indices(operator).find_map(|(at, _)| Some((at, number(&inside[at + 1..])?)))?;
    let column = inside[..at].trim();
    let column = column.strip_prefix('"').and_then(|c| c.strip_suffix('"')).unwrap_or(column);
    let shape = if operator == '/' { Shape::Ceil(number) } else { Shape::Above(number) };
    Some((column, shape, &after[1..]))
}

/// Returns where the bracket that opens before `text` closes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.char_indices().find_map(|(at, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        (depth == 0).then_some(at)
    })
}

impl Terms {
    /// Returns the terms in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Term> {
        self.0.iter()
    }

    /// Returns the number of terms, at least 1.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the columns that the terms use, each once, sorted.
    pub fn columns(&self) -> BTreeSet<&str> {
        self.0.iter().flat_map(Term::columns).collect()
    }
}

impl FromStr for Terms {
    type Err = TermError;

    fn from_str(text: &str) -> Result<Terms, TermError> {
        let terms = split(text).into_iter().map(str::parse).collect::<Result<Vec<Term>, _>>()?;
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

/// Splits at commas outside double quotes and brackets.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let (mut quoted, mut depth) = (false, 0u32);
    text.split(|c: char| {
        quoted ^= c == '"';
        match c {
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && !quoted && depth == 0
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
        let term: Term = text.parse().expect("a term");
        term.factors.into_iter().map(|f| (f.column, f.power)).collect()
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
    fn a_factor_may_count_in_pieces_or_from_a_bend_on() {
        let at =
            |text: &str, p: f64| text.parse::<Term>().expect("a term").value(|_| Some(p)).expect("a value");
        let steps = [0.0, 1.0, 64.0, 65.0, 1518.0].map(|p| at("ceil(p/64)", p));
        assert_eq!(steps, [0.0, 1.0, 1.0, 2.0, 24.0]);
        assert_eq!([64.0, 256.0, 300.0].map(|p| at("max(p-256,0)", p)), [0.0, 0.0, 44.0]);
        assert_eq!(at("max( \"a-b (c)\" - 2.5 , 0 )^2 * h", 4.0), 9.0);
        assert_eq!(at("max(x-1e-3,0)", 1.0), 0.999);
        assert_eq!(at("h*max(p-256,0)/ceil(p/64)", 640.0), 640.0 * 384.0 / 10.0);
        let terms: Terms = "const,max(p-256,0),h*max(p-256,0),ceil(p/64)".parse().expect("terms");
        assert_eq!((terms.count(), terms.columns().into_iter().collect::<Vec<_>>()), (4, vec!["h", "p"]));
        assert_eq!(terms.to_string().parse::<Terms>().expect("the same terms"), terms);
        assert!("max(p-64,0),max(p-128,0)".parse::<Terms>().is_ok(), "different bends are different terms");
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
        for wrong in [
            "ceil(p)",
            "ceil(p/0)",
            "ceil(p/x)",
            "max(p-64)",
            "max(p,0)",
            "max(p-64,1)",
            "max(p-64,0",
            "ceil(p/-1)",
        ] {
            assert!(error(wrong).contains("write ceil(COLUMN/NUMBER) or max(COLUMN-NUMBER,0)"), "{wrong}");
        }
        assert!(error("max(-64,0)").contains("a column's name is missing"));
        assert!(error("max(p-64,0),max(p-64.0,0)").contains("the same product"));
        assert_eq!(error("p*h,h*p"), "terms `p*h` and `h*p` are the same product: remove one");
        assert!(error(&vec!["x"; 65].join(",")).contains("65 terms"));
    }

    #[test]
    fn columns_may_be_named_inf_and_nan() {
        let terms: Terms = "inf^2,nan*infinity".parse().expect("terms");
        assert_eq!(terms.columns().into_iter().collect::<Vec<_>>(), ["inf", "infinity", "nan"]);
        assert_eq!(terms.to_string(), "inf^2,nan*infinity");
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
