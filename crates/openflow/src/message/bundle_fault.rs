//! Why bundles are refused (OpenFlow 1.4 §7.5.4.18, ONF extension EXT-230).

/// The first error number of the extension.
const FIRST_ERROR: u16 = 2300;

/// Why a bundle is refused, with the number that the specification gives it (OFPBFC_).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BundleFault {
    /// It is not open.
    #[error("bundle {0} is not open")]
    BadId(u32),
    /// It is open already.
    #[error("bundle {0} is open already")]
    Exists(u32),
    /// It is closed.
    #[error("bundle {0} is closed")]
    Closed(u32),
    /// There are too many.
    #[error("a controller may have at most {0} bundles")]
    TooMany(usize),
    /// The step is unknown.
    #[error("bundle control {0} is unknown")]
    BadType(u16),
    /// The flags are unknown, or not those with which it was opened.
    #[error("bundle flags {0:#x} are unknown, or differ from those with which it was opened")]
    BadFlags(u16),
    /// A message in it does not end with it.
    #[error("a message in a bundle has the wrong length")]
    BadLen,
    /// A message in it has another transaction id.
    #[error("a message in a bundle has another transaction id")]
    BadXid,
    /// It may not be in a bundle.
    #[error("a message of this type may not be in a bundle")]
    Unsupported,
    /// The messages take too much memory.
    #[error("the bundles of a controller may have at most {0} bytes")]
    TooLarge(usize),
    /// It asks for a time.
    #[error("bundles cannot be committed at a time")]
    Scheduled,
    /// A message in it was refused.
    #[error("a message of the bundle was refused: nothing has changed")]
    Failed,
}

impl BundleFault {
    /// Returns the number of the error (an experimenter type).
    pub(crate) const fn number(self) -> u16 {
        FIRST_ERROR + self.code()
    }

    /// Returns the code in OpenFlow 1.4 (OFPBFC_).
    pub(crate) const fn code(self) -> u16 {
        match self {
            BundleFault::BadId(_) => 2,
            BundleFault::Exists(_) => 3,
            BundleFault::Closed(_) => 4,
            BundleFault::TooMany(_) => 5,
            BundleFault::BadType(_) => 6,
            BundleFault::BadFlags(_) => 7,
            BundleFault::BadLen => 8,
            BundleFault::BadXid => 9,
            BundleFault::Unsupported => 10,
            BundleFault::TooLarge(_) => 12,
            BundleFault::Failed => 13,
            BundleFault::Scheduled => 16,
        }
    }
}
