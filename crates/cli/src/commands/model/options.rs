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
    /// Weight of each point: equal, relative (1/y²), or a column of weights (1/variance). By
    /// default equal, and relative for auto terms.
    #[arg(long, value_name = "WEIGHTS")]
    weights: Option<String>,
    /// Use only rows in which COLUMN equals TEXT. May be repeated: all must hold.
    #[arg(long = "where", alias = "only", value_name = "COLUMN=TEXT", value_parser = column_text)]
    only: Vec<(String, String)>,
    /// Estimator of the coefficients.
    #[arg(long, default_value = "least-squares")]
    method: MethodArg,
    /// Distribution of the intervals. Intervals of the normal one are too narrow for few points.
    #[arg(long, default_value = "t")]
    quantile: QuantileArg,
    /// Confidence level of the intervals.
    #[arg(long, default_value_t = 0.95)]
    level: f64,
    /// What to do with points that are limited by a line rate or a NIC instead of the processor.
    #[arg(long, default_value = "auto")]
    regimes: RegimesArg,
    /// Unit of y if the column's name has none: ns, us, ms, s, cycles, pps, kpps or Mpps.
    #[arg(long, value_name = "UNIT")]
    y_unit: Option<String>,
    /// Clock of the processor, such as 2.5GHz. It converts cycles to time.
    #[arg(long, value_name = "HZ", value_parser = clock_hz)]
    clock: Option<f64>,
    /// Column of frame sizes. By default it is found by its name.
    #[arg(long, value_name = "COLUMN")]
    frame_column: Option<String>,
    /// Whether frame sizes include the 4 bytes of the FCS, if the table has no column fcs. Sizes in
    /// memory do not include it. Published sizes usually do.
    #[arg(long, value_name = "WITH|WITHOUT", value_parser = fcs)]
    fcs: Option<Fcs>,
    /// Bytes on the wire beyond those of each frame, preamble and gap, such as 50 for VXLAN. Line
    /// rates count them. By default common encapsulations are tried.
    #[arg(long, value_name = "BYTES", default_value_t = 0.0, value_parser = bytes)]
    overhead: f64,
    /// Column of core counts. By default it is found by its name.
    #[arg(long, value_name = "COLUMN")]
    cores_column: Option<String>,
    /// Line rate of all ports together, which limits some points. May be repeated. By default the
    /// line rates of Ethernet are tried.
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
    /// Leave them out if enough points remain to fit the terms. Otherwise keep them and warn.
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
