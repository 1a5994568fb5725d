//! Arguments that control a fit, shared by all commands that fit a table.

use anyhow::Context;
use clap::{Args, ValueEnum};
use fastpath_model::arguments::{bytes, clock_hz, column_text};
use fastpath_model::column_unit::ColumnUnit;
use fastpath_model::fcs::Fcs;
use fastpath_model::fit::{FitOptions, Method, Quantile, Regimes, Weighting};
use fastpath_model::regime::CapHints;
use fastpath_units::Rate;

/// How to fit.
#[derive(Args)]
pub(super) struct Fitting {
    /// Weight of each point: equal, relative (1/y²), or a column of weights (1/variance) [default:
    /// equal; relative for auto terms].
    #[arg(long, value_name = "WEIGHTS")]
    weights: Option<String>,
    /// Use only rows where COLUMN equals TEXT. May be repeated: all must hold.
    #[arg(long, value_name = "COLUMN=TEXT", value_parser = column_text)]
    only: Vec<(String, String)>,
    /// Estimator of the coefficients.
    #[arg(long, default_value = "least-squares")]
    method: MethodArg,
    /// Quantile that widens the intervals. The normal one is too narrow for few points.
    #[arg(long, default_value = "t")]
    quantile: QuantileArg,
    /// Confidence level of the intervals.
    #[arg(long, default_value_t = 0.95)]
    level: f64,
    /// What to do with points that a line rate or a NIC limits instead of the processor.
    #[arg(long, default_value = "auto")]
    regimes: RegimesArg,
    /// Unit of y, if the column's name carries none: ns, us, ms, s, cycles, pps, Mpps.
    #[arg(long, value_name = "UNIT")]
    y_unit: Option<String>,
    /// Clock of the processor, to convert cycles to time, such as 2.5GHz.
    #[arg(long, value_name = "HZ", value_parser = clock_hz)]
    clock: Option<f64>,
    /// Column of frame sizes [default: found by name].
    #[arg(long, value_name = "COLUMN")]
    frame_column: Option<String>,
    /// Whether frame sizes count the 4 bytes of the FCS, if the table has no column fcs. Sizes in
    /// memory do not; published sizes usually do.
    #[arg(long, value_name = "WITH|WITHOUT", value_parser = fcs)]
    fcs: Option<Fcs>,
    /// Bytes on the wire in addition to each frame, preamble and gap, such as 50 for VXLAN; used
    /// for line rates.
    #[arg(long, value_name = "BYTES", default_value_t = 0.0, value_parser = bytes)]
    overhead: f64,
    /// Column of core counts [default: found by name].
    #[arg(long, value_name = "COLUMN")]
    cores_column: Option<String>,
    /// Line rate that limits some points, all ports together. May be repeated [default: Ethernet's
    /// line rates are tried].
    #[arg(long, value_name = "RATE")]
    line_rate: Vec<Rate>,
}

#[derive(Clone, Copy, ValueEnum)]
enum MethodArg {
    #[value(alias = "ols", alias = "wls")]
    LeastSquares,
    /// Huber's M-estimator: outliers count less.
    #[value(alias = "robust")]
    Huber,
}

#[derive(Clone, Copy, ValueEnum)]
enum QuantileArg {
    /// Student's t.
    T,
    Normal,
}

#[derive(Clone, Copy, ValueEnum)]
enum RegimesArg {
    /// Leave them out if enough points remain to fit the terms; otherwise keep them and warn.
    Auto,
    /// Leave them out, or refuse the fit.
    Split,
    /// Do not look for them.
    Off,
}

impl Fitting {
    /// Returns whether frame sizes count the FCS, if given.
    pub(super) fn fcs(&self) -> Option<Fcs> {
        self.fcs
    }

    pub(super) fn options(&self, terms: &str) -> anyhow::Result<FitOptions> {
        let unit = |text: &String| {
            ColumnUnit::parse(text).with_context(|| {
                format!("--y-unit {text}: unknown unit: use ns, us, ms, s, cycles, pps, kpps or Mpps")
            })
        };
        Ok(FitOptions {
            method: match self.method {
                MethodArg::LeastSquares => Method::LeastSquares,
                MethodArg::Huber => Method::Huber,
            },
            weighting: Weighting::named(self.weights.as_deref(), terms),
            quantile: match self.quantile {
                QuantileArg::T => Quantile::StudentT,
                QuantileArg::Normal => Quantile::Normal,
            },
            level: self.level,
            regimes: match self.regimes {
                RegimesArg::Auto => Regimes::Auto,
                RegimesArg::Split => Regimes::Split,
                RegimesArg::Off => Regimes::Off,
            },
            only: self.only.clone(),
            hints: CapHints {
                frame: self.frame_column.clone(),
                fcs: self.fcs,
                cores: self.cores_column.clone(),
                overhead_bytes: self.overhead,
                line_bps: self.line_rate.iter().map(|rate| rate.as_bps() as f64).collect(),
            },
            y_unit: self.y_unit.as_ref().map(unit).transpose()?,
            clock_hz: self.clock,
        })
    }
}

fn fcs(text: &str) -> Result<Fcs, &'static str> {
    text.parse().map_err(|()| "write with or without")
}
