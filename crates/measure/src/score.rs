//! Computes an integer score per core, in iterations per second. It mixes the four workloads of
//! EEMBC CoreMark (a linked list, a small matrix, a state machine over text, a CRC over all of it)
//! in an independent implementation.
//!
//! It is *not* CoreMark: its scores cannot be compared with CoreMark scores, and records keep the
//! two apart.

use super::{Effort, Slowdown, rounds};
use std::hint::black_box;
use std::time::{Duration, Instant};

const NODES: usize = 64;
const SIDE: usize = 12;
const ITERATIONS: u32 = 50;

/// Returns the iterations per second of the calling thread's core. It is the best of many short
/// rounds: a host stall makes a round slower but never faster.
pub(super) fn score(effort: Effort, slowdown: Slowdown) -> f64 {
    let span = match effort {
        Effort::Quick => Duration::from_millis(150),
        Effort::Full => Duration::from_secs(2),
    };
    let mut bench = Bench::new(black_box(0x3415));
    let times = rounds(span, 5, || {
        let start = Instant::now();
        for _ in 0..ITERATIONS {
            black_box(bench.iterate());
        }
        slowdown.stretch(start);
    });
    let best = times.into_iter().fold(f64::INFINITY, f64::min);
    f64::from(ITERATIONS) * 1e9 / best
}

/// The state of the benchmark; each iteration depends on the previous one.
struct Bench {
    next: [u8; NODES],
    data: [u16; NODES],
    matrix: [[i32; SIDE]; SIDE],
    crc: u16,
}

impl Bench {
    fn new(seed: u16) -> Bench {
        let mut value = seed;
        let mut draw = || {
            value = value.wrapping_mul(0x5851).wrapping_add(0x2f6b);
            value
        };
        Bench {
            next: [0; NODES],
            data: [(); NODES].map(|()| draw()),
            matrix: [(); SIDE].map(|()| [(); SIDE].map(|()| i32::from(draw() as i16))),
            crc: 0,
        }
    }

    fn iterate(&mut self) -> u16 {
        let list = self.list();
        let matrix = self.matrix();
        let states = self.states(list ^ matrix);
        for value in [list, matrix, states] {
            self.crc = crc16(value, self.crc);
        }
        self.data[usize::from(self.crc) % NODES] ^= self.crc;
        self.crc
    }

    /// Links the nodes, sorts the list by merging, and walks it.
    fn list(&mut self) -> u16 {
        const END: u8 = NODES as u8;
        for (i, next) in self.next.iter_mut().enumerate() {
            *next = i as u8 + 1;
        }
        let mut head = 0u8;
        let mut width = 1;
        // Bottom-up merge sort of a singly linked list.
        while width < NODES {
            let (mut from, mut tail, mut sorted) = (head, END, END);
            while from != END {
                let (mut left, mut right, mut left_len) = (from, from, 0);
                while left_len < width && right != END {
                    right = self.next[usize::from(right)];
                    left_len += 1;
                }
                let mut right_len = width;
                while left_len > 0 || (right_len > 0 && right != END) {
                    let take_left = left_len > 0
                        && (right_len == 0
                            || right == END
                            || self.data[usize::from(left)] <= self.data[usize::from(right)]);
                    let node = if take_left { left } else { right };
                    if take_left {
                        left = self.next[usize::from(left)];
                        left_len -= 1;
                    } else {
                        right = self.next[usize::from(right)];
                        right_len -= 1;
                    }
                    if tail == END {
                        sorted = node
                    } else {
                        self.next[usize::from(tail)] = node
                    }
                    tail = node;
                }
                from = right;
            }
            if tail != END {
                self.next[usize::from(tail)] = END;
            }
            head = sorted;
            width *= 2;
        }
        let (mut at, mut sum) = (head, 0u16);
        while at != END {
            sum = sum.rotate_left(1) ^ self.data[usize::from(at)];
            at = self.next[usize::from(at)];
        }
        sum
    }

    /// Multiplies the matrix with itself and folds the product into it.
    fn matrix(&mut self) -> u16 {
        let a = self.matrix;
        let mut sum = 0i32;
        for (i, row) in self.matrix.iter_mut().enumerate() {
            for (j, cell) in row.iter_mut().enumerate() {
                let product = (0..SIDE).fold(0i32, |s, k| s.wrapping_add(a[i][k].wrapping_mul(a[k][j])));
                sum = sum.wrapping_add(product);
                *cell ^= i32::from((product >> 5) as i16);
            }
        }
        (sum ^ (sum >> 16)) as u16
    }

    /// Parses numbers from a text in which `seed` corrupts some bytes.
    fn states(&self, seed: u16) -> u16 {
        #[derive(Clone, Copy)]
        enum State {
            Start,
            Integer,
            Fraction,
            Exponent,
            Invalid,
        }
        const TEXT: &[u8] =
            b"5012,1234.500,-110.700,+0.64400,T0.3e-1F,-T.T++Tq,1T3.4e4z,34.0e-T^,6546,1.9e+8,";
        let mut counts = [0u16; 5];
        let mut state = State::Start;
        for (i, &byte) in TEXT.iter().enumerate() {
            let byte = if i as u16 % 16 == seed % 16 { byte ^ (seed >> 12) as u8 } else { byte };
            state = match (state, byte) {
                (_, b',') => State::Start,
                (State::Start | State::Integer, b'0'..=b'9') => State::Integer,
                (State::Start, b'+' | b'-') => State::Integer,
                (State::Start | State::Integer, b'.') => State::Fraction,
                (State::Fraction, b'0'..=b'9') => State::Fraction,
                (State::Integer | State::Fraction, b'e' | b'E') => State::Exponent,
                (State::Exponent, b'0'..=b'9' | b'+' | b'-') => State::Exponent,
                _ => State::Invalid,
            };
            counts[state as usize] += 1;
        }
        counts.iter().fold(seed, |sum, &count| crc16(count, sum))
    }
}

/// CRC-16/ARC, bit by bit as CoreMark computes it: the work is intended.
fn crc16(value: u16, mut crc: u16) -> u16 {
    for bit in 0..16 {
        let feedback = (crc ^ (value >> bit)) & 1;
        crc >>= 1;
        if feedback == 1 {
            crc ^= 0xa001;
        }
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_matches_the_published_check_value() {
        // CRC-16/ARC of "123456789" is 0xbb3d. The input is read in 16-bit words, so the test adds
        // the last byte itself.
        let words = b"12345678".chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]]));
        let crc = words.fold(0, |crc, word| crc16(word, crc));
        let last = (0..8).fold(crc, |crc, bit| {
            let feedback = (crc ^ (u16::from(b'9') >> bit)) & 1;
            (crc >> 1) ^ if feedback == 1 { 0xa001 } else { 0 }
        });
        assert_eq!(last, 0xbb3d);
    }

    #[test]
    fn the_list_is_walked_in_sorted_order() {
        let mut bench = Bench::new(7);
        let mut sorted = bench.data;
        sorted.sort_unstable();
        let expected = sorted.iter().fold(0u16, |sum, data| sum.rotate_left(1) ^ data);
        assert_eq!(bench.list(), expected);
    }

    #[test]
    fn equal_seeds_give_equal_iterations() {
        let run = |seed| {
            let mut bench = Bench::new(seed);
            (0..100).map(|_| bench.iterate()).collect::<Vec<_>>()
        };
        assert_eq!(run(5), run(5));
        assert_ne!(run(5), run(6));
    }

    #[test]
    fn a_score_exceeds_a_hundred_iterations_per_second() {
        assert!(score(Effort::Quick, Slowdown::NONE) > 100.0);
    }
}
