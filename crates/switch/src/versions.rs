//! The versions of OpenFlow that a connection may use.

use crate::version::Version;
use std::fmt;
use std::str::FromStr;

/// Some versions, at least one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Versions {
    /// The bit of each version is that of its number.
    bitmap: u32,
}

/// Why a list of versions cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown OpenFlow version '{0}'; write some of 1.0, 1.3, 1.4 and 1.5, as in 1.0,1.3")]
pub struct ParseVersionsError(String);

impl Versions {
    /// Returns this version alone.
    pub fn only(version: Version) -> Versions {
        Versions { bitmap: 1 << version.number() }
    }

    /// Returns whether a version is one of them.
    pub fn contains(self, version: Version) -> bool {
        self.bitmap & 1 << version.number() != 0
    }

    /// Returns the versions, lowest first.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Version> {
        Version::ALL.into_iter().filter(move |version| self.contains(*version))
    }

    /// Returns the highest version.
    pub fn highest(self) -> Version {
        self.iter().next_back().unwrap_or_default()
    }

    /// Returns a bit for each version, as in a hello.
    pub fn bitmap(self) -> u32 {
        self.bitmap
    }
}

impl Default for Versions {
    /// 1.0 and 1.3, which controllers use most. 1.4 and 1.5 are used when they are asked for.
    fn default() -> Versions {
        let bitmap =
            [Version::V10, Version::V13].into_iter().fold(0, |bits, version| bits | 1 << version.number());
        Versions { bitmap }
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Version::name).collect();
        f.write_str(&names.join(","))
    }
}

impl FromStr for Versions {
    type Err = ParseVersionsError;

    fn from_str(text: &str) -> Result<Versions, ParseVersionsError> {
        let known = |name: &str| {
            let version = Version::ALL.into_iter().find(|version| version.name() == name.trim());
            version.ok_or_else(|| ParseVersionsError(name.to_owned()))
        };
        let bit = |bits, name: &str| Ok(bits | 1 << known(name)?.number());
        Ok(Versions { bitmap: text.split(',').try_fold(0, bit)? })
    }
}
