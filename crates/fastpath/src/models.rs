//! Models of files: fits of tables, saved fits, published constants, indices of
//! platforms, assignments of tasks.

use crate::error::{Error, Result};
use crate::records::{at, read_fit, read_platform, read_platforms, read_table, read_tasks};
use fastpath_model::assign::{Assignment, NetworkProcessor, best};
use fastpath_model::check::{Check, check, elsewhere, half};
use fastpath_model::cores::CoresQuery;
use fastpath_model::fcs::Fcs;
use fastpath_model::fit::{Fit, FitOptions, fit};
use fastpath_model::index::{Variant, common_length, index, predict_rate};
use fastpath_model::model::Model;
use fastpath_model::output::{CoresOutput, FitOutput, IndexOutput};
use fastpath_model::predict::Transfer;
use fastpath_model::publications::linkem::{self, Comparison};
use fastpath_model::publications::{netcope, scion};
use fastpath_model::{Terms, arguments};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// A model and its origin.
pub struct SourcedModel {
    /// The model.
    pub model: Model,
    /// The fit that it was made of, if any.
    pub fit: Option<Fit>,
    /// The origin of the model.
    pub description: String,
}

fn refuse(error: impl Display) -> Error {
    Error::Argument(error.to_string())
}

impl SourcedModel {
    /// The constants of Netcope 2017.
    pub fn netcope() -> SourcedModel {
        let description = "Netcope 2017: 38.6 + 0.101·p + 4.07·h ns".to_owned();
        SourcedModel { model: netcope::model(), fit: None, description }
    }

    /// A model of constants in ns by term: `const=38.6,p=0.101,h=4.07`.
    ///
    /// # Errors
    /// What is wrong in the text.
    pub fn constants(text: &str, fcs: Option<Fcs>) -> Result<SourcedModel> {
        let wrong = |error: &dyn Display| refuse(format!("--constants: {error}"));
        let given = arguments::point(text).map_err(|error| wrong(&error))?;
        let terms = given.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(",");
        let values: Vec<f64> = given.iter().map(|(_, value)| *value).collect();
        let terms: Terms = terms.parse().map_err(|error| wrong(&error))?;
        let model = Model { fcs, ..Model::from_constants(terms, &values, 1e-9).map_err(refuse)? };
        Ok(SourcedModel { model, fit: None, description: format!("constants given, ns: {text}") })
    }

    /// Fits `y` of a table by `terms`.
    ///
    /// # Errors
    /// A table that cannot be read or fitted.
    pub fn fitted(path: &Path, y: &str, terms: &str, options: &FitOptions) -> Result<SourcedModel> {
        Ok(SourcedModel::of(fit(&read_table(path)?, y, terms, options).map_err(at(path))?))
    }

    /// Reads a fit saved from `fastpath model fit --json`. Units and FCS of `options` apply to it.
    ///
    /// # Errors
    /// A file that holds no fit, and options that contradict it.
    pub fn saved(path: &Path, options: &FitOptions) -> Result<SourcedModel> {
        let mut found = read_fit(path)?;
        if let Some(unit) = options.y_unit {
            found = found.with_unit(unit, options.clock_hz).map_err(at(path))?;
        } else if let Some(clock_hz) = options.clock_hz {
            found = found.with_clock(clock_hz);
        }
        let agreed = Fcs::agreed(found.fcs, options.hints.fcs);
        found.fcs = agreed.map_err(|error| at(path)(format!("--fcs: {error}")))?;
        Ok(SourcedModel::of(found))
    }

    fn of(fit: Fit) -> SourcedModel {
        let description = format!("{} by {}, fitted to {} points", fit.y, fit.terms, fit.n);
        SourcedModel { model: fit.model(), fit: Some(fit), description }
    }
}

/// The points that a fit is checked against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestPoints<'p> {
    /// None.
    None,
    /// Half of the rows of the table. The other half is fitted.
    Half,
    /// The rows of another table.
    File(&'p Path),
}

/// Fits `y` of a table by `terms`, and checks the fit.
///
/// # Errors
/// Tables that cannot be read, fitted or compared.
pub fn fit_table(
    path: &Path,
    y: &str,
    terms: &str,
    options: &FitOptions,
    test: TestPoints<'_>,
) -> Result<FitOutput> {
    let whole = read_table(path)?;
    if test == TestPoints::Half {
        let (fit, check) = half(&whole, y, terms, options).map_err(at(path))?;
        return Ok(FitOutput { fit, check: Some(check) });
    }
    let fit = fit(&whole, y, terms, options).map_err(at(path))?;
    let check = match test {
        TestPoints::File(other) => Some(check_against(&fit, other, options, None)?),
        _ => None,
    };
    Ok(FitOutput { fit, check })
}

