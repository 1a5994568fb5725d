//! How many cores a link needs (the whitepaper's chart): packets/s the wire can carry times the
//! time a packet costs one core.

use crate::Estimate;
use crate::model::{Model, ModelError};
use crate::regime::{FRAMING_BYTES, is_frame};
use serde::Serialize;
use std::collections::BTreeSet;
use thiserror::Error;

/// The Ethernet speeds asked for by default, Gbit/s.
pub const SPEEDS_GBIT: [f64; 7] = [10.0, 25.0, 40.0, 100.0, 200.0, 400.0, 800.0];
/// The frame sizes asked for by default, bytes with FCS (RFC 2544 §9.1).
pub const FRAMES_BYTES: [f64; 7] = [64.0, 128.0, 256.0, 512.0, 1024.0, 1280.0, 1518.0];

/// Ethernet's shortest frame, bytes with FCS (IEEE 802.3 §4.4.2).
const ETHERNET_LEAST: f64 = 64.0;

/// What is asked.
#[derive(Clone, PartialEq, Debug)]
pub struct Question {
    /// Link speeds, Gbit/s.
    pub speeds_gbit: Vec<f64>,
    /// Frame sizes, bytes with FCS.
    pub frames_bytes: Vec<f64>,
    /// Values of the column that is neither a frame size nor in `at` (`h`), one row of the answer
    /// each.
    pub steps: Vec<f64>,
    /// Values of other columns.
    pub at: Vec<(String, f64)>,
    /// Bytes on the wire beside each frame; 20 on Ethernet.
    pub framing_bytes: f64,
}

impl Question {
    /// All speeds and sizes at these steps.
    pub fn chart(steps: &[f64]) -> Question {
        Question {
            speeds_gbit: SPEEDS_GBIT.to_vec(),
            frames_bytes: FRAMES_BYTES.to_vec(),
            steps: steps.to_vec(),
            at: Vec::new(),
            framing_bytes: FRAMING_BYTES,
        }
    }

    /// The value of a column.
    fn value(&self, name: &str, model_frame_bytes: f64, steps: f64) -> f64 {
        match self.at.iter().find(|(given, _)| given == name) {
            Some((_, value)) => *value,
            None if is_frame(name) => model_frame_bytes,
            None => steps,
        }
    }

    /// Whether each of the model's columns has a meaning here.
    fn check(&self, model: &Model) -> Result<(), CoresError> {
        let columns = model.terms.columns();
        if let Some((name, _)) = self.at.iter().find(|(name, _)| !columns.contains(name.as_str())) {
            let have = columns.into_iter().collect::<Vec<_>>().join(", ");
            return Err(CoresError::NoColumn { name: name.clone(), have });
        }
        let is_given = |name: &str| self.at.iter().any(|(given, _)| given == name);
        let steps: Vec<&str> =
            columns.iter().copied().filter(|name| !is_frame(name) && !is_given(name)).collect();
        if steps.len() > 1 {
            return Err(CoresError::Unclear { columns: steps.join(", ") });
        }
        Ok(())
    }
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum CoresError {
    /// The model cannot answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// More than one column could be the steps.
    #[error(
        "which of {columns} are the steps? Give every other one a value (--at COLUMN=VALUE, such as cores=1)"
    )]
    Unclear {
        /// The columns.
        columns: String,
    },
    /// A value for what the model has not.
    #[error("--at {name}: the model has no such column (have: {have})")]
    NoColumn {
        /// The name.
        name: String,
        /// The model's columns.
        have: String,
    },
}

/// One row of the answer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CoreCount {
    /// Link speed, Gbit/s.
    pub gbit_per_s: f64,
    /// Frame size, bytes with FCS.
    pub frame_bytes: f64,
    /// The same as the model counts it.
    pub model_frame_bytes: f64,
    /// The same as line time.
    pub wire_bytes: f64,
    /// Steps per packet.
    pub steps: f64,
    /// Packets/s the wire carries at most.
    pub packets_per_s: f64,
    /// Time a packet costs one core, ns.
    pub ns_per_packet: Estimate,
    /// Cores busy at that rate.
    pub cores: Estimate,
    /// Whole cores that suffice at the upper end of the interval.
    pub whole_cores: u64,
}

/// Packets/s of `frame_bytes` (with FCS) that fit a wire of `gbit` with `framing_bytes` beside
/// each.
pub fn wire_rate(gbit: f64, frame_bytes: f64, framing_bytes: f64) -> f64 {
    gbit * 1e9 / (8.0 * (frame_bytes + framing_bytes))
}

/// Answers `question` from `model`, whose y must be a time; terms may use a frame size, one other
/// column, and those that the question gives a value.
///
/// # Errors
/// [`CoresError`] when the model's y is no time, its cost is not above zero, or a column has no
/// value.
pub fn cores(model: &Model, question: &Question) -> Result<Vec<CoreCount>, CoresError> {
    question.check(model)?;
    let unit = model.seconds_per_unit.ok_or(ModelError::NoTime)?;
    let mut rows = Vec::new();
    for &gbit_per_s in &question.speeds_gbit {
        for &frame_bytes in &question.frames_bytes {
            for &steps in &question.steps {
                let model_frame_bytes = in_model(model, frame_bytes);
                let mean = model.predict(|name| Some(question.value(name, model_frame_bytes, steps)))?.mean;
                if mean.value <= 0.0 {
                    return Err(ModelError::NotPositive { cost: mean.value }.into());
                }
                let packets_per_s = wire_rate(gbit_per_s, frame_bytes, question.framing_bytes);
                let cores = mean.map(|t| t.max(0.0) * unit * packets_per_s);
                rows.push(CoreCount {
                    gbit_per_s,
                    frame_bytes,
                    model_frame_bytes,
                    wire_bytes: frame_bytes + question.framing_bytes,
                    steps,
                    packets_per_s,
                    ns_per_packet: mean.map(|t| t * unit * 1e9),
                    cores,
                    whole_cores: cores.high.ceil() as u64,
                });
            }
        }
    }
    Ok(rows)
}

