//! The words that say how to fit, shared by all commands that fit a table.

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use fastpath_model::column_unit::ColumnUnit;
use fastpath_model::fcs::Fcs;
use fastpath_model::fit::{FitOptions, Method, Quantile, Regimes, Weighting};
use fastpath_model::regime::CapHints;
use fastpath_units::Rate;

/// How to fit.
#[derive(Args)]
pub(super) struct Fitting {
    /// How much each point counts: equal, relative (by 1/y²), or a column of weights (1/variance);
    /// otherwise equal, and relative where the terms are chosen (auto).
    #[arg(long, value_name = "WEIGHTS")]
    weights: Option<String>,
    /// Fit only rows where a column reads so (may be repeated: all must hold).
    #[arg(long, value_name = "COLUMN=TEXT", value_parser = pair)]
    only: Vec<(String, String)>,
    /// How the coefficients are found.
    #[arg(long, default_value = "least-squares")]
    method: MethodWord,
    /// Which quantile widens the intervals; the normal one is too narrow for few points.
    #[arg(long, default_value = "t")]
    quantile: QuantileWord,
    /// Confidence level of the intervals.
    #[arg(long, default_value_t = 0.95)]
    level: f64,
    /// What to do with points that a line rate or a NIC limits, not the processor.
    #[arg(long, default_value = "auto")]
    regimes: RegimesWord,
    /// The unit of y, if the column's name carries none: ns, us, ms, s, cycles, pps, Mpps.
    #[arg(long, value_name = "UNIT")]
    y_unit: Option<String>,
    /// The column of frame sizes; otherwise found by its name.
    #[arg(long, value_name = "COLUMN")]
    frame_column: Option<String>,
    /// Whether frame sizes count the 4 bytes of the FCS, where the table does not say (column fcs;
    /// records do): sizes in memory do not, published ones usually do.
    #[arg(long, value_name = "WITH|WITHOUT", value_parser = fcs)]
    fcs: Option<Fcs>,
    /// The column of core counts; otherwise found by its name.
    #[arg(long, value_name = "COLUMN")]
    cores_column: Option<String>,
    /// A line rate known to limit some points, all ports together (may be repeated); otherwise
    /// Ethernet's are tried.
    #[arg(long, value_name = "RATE")]
    line_rate: Vec<Rate>,
}

#[derive(Clone, Copy, ValueEnum)]
enum MethodWord {
    #[value(alias = "ols", alias = "wls")]
    LeastSquares,
    /// Huber's M-estimator: outliers count less.
    #[value(alias = "robust")]
    Huber,
}

#[derive(Clone, Copy, ValueEnum)]
enum QuantileWord {
    /// Student's t.
    T,
    Normal,
}

#[derive(Clone, Copy, ValueEnum)]
enum RegimesWord {
    /// Leave them out if the rest can carry the terms, otherwise keep them and warn.
    Auto,
    /// Leave them out or refuse.
    Split,
    /// Do not look for them.
    Off,
}

impl Fitting {
    /// What the caller says of frame sizes.
    pub(super) fn fcs(&self) -> Option<Fcs> {
        self.fcs
    }

    pub(super) fn options(&self, terms: &str) -> anyhow::Result<FitOptions> {
        let y_unit = match &self.y_unit {
            None => None,
            Some(text) => match ColumnUnit::parse(text) {
                None => bail!("--y-unit {text}: no known unit: use ns, us, ms, s, cycles, pps, kpps or Mpps"),
                known => known,
            },
        };
        Ok(FitOptions {
            method: match self.method {
                MethodWord::LeastSquares => Method::LeastSquares,
                MethodWord::Huber => Method::Huber,
            },
            weighting: match self.weights.as_deref() {
                None if terms.trim_start().starts_with("auto:") => Weighting::Relative,
                None | Some("equal") => Weighting::Equal,
                Some("relative") => Weighting::Relative,
                Some(column) => Weighting::Column(column.to_owned()),
            },
            quantile: match self.quantile {
                QuantileWord::T => Quantile::StudentT,
                QuantileWord::Normal => Quantile::Normal,
            },
            level: self.level,
            regimes: match self.regimes {
                RegimesWord::Auto => Regimes::Auto,
                RegimesWord::Split => Regimes::Split,
                RegimesWord::Off => Regimes::Off,
            },
            only: self.only.clone(),
            hints: CapHints {
                frame: self.frame_column.clone(),
                fcs: self.fcs,
                cores: self.cores_column.clone(),
                line_bps: self.line_rate.iter().map(|rate| rate.as_bps() as f64).collect(),
            },
            y_unit,
        })
    }
}

fn fcs(text: &str) -> Result<Fcs, String> {
    text.parse().map_err(|()| "write with or without".to_owned())
}

/// `COLUMN=TEXT`
fn pair(text: &str) -> Result<(String, String), String> {
    let (column, value) = text.split_once('=').ok_or("write COLUMN=TEXT")?;
    Ok((column.trim().to_owned(), value.trim().to_owned()))
}

/// The values of columns at one point: `p=64,h=10`.
pub(super) fn point(text: &str) -> anyhow::Result<Vec<(String, f64)>> {
    let values = text.split(',').map(|part| {
        let (name, value) = part
            .split_once('=')
            .with_context(|| format!("`{part}`: write COLUMN=VALUE,…, such as p=64,h=10"))?;
        let number: f64 =
            value.trim().parse().with_context(|| format!("`{part}`: `{value}` is no number"))?;
        anyhow::ensure!(number.is_finite(), "`{part}`: give a finite number");
        Ok((name.trim().to_owned(), number))
    });
    values.collect()
}

/// The same for a command line's words.
pub(super) fn point_text(text: &str) -> Result<Vec<(String, f64)>, String> {
    point(text).map_err(|error| format!("{error:#}"))
}
