//! Why the costs of the engine on a machine are not known.

use super::demand::DemandError;
use fastpath_model::capacity::CapacityError;
use fastpath_model::fit::FitError;
use fastpath_model::table::TableError;

/// Why the engine's costs could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// A run failed.
    #[error("measuring the engine: {0}")]
    Run(String),
    /// The runs do not determine the costs.
    #[error("the engine's costs: {0}; measure again on a quieter machine")]
    Fit(#[from] FitError),
    /// A table without rows.
    #[error("the engine's costs: {0}")]
    Table(#[from] TableError),
    /// A network of the measurement has no demand.
    #[error(transparent)]
    Demand(#[from] DemandError),
    /// The costs do not predict.
    #[error(transparent)]
    Capacity(#[from] CapacityError),
}