/// A size with FCS as the model counts it.
fn in_model(model: &Model, frame_bytes: f64) -> f64 {
    frame_bytes - model.frame(frame_bytes).fcs.missing_bytes()
}

/// What the reader of the answer should know.
pub fn warnings(model: &Model, question: &Question) -> Vec<String> {
    let mut warnings: BTreeSet<String> = BTreeSet::new();
    for &frame_bytes in &question.frames_bytes {
        if frame_bytes < ETHERNET_LEAST {
            warnings.insert(format!(
                "a frame of {frame_bytes} bytes is shorter than Ethernet's shortest, {ETHERNET_LEAST} with FCS"
            ));
        }
        let frame = in_model(model, frame_bytes);
        for &steps in &question.steps {
            warnings.extend(model.extrapolations(|name| Some(question.value(name, frame, steps))));
        }
    }
    warnings.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fcs::Fcs;
    use crate::model::Range;
    use crate::seeds::netcope;

    #[test]
    fn the_whitepaper_s_chart_comes_out_with_the_framing_right() {
        let model = netcope::model();
        let question = Question {
            speeds_gbit: vec![100.0],
            frames_bytes: vec![64.0],
            ..Question::chart(&[0.0, 10.0, 20.0, 50.0, 100.0])
        };
        let rows = cores(&model, &question).expect("a time");
        let ours: Vec<f64> = rows.iter().map(|r| (r.cores.value * 100.0).round() / 100.0).collect();
        assert_eq!(ours, [6.71, 12.76, 18.82, 36.99, 67.27]);
        assert_eq!(rows[0].whole_cores, 7);
        assert!((1e9 / rows[0].packets_per_s - 6.72).abs() < 1e-9);
    }

    #[test]
    fn every_speed_and_size_is_answered_and_scales_with_the_speed() {
        let rows = cores(&netcope::model(), &Question::chart(&[0.0])).expect("a time");
        assert_eq!(rows.len(), SPEEDS_GBIT.len() * FRAMES_BYTES.len());
        let at =
            |gbit: f64| rows.iter().find(|r| r.gbit_per_s == gbit && r.frame_bytes == 1518.0).expect("asked");
        assert!((at(800.0).cores.value / at(10.0).cores.value - 80.0).abs() < 1e-9);
    }

    #[test]
    fn a_model_of_sizes_in_memory_is_asked_four_bytes_less_and_the_wire_has_all() {
        let question =
            Question { speeds_gbit: vec![10.0], frames_bytes: vec![64.0], ..Question::chart(&[0.0]) };
        let with = netcope::model();
        let without = Model { fcs: Some(Fcs::Without), ..with.clone() };
        let [row, other] = [&with, &without].map(|model| cores(model, &question).expect("a time")[0]);
        assert_eq!((row.model_frame_bytes, other.model_frame_bytes), (64.0, 60.0));
        assert_eq!((row.wire_bytes, other.wire_bytes), (84.0, 84.0));
        assert_eq!(row.packets_per_s, other.packets_per_s);
        assert!((row.ns_per_packet.value - other.ns_per_packet.value - 4.0 * netcope::P_NS).abs() < 1e-9);
    }

    #[test]
    fn sizes_and_steps_beyond_what_was_fitted_are_told_once_each() {
        let range = |low, high| Range { low, high };
        let ranges = [("p".to_owned(), range(60.0, 512.0)), ("h".to_owned(), range(0.0, 20.0))];
        let model = Model { fcs: Some(Fcs::Without), ranges: ranges.into(), ..netcope::model() };
        let question = Question { frames_bytes: vec![64.0, 516.0], ..Question::chart(&[0.0, 20.0]) };
        assert_eq!(warnings(&model, &question), Vec::<String>::new());
        let question = Question { frames_bytes: vec![64.0, 1518.0], ..Question::chart(&[0.0, 50.0]) };
        let told = warnings(&model, &question);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("extrapolation: h = 50 lies outside 0 … 20"), "{told:?}");
        assert!(told[1].starts_with("extrapolation: p = 1514 lies outside 60 … 512"), "{told:?}");
    }

    #[test]
    fn a_model_that_is_no_time_is_refused() {
        let model = Model { seconds_per_unit: None, ..netcope::model() };
        assert_eq!(cores(&model, &Question::chart(&[0.0])), Err(ModelError::NoTime.into()));
    }

    #[test]
    fn steps_are_one_column_and_the_others_get_values_of_their_own() {
        let terms = "const,p,h,cores".parse().expect("terms");
        let model = Model::from_constants(terms, &[38.6, 0.101, 4.07, 1000.0], 1e-9).expect("constants");
        let question = Question { frames_bytes: vec![64.0], ..Question::chart(&[10.0]) };
        let error = cores(&model, &question).unwrap_err().to_string();
        assert!(error.starts_with("which of cores, h are the steps?"), "{error}");
        let given = Question { at: vec![("cores".to_owned(), 2.0)], ..question.clone() };
        let ns = cores(&model, &given).expect("a time")[0].ns_per_packet.value;
        assert!((ns - (38.6 + 6.464 + 40.7 + 2000.0)).abs() < 1e-9, "{ns}");
        let wrong = Question { at: vec![("core".to_owned(), 2.0)], ..question };
        let error = cores(&model, &wrong).unwrap_err().to_string();
        assert_eq!(error, "--at core: the model has no such column (have: cores, h, p)");
    }
}
