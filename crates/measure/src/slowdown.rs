//! Emulates a slower core for experiments. After each timed piece of work, the core does other work
//! until a multiple of its time has passed. To the measurement this looks like a core of a
//! correspondingly lower frequency, memory included.

use super::pipeline::Device;
use std::hint::black_box;
use std::str::FromStr;
use std::time::Instant;

/// The factor by which the core appears slower.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Slowdown(f64);

/// A factor outside 1 to 100.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[error("slowdown {0}: must be from 1 to 100")]
pub struct NoSlowdown(f64);

impl Slowdown {
    /// The core at its real speed.
    pub const NONE: Slowdown = Slowdown(1.0);

    /// Returns a slowdown of `factor`.
    ///
    /// # Errors
    /// [`NoSlowdown`] unless `factor` is from 1 to 100.
    pub fn new(factor: f64) -> Result<Slowdown, NoSlowdown> {
        if (1.0..=100.0).contains(&factor) { Ok(Slowdown(factor)) } else { Err(NoSlowdown(factor)) }
    }

    /// Returns the factor.
    pub fn factor(self) -> f64 {
        self.0
    }

    /// Does other work until the time since `since` has grown by the factor.
    pub(super) fn stretch(self, since: Instant) {
        if self == Slowdown::NONE {
            return;
        }
        let until = since + since.elapsed().mul_f64(self.0);
        let mut work = 1u64;
        while Instant::now() < until {
            work = black_box(work.wrapping_mul(0x0000_0100_0000_01b3));
        }
    }
}

impl FromStr for Slowdown {
    type Err = String;

    fn from_str(text: &str) -> Result<Slowdown, String> {
        let factor: f64 = text.parse().map_err(|_| "write a number from 1 to 100".to_owned())?;
        Slowdown::new(factor).map_err(|error| error.to_string())
    }
}

/// A device on an emulated slower core.
pub(super) struct Slowed<D> {
    pub(super) device: D,
    pub(super) slowdown: Slowdown,
}

impl<D: Device> Device for Slowed<D> {
    const STAGES: &'static [&'static str] = D::STAGES;

    fn burst(&mut self, mark: &mut impl FnMut(usize)) -> usize {
        let slowdown = self.slowdown;
        if slowdown == Slowdown::NONE {
            return self.device.burst(mark);
        }
        let mut last = Instant::now();
        self.device.burst(&mut |stage| {
            slowdown.stretch(last);
            mark(stage);
            last = Instant::now();
        })
    }

    fn holds(&self) -> bool {
        self.device.holds()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counting(usize);

    impl Device for Counting {
        const STAGES: &'static [&'static str] = &["a", "b"];

        fn burst(&mut self, mark: &mut impl FnMut(usize)) -> usize {
            (0..2).for_each(mark);
            self.0 += 1;
            0
        }
    }

    #[test]
    fn stretched_work_takes_a_multiple_of_its_time() {
        let begun = Instant::now();
        while begun.elapsed().as_micros() < 100 {}
        Slowdown::new(3.0).expect("a factor").stretch(begun);
        assert!(begun.elapsed().as_micros() >= 300);
    }

    #[test]
    fn a_slowed_device_does_the_same_work_and_marks_the_same_stages() {
        for factor in [1.0, 2.0] {
            let mut slowed =
                Slowed { device: Counting(0), slowdown: Slowdown::new(factor).expect("a factor") };
            let mut marks = Vec::new();
            slowed.turn(&mut |stage| marks.push(stage));
            assert_eq!((marks, slowed.device.0), (vec![0, 1], 1));
        }
    }

    #[test]
    fn factors_out_of_range_are_refused() {
        for factor in [0.5, 101.0, f64::NAN, -1.0] {
            assert!(Slowdown::new(factor).is_err(), "{factor}");
        }
    }
}
