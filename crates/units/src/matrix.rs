//! The points of a matrix: every combination of the values of some axes, numbered from 0, and the
//! parts of it that several processes do.

use std::fmt;
use std::str::FromStr;

/// Returns the index of the value on each axis at a point. `counts` has the number of values of
/// each axis; the last axis varies fastest.
///
/// ```
/// use fastpath_units::matrix::indices;
/// assert_eq!(indices(0, &[2, 3]), [0, 0]);
/// assert_eq!(indices(5, &[2, 3]), [1, 2]);
/// ```
pub fn indices(point: u64, counts: &[u64]) -> Vec<u64> {
    let mut rest = point;
    let mut indices: Vec<u64> = Vec::with_capacity(counts.len());
    for count in counts.iter().rev() {
        indices.push(rest % count);
        rest /= count;
    }
    indices.reverse();
    indices
}

/// One of n parts of a matrix: the points whose number modulo n is i. `0/n` is the same as `n/n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    i: u64,
    n: u64,
}

/// Not a part of a matrix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("shard {0:?}: write I/N with I from 1 to N")]
pub struct ParseShardError(String);

impl Shard {
    /// Returns whether `point` belongs to this part.
    pub fn has(self, point: u64) -> bool {
        point % self.n == self.i % self.n
    }
}

impl Default for Shard {
    /// The whole matrix.
    fn default() -> Shard {
        Shard { i: 0, n: 1 }
    }
}

impl FromStr for Shard {
    type Err = ParseShardError;

    fn from_str(text: &str) -> Result<Shard, ParseShardError> {
        let parsed =
            text.split_once('/').and_then(|(i, n)| Some(Shard { i: i.parse().ok()?, n: n.parse().ok()? }));
        parsed.filter(|s| s.n > 0 && s.i <= s.n).ok_or_else(|| ParseShardError(text.to_owned()))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.i, self.n)
    }
}

/// Returns the checksum of a row of texts: 16 hexadecimal digits. It changes with any text.
pub fn checksum(row: &[String]) -> String {
    // No text contains the separator.
    format!("{:016x}", fnv1a(row.join("\u{1f}").as_bytes()))
}

/// FNV-1a, 64 bits.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_divide_the_points_whether_counted_from_0_or_1() {
        for shards in [["1/3", "2/3", "3/3"], ["0/3", "1/3", "2/3"]] {
            let shards = shards.map(|s| s.parse::<Shard>().unwrap());
            for point in 0..100 {
                assert_eq!(shards.iter().filter(|s| s.has(point)).count(), 1);
            }
        }
        for bad in ["", "3", "4/3", "1/0", "-1/2", "a/b"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
        let shard: Shard = "2/7".parse().unwrap();
        assert_eq!(shard.to_string().parse(), Ok(shard));
        assert_eq!(Shard::default().to_string().parse(), Ok(Shard::default()));
    }

    #[test]
    fn every_point_has_other_indices() {
        let points: std::collections::BTreeSet<Vec<u64>> = (0..24).map(|n| indices(n, &[2, 3, 4])).collect();
        assert_eq!(points.len(), 24);
        assert_eq!(points.last(), Some(&vec![1, 2, 3]));
    }

    #[test]
    fn a_checksum_is_that_of_fnv() {
        // Noll's test vectors: "" and "foobar".
        assert_eq!((fnv1a(b""), fnv1a(b"foobar")), (0xcbf2_9ce4_8422_2325, 0x8594_4171_f739_67e8));
        assert_ne!(checksum(&["a".to_owned(), "b".to_owned()]), checksum(&["ab".to_owned()]));
    }
}
