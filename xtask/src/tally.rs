//! Reads the output of `cargo test -- --show-output` and counts.
//!
//! A test that lacks a privilege or a program prints `SKIPPED: name: why` to standard error and
//! returns. The test harness counts it as passed; this module counts it as skipped and shows it.

/// The counts so far.
#[derive(Default)]
pub(crate) struct Tally {
    passed: usize,
    failed: usize,
    skipped: Vec<String>,
    in_successes: bool,
}

impl Tally {
    /// Takes one line of output. Returns false for output of successful tests, which is not shown.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        if let Some((passed, failed)) = result_line(line) {
            self.passed += passed;
            self.failed += failed;
        }
        if let Some(reason) = line.strip_prefix("SKIPPED: ") {
            self.skipped.push(reason.to_owned());
            return false;
        }
        self.in_successes = match line {
            "successes:" => true,
            "failures:" => false,
            _ => self.in_successes && !line.starts_with("test result: "),
        };
        !self.in_successes
    }

    /// Ends the count. A test program that ended without a result line is a failure.
    pub(crate) fn end(&mut self, success: bool) {
        if !success && self.failed == 0 {
            self.failed = 1;
        }
    }

    /// The skipped tests, as `name: why`.
    pub(crate) fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// The closing line; scripts read it.
    pub(crate) fn summary(&self) -> String {
        let passed = self.passed.saturating_sub(self.skipped.len());
        format!("{passed} passed, {} failed, {} skipped", self.failed, self.skipped.len())
    }
}

/// `test result: ok. 12 passed; 0 failed; …` as (passed, failed).
fn result_line(line: &str) -> Option<(usize, usize)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut numbers = counts.split("; ").map(|part| part.split_once(' ')?.0.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 2 tests
test tests::pings ... ok
test tests::adds ... ok

successes:

---- tests::pings stdout ----
SKIPPED: pings: no permission to make a namespace
chatter

successes:
    tests::adds
    tests::pings

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

running 2 tests

successes:

---- tests::right stdout ----
chatter

failures:

---- tests::wrong stdout ----
assertion failed

failures:
    tests::wrong

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";

    #[test]
    fn results_are_summed_and_a_skipped_test_has_not_passed() {
        let mut tally = Tally::default();
        let shown: Vec<&str> = OUTPUT.lines().filter(|line| tally.line(line)).collect();
        tally.end(false);
        assert_eq!(tally.summary(), "2 passed, 1 failed, 1 skipped");
        assert_eq!(tally.skipped(), ["pings: no permission to make a namespace"]);
        assert!(!shown.contains(&"chatter"), "{shown:?}");
        assert!(shown.contains(&"assertion failed"), "{shown:?}");
    }

    #[test]
    fn a_run_that_ends_badly_without_a_failed_test_is_a_failure() {
        let mut tally = Tally::default();
        tally.end(false);
        assert_eq!(tally.summary(), "0 passed, 1 failed, 0 skipped");
    }
}
