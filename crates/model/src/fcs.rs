//! Whether frame sizes count the frame check sequence (FCS, IEEE 802.3 §3.2.9), the last 4 bytes of
//! a frame on the wire. Testers and papers count it (RFC 2544 §9.1); programs never see it.
//! Confusing the two is an error of 4 bytes, 5 % of the smallest frame's time on the wire.
//!
//! ```text
//!   60 bytes in memory + 4 FCS = 64 bytes of frame + 20 preamble and gap = 84 bytes of line time
//! ```

use crate::table::{Table, TableError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Preamble (8 B) and inter-frame gap (12 B): what Ethernet carries on top of a frame with its FCS.
pub const FRAMING_BYTES: f64 = 20.0;
/// Bytes of the frame check sequence.
pub const FCS_BYTES: f64 = 4.0;
/// Name of the column, and of the parameter in records, that says how frame sizes are counted.
pub const COLUMN: &str = "fcs";

/// Whether frame sizes include the frame check sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fcs {
    /// Sizes include it, as on the wire.
    With,
    /// Sizes do not include it, as in memory.
    Without,
}

/// A wrong or contradictory statement about the FCS.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum FcsError {
    /// A cell of the column is neither `with` nor `without`.
    #[error(
        "line {line}, column `fcs`: `{text}`: write `with` or `without`: whether frame sizes count the FCS"
    )]
    Word {
        /// Line of the text.
        line: u64,
        /// The cell.
        text: String,
    },
    /// Two rows count differently.
    #[error(
        "line {line}: frame sizes {here} FCS after rows {before} it, a difference of 4 bytes: convert all rows to one of the two"
    )]
    Mixed {
        /// Line of the text.
        line: u64,
        /// The convention of the rows before.
        before: Fcs,
        /// The convention of this row.
        here: Fcs,
    },
    /// The caller contradicts the table or fit.
    #[error("frame sizes were recorded {recorded} FCS, not {given} it: omit --fcs")]
    Recorded {
        /// The convention of the record.
        recorded: Fcs,
        /// How the caller says it was recorded.
        given: Fcs,
    },
}

/// The size of one frame, counted in each way.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct FrameSize {
    /// As the model counts it, bytes.
    pub model_bytes: f64,
    /// With FCS, bytes.
    pub with_fcs_bytes: f64,
    /// On the wire: with FCS, preamble and inter-frame gap, bytes.
    pub wire_bytes: f64,
    /// The convention of the model.
    pub fcs: Fcs,
    /// Whether `fcs` is assumed, because neither table nor caller says it.
    pub assumed: bool,
}

impl Fcs {
    /// Returns the bytes to add to a size to include the FCS.
    pub fn missing_bytes(self) -> f64 {
        match self {
            Fcs::With => 0.0,
            Fcs::Without => FCS_BYTES,
        }
    }

    /// Returns how a table counts its sizes, if its column says so.
    pub(crate) fn of(table: &Table) -> Result<Option<Fcs>, FcsOrTable> {
        if !table.names().iter().any(|name| name == COLUMN) {
            return Ok(None);
        }
        let mut found = None;
        for (row, text) in table.texts(COLUMN)?.into_iter().enumerate() {
            let line = table.line(row);
            let here = text.parse().map_err(|()| FcsError::Word { line, text })?;
            match found {
                Some(before) if before != here => Err(FcsError::Mixed { line, before, here })?,
                _ => found = Some(here),
            }
        }
        Ok(found)
    }

    /// Combines what was recorded with what the caller says.
    ///
    /// # Errors
    /// [`FcsError::Recorded`] when they contradict each other.
    pub fn agreed(recorded: Option<Fcs>, given: Option<Fcs>) -> Result<Option<Fcs>, FcsError> {
        match (recorded, given) {
            (Some(recorded), Some(given)) if recorded != given => Err(FcsError::Recorded { recorded, given }),
            _ => Ok(recorded.or(given)),
        }
    }
}

impl FrameSize {
    /// Converts a size as a model counts it. Without a statement the FCS is assumed to be counted,
    /// as in published sizes.
    pub fn of_model(model_bytes: f64, fcs: Option<Fcs>) -> FrameSize {
        let (fcs, assumed) = (fcs.unwrap_or(Fcs::With), fcs.is_none());
        let with_fcs_bytes = model_bytes + fcs.missing_bytes();
        FrameSize { model_bytes, with_fcs_bytes, wire_bytes: with_fcs_bytes + FRAMING_BYTES, fcs, assumed }
    }
}

impl FromStr for Fcs {
    type Err = ();
    fn from_str(text: &str) -> Result<Fcs, ()> {
        match text.trim() {
            "with" => Ok(Fcs::With),
            "without" => Ok(Fcs::Without),
            _ => Err(()),
        }
    }
}

impl fmt::Display for Fcs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Fcs::With { "with" } else { "without" })
    }
}

/// Why the column cannot be read.
#[derive(Clone, PartialEq, Debug, Error)]
pub(crate) enum FcsOrTable {
    #[error(transparent)]
    Fcs(#[from] FcsError),
    #[error(transparent)]
    Table(#[from] TableError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Option<Fcs>, String> {
        Fcs::of(&Table::from_csv(text).expect("a table")).map_err(|error| error.to_string())
    }

    #[test]
    fn sixty_bytes_in_memory_are_eighty_four_of_line_time() {
        let size = FrameSize::of_model(60.0, Some(Fcs::Without));
        assert_eq!((size.with_fcs_bytes, size.wire_bytes, size.assumed), (64.0, 84.0, false));
        let published = FrameSize::of_model(64.0, None);
        assert_eq!((published.wire_bytes, published.fcs, published.assumed), (84.0, Fcs::With, true));
    }

    #[test]
    fn a_table_says_how_it_counts_or_nothing_but_not_both() {
        assert_eq!(of("p,T_ns\n64,1\n"), Ok(None));
        assert_eq!(of("p,fcs\n60,without\n64,without\n"), Ok(Some(Fcs::Without)));
        assert!(of("p,fcs\n60,without\n64,with\n").unwrap_err().starts_with("line 3: frame sizes with FCS"));
        assert!(of("p,fcs\n60,yes\n").unwrap_err().starts_with("line 2, column `fcs`: `yes`: write `with`"));
    }

    #[test]
    fn a_contradiction_of_what_was_recorded_is_refused() {
        use Fcs::{With, Without};
        assert_eq!(Fcs::agreed(None, Some(Without)), Ok(Some(Without)));
        assert_eq!(Fcs::agreed(Some(Without), None), Ok(Some(Without)));
        assert!(Fcs::agreed(Some(Without), Some(With)).is_err());
    }
}
