//! The error of every operation of this crate.

use fastpath_record::RecordError;
use fastpath_sim::case::CaseError;
use fastpath_sim::run::RunError;
use fastpath_wire::pcap::ReadError;
use std::io;
use std::path::{Path, PathBuf};

/// Why an operation could not be carried out. The text says what, where, and what to write instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be opened, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A capture cannot be read to its end.
    #[error("{}: {source}", path.display())]
    Capture {
        /// The capture.
        path: PathBuf,
        /// What is wrong with its contents.
        source: ReadError,
    },
    /// A network description or a rule file has mistakes. One line per mistake, each with its place
    /// (`FILE:LINE:COLUMN`). Prints as the first 40 and the number of the others.
    #[error("{}", shortened(.0))]
    Mistakes(Vec<String>),
    /// An argument is outside its range, names something that does not exist, or contradicts
    /// another.
    #[error("{0}")]
    Argument(String),
    /// A table has no Pareto front.
    #[error(transparent)]
    Pareto(#[from] fastpath_report::ParetoError),
    /// A simulated machine, program or workload cannot be read or combined.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// A simulation cannot start.
    #[error(transparent)]
    Simulation(#[from] RunError),
    /// The parts of a network cannot go on with the results of the whole.
    #[error(transparent)]
    Cut(#[from] fastpath_net::CutError),
    /// The caller ended the operation.
    #[error("interrupted")]
    Interrupted,
    /// Frame accounting does not balance. This is a defect of fastpath.
    #[error("internal error: frame accounting does not balance ({0}); please report this")]
    Accounting(String),
}

/// The result of an operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The mistakes that an error prints. A list of thousands hides the first one.
const SHOWN: usize = 40;

fn shortened(lines: &[String]) -> String {
    match lines.len() {
        count if count <= SHOWN => lines.join("\n"),
        count => {
            let others = count - SHOWN;
            format!("{}\nand {others} more mistakes; `fastpath check` prints all", lines[..SHOWN].join("\n"))
        }
    }
}

impl Error {
    /// An [`Error::Argument`] with this text.
    pub fn argument(text: impl Into<String>) -> Error {
        Error::Argument(text.into())
    }

    /// Makes an [`Error::File`] of an error of the operating system.
    pub fn file(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
        move |source| Error::File { path: path.to_owned(), source }
    }
}

impl From<RecordError> for Error {
    fn from(error: RecordError) -> Error {
        match error {
            RecordError::File { path, source } => Error::File { path, source },
            other => Error::Argument(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_of_mistakes_prints_its_first_lines_and_the_number_of_the_others() {
        let mistakes = |count: usize| Error::Mistakes((1..=count).map(|line| line.to_string()).collect());
        assert_eq!(mistakes(40).to_string().lines().count(), 40);
        let long = mistakes(2_000).to_string();
        assert_eq!(long.lines().count(), 41);
        assert!(long.ends_with("40\nand 1960 more mistakes; `fastpath check` prints all"), "{long}");
    }
}
