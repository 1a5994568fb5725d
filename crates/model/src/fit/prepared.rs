//! A table made ready once for every fit and check of one `y`.
//!
//! ```text
//!  table ─▶ rows with words left out ─▶ units and FCS checked ─▶ limits found ─▶ rows selected
//!                                                                (whole table)   (--where)
//! ```
//!
//! Limits are found before rows are selected, because the other rows show where the caps are. Which
//! rows are limited: see [`crate::regime`].

use super::error::FitError;
use super::options::{FitOptions, Regimes, Weighting};
use super::y_unit;
use crate::fcs::Fcs;
use crate::regime::{self, CapHints, Limit, Regime, Split};
use crate::table::Table;
use crate::terms::Term;

/// The points of a fit or a check.
pub(crate) struct Prepared {
    /// What is fitted.
    pub(crate) y: Term,
    /// The selected rows in which every used column is a number.
    pub(crate) table: Table,
    /// What limits each row; none where limits are not looked for or y does not tell.
    limits: Option<Split>,
    /// Whether frame sizes count the FCS, if the table or the caller says so.
    pub(crate) fcs: Option<Fcs>,
    /// Which rows were left out or converted.
    pub(crate) notes: Vec<String>,
}

/// The regimes of some rows, and a sentence about those that the processor does not limit.
#[derive(Default)]
pub(crate) struct Caps {
    pub(crate) regimes: Vec<Regime>,
    pub(crate) note: Option<String>,
}

impl Prepared {
    /// Prepares `table` for fits of `y` over `columns`.
    pub(crate) fn for_fit(
        table: &Table,
        y: Term,
        columns: &[&str],
        options: &FitOptions,
    ) -> Result<Prepared, FitError> {
        let mut used: Vec<&str> = y.columns().chain(columns.iter().copied()).collect();
        if let Weighting::Column(name) = &options.weighting {
            used.push(name);
        }
        let (table, mut notes) = table.without_words(&used)?;
        table.check_units(&used)?;
        let fcs = Fcs::agreed(Fcs::of(&table)?, options.hints.fcs)?;
        y_unit::check(&y, options.y_unit, &table)?;
        let limits = match options.regimes {
            Regimes::Off => None,
            Regimes::Auto | Regimes::Split => {
                regime::split(&table, &y, &CapHints { fcs, ..options.hints.clone() })?
            }
        };
        notes.extend(limits.as_ref().and_then(Split::note).map(str::to_owned));
        Prepared { y, table, limits, fcs, notes }.select(&options.only)
    }

    /// Prepares `table` for a check of a fit of `y` over `columns` with sizes counted as `fcs`.
    /// Limits are looked for only where the fit left out capped rows (`is_uncapped`).
    pub(crate) fn for_check(
        table: &Table,
        y: Term,
        columns: &[&str],
        fcs: Option<Fcs>,
        options: &FitOptions,
        is_uncapped: bool,
    ) -> Result<Prepared, FitError> {
        let used: Vec<&str> = columns.iter().copied().chain(y.columns()).collect();
        let (table, notes) = table.without_words(&used)?;
        let limits = match options.regimes {
            Regimes::Auto | Regimes::Split if is_uncapped => {
                regime::split(&table, &y, &CapHints { fcs, ..options.hints.clone() })?
            }
            _ => None,
        };
        Prepared { y, table, limits, fcs, notes }.select(&options.only)
    }

    /// Keeps the rows in which each column of `only` equals its text.
    fn select(self, only: &[(String, String)]) -> Result<Prepared, FitError> {
        let mut rows: Vec<usize> = (0..self.table.len()).collect();
        for (column, text) in only {
            let matching = self.table.rows_where(column, text)?;
            rows.retain(|row| matching.binary_search(row).is_ok());
            if rows.is_empty() {
                return Err(FitError::NoRow { column: column.clone(), text: text.clone() });
            }
        }
        let limits = self.limits.map(|limits| limits.keep(&rows));
        Ok(Prepared { table: self.table.keep(&rows), limits, ..self })
    }

    /// Returns the numbered rows, without limits and notes.
    pub(crate) fn keep(&self, rows: &[usize]) -> Prepared {
        Prepared {
            y: self.y.clone(),
            table: self.table.keep(rows),
            limits: None,
            fcs: self.fcs,
            notes: Vec::new(),
        }
    }

    /// Returns the numbers of the rows that the processor limits: all rows if limits are not known.
    pub(crate) fn free(&self) -> Vec<usize> {
        self.limits.as_ref().map_or_else(|| (0..self.table.len()).collect(), Split::free)
    }

    /// Runs `run` on the rows that the processor limits. Where those do not determine the terms,
    /// runs it on all rows or returns the reason, as `wanted` says.
    pub(crate) fn uncapped<T>(
        &self,
        wanted: Regimes,
        run: impl Fn(&Prepared) -> Result<T, FitError>,
    ) -> Result<(T, Caps), FitError> {
        let Some(limits) = &self.limits else { return Ok((run(self)?, Caps::default())) };
        let (free, regimes) = (limits.free(), limits.regimes(&self.table));
        if free.len() == self.table.len() {
            return Ok((run(self)?, Caps { regimes, note: None }));
        }
        let left_out = describe(&regimes);
        match run(&self.keep(&free)) {
            Err(reason) if wanted == Regimes::Split => {
                Err(FitError::Capped { total: self.table.len(), cpu: free.len(), reason: Box::new(reason) })
            }
            Err(reason @ (FitError::TooFew { .. } | FitError::Collinear { .. } | FitError::Zero { .. })) => {
                let note = format!(
                    "{}; they remain in the fit, because without them: {reason}. The coefficients describe the caps, not the processor",
                    left_out.replace("left out", "recognised")
                );
                Ok((run(self)?, Caps { regimes, note: Some(note) }))
            }
            found => Ok((found?, Caps { regimes, note: Some(left_out) })),
        }
    }
}

/// Describes the capped regimes in one line.
fn describe(regimes: &[Regime]) -> String {
    let parts = regimes.iter().filter_map(|r| match (r.limit, r.rate) {
        (Limit::LineRate, Some(bps)) => Some(format!("{} at a line rate of {} Gbit/s", r.points, bps / 1e9)),
        (Limit::PacketRate, Some(pps)) => Some(format!("{} at a cap of {:.1} Mpps", r.points, pps / 1e6)),
        _ => None,
    });
    format!("capped points left out: {}", parts.collect::<Vec<_>>().join(", "))
}
