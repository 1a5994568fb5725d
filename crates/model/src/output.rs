//! What the commands of `fastpath model` print with `--json`. Reports read it again.

use crate::budget::{Budget, BudgetQuery};
use crate::check::Check;
use crate::cores::{CoreCount, CoresQuery};
use crate::fcs::Fcs;
use crate::fit::Fit;
use crate::index::Index;
use crate::model::Model;
use crate::predict::PointPrediction;
use crate::{Bounded, cores};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The output of `model fit`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FitOutput {
    /// The fit.
    #[serde(flatten)]
    pub fit: Fit,
    /// The check against points that were not fitted, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
}

/// The output of `model predict`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PredictionOutput {
    /// Where the model comes from.
    pub model: String,
    /// The predicted points.
    pub predictions: Vec<PointPrediction>,
    /// The check against measured points, if there was one.
    #[serde(default)]
    pub check: Option<Check>,
}

/// The output of `model cores`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CoresOutput {
    /// Where the model comes from.
    pub model: String,
    /// Whether the model's frame sizes count the FCS.
    pub model_fcs: Fcs,
    /// Whether the convention of the FCS is assumed.
    pub model_fcs_assumed: bool,
    /// Bytes on the wire in addition to each frame.
    pub framing_bytes: f64,
    /// Values of the columns that are neither frame size nor steps.
    pub at: BTreeMap<String, f64>,
    /// A row for each combination of speed, frame size and steps.
    pub rows: Vec<CoreCount>,
    /// Reasons to doubt the result.
    pub warnings: Vec<String>,
}

/// The output of `model index`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct IndexOutput {
    /// The index.
    #[serde(flatten)]
    pub index: Index,
    /// The source of the platforms.
    pub source: String,
    /// The rate predicted for another platform, packets/s.
    #[serde(default)]
    pub predicted_pps: Option<Bounded>,
}

/// The output of `model budget`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BudgetOutput {
    /// The budget.
    #[serde(flatten)]
    pub budget: Budget,
    /// The query it answers.
    pub question: BudgetQuery,
}

impl CoresOutput {
    /// Computes the cores that `query` needs by `model`, which comes from `source`.
    ///
    /// # Errors
    /// As [`cores::cores`].
    pub fn new(source: String, model: &Model, query: &CoresQuery) -> Result<CoresOutput, cores::CoresError> {
        let size = model.frame(0.0);
        Ok(CoresOutput {
            model: source,
            model_fcs: size.fcs,
            model_fcs_assumed: size.assumed,
            framing_bytes: query.framing_bytes,
            at: query.at.iter().cloned().collect(),
            rows: cores::cores(model, query)?,
            warnings: cores::warnings(model, query),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;
    use crate::fit::{FitOptions, fit};
    use crate::predict::{PredictionQuery, predict_point};

    #[test]
    fn outputs_survive_json() {
        let table = Table::from_csv("p,T_ns\n64,45.1\n128,51.6\n256,64.3\n512,90.2\n").expect("a table");
        let found = fit(&table, "T_ns", "const,p", &FitOptions::default()).expect("a fit");
        let at = vec![("p".to_owned(), 100.0)];
        let query = PredictionQuery { transfer: None, cores: 1.0, line_gbit: None, packet_cap: None, at };
        let prediction = predict_point(&found.model(), &query).expect("a time");
        assert!(prediction.throughput().is_some());
        let unitless = Model { seconds_per_unit: None, ..found.model() };
        let plain = predict_point(&unitless, &query).expect("a value");
        assert!(plain.throughput().is_none());
        for predictions in [vec![prediction], vec![plain]] {
            let output = PredictionOutput { model: "m".to_owned(), predictions, check: None };
            let text = serde_json::to_string(&output).expect("serialisable");
            let back: PredictionOutput = serde_json::from_str(&text).expect("readable");
            assert_eq!(back.predictions[0].at, output.predictions[0].at);
            assert_eq!(
                back.predictions[0].throughput().is_some(),
                output.predictions[0].throughput().is_some()
            );
        }
        let output = FitOutput { fit: found, check: None };
        let text = serde_json::to_string(&output).expect("serialisable");
        let back: FitOutput = serde_json::from_str(&text).expect("readable");
        assert_eq!(back.fit.n, 4);
    }
}
