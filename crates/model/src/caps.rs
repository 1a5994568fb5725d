//! What fits and checks do with rows that a line rate or a packet-rate cap limits: look for them,
//! leave them out, and say so. Which rows those are: see [`crate::regime`].

use crate::fcs::Fcs;
use crate::fit::{FitError, FitOptions, Regimes};
use crate::regime::{self, CapHints, Limit, Regime, Split};
use crate::table::Table;
use crate::terms::Term;

/// What limits each row, where the options say to look for it and y tells. Frame sizes count the
/// FCS as the table says.
pub(crate) fn limits(table: &Table, y: &Term, options: &FitOptions) -> Result<Option<Split>, FitError> {
    if options.regimes == Regimes::Off {
        return Ok(None);
    }
    let fcs = Fcs::agreed(Fcs::of(table)?, options.hints.fcs)?;
    Ok(regime::split(table, y, &CapHints { fcs, ..options.hints.clone() })?)
}

/// The regimes of some rows, and a sentence about those that the processor does not limit.
#[derive(Default)]
pub(crate) struct Caps {
    pub(crate) regimes: Vec<Regime>,
    pub(crate) told: Option<String>,
}

/// What `run` makes of the rows that the processor limits. Where they cannot carry the terms it is
/// given all of them, or there is none, as `wanted` says.
pub(crate) fn uncapped<T>(
    table: &Table,
    limits: Option<&Split>,
    wanted: Regimes,
    run: impl Fn(&Table) -> Result<T, FitError>,
) -> Result<(T, Caps), FitError> {
    let Some(limits) = limits else { return Ok((run(table)?, Caps::default())) };
    let (free, regimes) = (limits.free(), limits.regimes(table));
    if free.len() == table.len() {
        return Ok((run(table)?, Caps { regimes, told: None }));
    }
    let left_out = describe(&regimes);
    match run(&table.keep(&free)) {
        Err(reason) if wanted == Regimes::Split => {
            Err(FitError::Capped { total: table.len(), cpu: free.len(), reason: Box::new(reason) })
        }
        Err(reason @ (FitError::TooFew { .. } | FitError::Collinear { .. } | FitError::Zero { .. })) => {
            let told = format!(
                "{}; they are in the fit all the same, because without them: {reason}. The coefficients describe the caps, not the processor",
                left_out.replace("left out", "recognised")
            );
            Ok((run(table)?, Caps { regimes, told: Some(told) }))
        }
        found => Ok((found?, Caps { regimes, told: Some(left_out) })),
    }
}

/// One line about the capped regimes.
fn describe(regimes: &[Regime]) -> String {
    let parts = regimes.iter().filter_map(|r| match (r.limit, r.rate) {
        (Limit::LineRate, Some(bps)) => Some(format!("{} at a line rate of {} Gbit/s", r.points, bps / 1e9)),
        (Limit::PacketRate, Some(pps)) => Some(format!("{} at a cap of {:.1} Mpps", r.points, pps / 1e6)),
        _ => None,
    });
    format!("capped points left out: {}", parts.collect::<Vec<_>>().join(", "))
}