/// Checks a fit against the rows of a table, measured on another platform if there is a `transfer`.
///
/// # Errors
/// A table that cannot be read or compared.
pub fn check_against(
    fit: &Fit,
    path: &Path,
    options: &FitOptions,
    transfer: Option<&Transfer>,
) -> Result<Check> {
    let table = read_table(path)?;
    match transfer {
        None => check(fit, &table, options).map_err(at(path)),
        Some(transfer) => elsewhere(fit, &table, options, transfer).map_err(at(path)),
    }
}

/// The cores that links need, and the values of columns that were given.
pub struct LinkCores {
    /// A row for each link.
    pub output: CoresOutput,
    /// The values of the other columns.
    pub at: Vec<(String, f64)>,
}

impl LinkCores {
    /// Computes the cores that `query` needs by a model.
    ///
    /// # Errors
    /// Numbers out of range, and a model that does not fit the query.
    pub fn new(source: SourcedModel, query: CoresQuery) -> Result<LinkCores> {
        let output = CoresOutput::new(source.description, &source.model, &query).map_err(refuse)?;
        Ok(LinkCores { output, at: query.at })
    }
}

/// Which index to compute.
#[derive(Clone, Debug)]
pub struct IndexQuestion {
    /// Files of platforms. If there are none: the platforms of Hugly 2024.
    pub files: Vec<PathBuf>,
    /// Choice of M and N.
    pub variant: Variant,
    /// Packet length in bytes, if the platforms do not state it.
    pub length: Option<f64>,
    /// The platform to predict the rate on: `FILE` or `FILE:NAME`.
    pub to: Option<String>,
}

/// SCION's index of platforms.
pub struct IndexAnswer {
    /// The index, and the predicted rate.
    pub output: IndexOutput,
    /// The platform of the predicted rate.
    pub platform: Option<String>,
}

impl IndexQuestion {
    /// Computes the index.
    ///
    /// # Errors
    /// Files that cannot be read, platforms that cannot be compared.
    pub fn answer(&self) -> Result<IndexAnswer> {
        if let Some(length) = self.length.filter(|length| !(length.is_finite() && *length > 0.0)) {
            return Err(refuse(format!("--length {length}: must be above 0")));
        }
        let (platforms, source) = match self.files.is_empty() {
            true => (scion::platforms().to_vec(), "the platforms of Hugly 2024".to_owned()),
            false => {
                let all = self.files.iter().map(|path| read_platforms(path)).collect::<Result<Vec<_>>>()?;
                let names: Vec<String> = self.files.iter().map(|f| f.display().to_string()).collect();
                (all.concat(), names.join(", "))
            }
        };
        let wrong = |error: &dyn Display| refuse(format!("{source}: {error}"));
        let length = common_length(&platforms, self.length).map_err(|error| wrong(&error))?;
        let index = index(&platforms, length, self.variant).map_err(|error| wrong(&error))?;
        let mut answer =
            IndexAnswer { output: IndexOutput { index, source, predicted_pps: None }, platform: None };
        if let Some(text) = &self.to {
            let platform = read_platform(text)?;
            if platform.score_kind != platforms[0].score_kind {
                return Err(refuse(format!(
                    "`{}` carries a score of another kind: measure both with the same benchmark",
                    platform.name
                )));
            }
            if let Some(own) = platform.packet_bytes.filter(|own| *own != length) {
                return Err(refuse(format!(
                    "`{}` has packets of {own} bytes, and the index is for packets of {length}: write --length {own}, \
                     or a platform without a packet length",
                    platform.name
                )));
            }
            let rate = predict_rate(&platforms, length, self.variant, &platform).map_err(refuse)?;
            (answer.output.predicted_pps, answer.platform) = (Some(rate), Some(platform.name));
        }
        Ok(answer)
    }
}

/// Assignments of tasks to engines.
pub enum Assignments {
    /// The tasks and the processor of Joglekar 2004: the published assignment and the best ones.
    Published(Box<Comparison>),
    /// The best assignment of other tasks, or on another processor.
    Best(Assignment),
}

impl Assignments {
    /// Finds the best assignment of the tasks of a table (see [`read_tasks`]), or of those of
    /// Joglekar 2004. On the published processor the published assignment is shown too.
    ///
    /// # Errors
    /// A table that cannot be read, numbers out of range, code that fits nowhere.
    pub fn find(tasks: Option<&Path>, processor: &NetworkProcessor) -> Result<Assignments> {
        if tasks.is_none() && *processor == linkem::ixp1200() {
            return Ok(Assignments::Published(Box::new(linkem::comparison())));
        }
        let tasks = tasks.map_or_else(|| Ok(linkem::tasks()), read_tasks)?;
        best(&tasks, processor).map(Assignments::Best).map_err(refuse)
    }
}
