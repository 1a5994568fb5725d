//! Fits a linear cost model `y = Σ b·term` to a table: ordinary, weighted or robust least squares,
//! with intervals, residuals and leave-one-out errors. Where the points do not determine the terms,
//! the result is an error with the reason.
//!
//! ```text
//!   fit ──▶ prepared.rs   rows, units, FCS, limits: once
//!    │
//!    ├────▶ solve.rs      the terms given: linear.rs or robust.rs, then the judgement
//!    └────▶ select.rs     `auto:p,h`: terms chosen by the points, then solve.rs
//! ```
//!
//! [`Fit`] serialises to the JSON that `fastpath model fit --json` prints. Read first:
//! `prepared.rs`.

mod error;
mod options;
pub(crate) mod prepared;
mod result;
mod robust;
mod select;
mod solve;
#[cfg(test)]
mod tests;
mod y_unit;

pub use error::FitError;
pub use options::{FitOptions, Method, Quantile, Regimes, Weighting};
pub use result::{Fit, Point, Residuals};

use crate::table::Table;
use crate::terms::{Term, Terms};
use prepared::Prepared;

/// Fits `y` (a column, or a product like `cores/rate`) by `terms` (`const,p,h,p*h`), or by terms
/// chosen over some columns (`auto:p,h`).
///
/// # Errors
/// [`FitError`] says what is wrong, where, and what to do.
///
/// ```
/// use fastpath_model::{Table, fit::{fit, FitOptions}};
/// let table = Table::from_csv("p,T_ns\n64,45.1\n128,51.6\n256,64.3\n512,90.2\n")?;
/// let found = fit(&table, "T_ns", "const,p", &FitOptions::default())?;
/// assert!(found.coefficients["p"].covers(0.1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fit(table: &Table, y: &str, terms: &str, options: &FitOptions) -> Result<Fit, FitError> {
    if !(options.level > 0.0 && options.level < 1.0) {
        return Err(FitError::Level { level: options.level });
    }
    let y: Term = quote(y, table).parse()?;
    let explanation = Explanation::parse(terms, table)?;
    fit_prepared(&Prepared::for_fit(table, y, &explanation.columns(), options)?, &explanation, options)
}

/// Fits a prepared table.
pub(crate) fn fit_prepared(
    prepared: &Prepared,
    explanation: &Explanation,
    options: &FitOptions,
) -> Result<Fit, FitError> {
    match explanation {
        Explanation::Terms(terms) => solve::solve_uncapped(prepared, terms, options),
        Explanation::Auto { names, plain } => select::fit_chosen(prepared, names, plain, options),
    }
}

/// The right-hand side of a fit as written.
pub(crate) enum Explanation {
    /// Terms written out: `const,p,h,p*h`.
    Terms(Terms),
    /// Terms to be chosen over the named columns: `auto:p,h`. `plain` holds the constant and the
    /// columns as they are.
    Auto { names: Vec<String>, plain: Terms },
}

impl Explanation {
    pub(crate) fn parse(terms: &str, table: &Table) -> Result<Explanation, FitError> {
        let Some(names) = select::columns(terms) else {
            return Ok(Explanation::Terms(quote(terms, table).parse()?));
        };
        let plain = select::plain_terms(&names).parse()?;
        Ok(Explanation::Auto { names, plain })
    }

    /// Returns the columns that the terms use, or may use.
    pub(crate) fn columns(&self) -> Vec<&str> {
        match self {
            Explanation::Terms(terms) | Explanation::Auto { plain: terms, .. } => {
                terms.columns().into_iter().collect()
            }
        }
    }
}

/// Quotes the names of columns that look like products, such as `packets/s`, so that they are not
/// parsed as products. They may stand alone or in a product such as `cores/packets/s`.
pub(crate) fn quote(text: &str, table: &Table) -> String {
    let mut names: Vec<&str> =
        table.names().iter().map(String::as_str).filter(|name| name.contains(['*', '/', '^', '('])).collect();
    // The longest first: a long name may contain a short one.
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let part = |part: &str| {
        let (mut done, mut rest) = (String::new(), part);
        while let Some(c) = rest.chars().next() {
            let quoted = rest.strip_prefix('"').and_then(|inside| inside.find('"')).map(|end| end + 2);
            let is_start = !done.ends_with(|before: char| before.is_alphanumeric() || before == '_');
            match names.iter().find(|name| is_start && rest.starts_with(**name)) {
                Some(name) => {
                    done += &format!("\"{name}\"");
                    rest = &rest[name.len()..];
                }
                None => {
                    let (taken, left) = rest.split_at(quoted.unwrap_or(c.len_utf8()));
                    done += taken;
                    rest = left;
                }
            }
        }
        done
    };
    text.split(',').map(part).collect::<Vec<_>>().join(",")
}
