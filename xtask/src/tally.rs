//! Reads the output of `cargo test -- --show-output`, and of pytest, and counts.
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

    /// Takes the whole output of pytest. A run without a summary is a failure.
    pub(crate) fn pytest(&mut self, output: &str, success: bool) {
        let summary = output.lines().rev().find(|line| line.contains(" in ")).unwrap_or_default();
        let mut failed = 0;
        for part in summary.trim_matches(['=', ' ']).split(" in ").next().unwrap_or_default().split(", ") {
            match part.split_once(' ').and_then(|(count, what)| Some((count.parse::<usize>().ok()?, what))) {
                Some((count, "passed")) => self.passed += count,
                Some((count, "failed" | "error" | "errors")) => failed += count,
                _ => {}
            }
        }
        // With -rs: `SKIPPED [1] FILE:LINE: why`.
        for reason in output.lines().filter_map(|line| line.strip_prefix("SKIPPED [")) {
            let (count, why) = reason.split_once("] ").unwrap_or(("1", reason));
            let count = count.parse().unwrap_or(1);
            // The summary counts what was skipped as passed; pytest does not.
            self.passed += count;
            self.skipped.extend(std::iter::repeat_n(why.to_owned(), count));
        }
        self.failed += if success { failed } else { failed.max(1) };
    }

    /// Notes tests that were not run at all.
    pub(crate) fn skip(&mut self, reason: &str) {
        self.passed += 1;
        self.skipped.push(reason.to_owned());
    }

    /// Whether a test has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed > 0
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

    #[test]
    fn the_summary_of_pytest_is_counted() {
        let mut tally = Tally::default();
        let text = "..s.F\n=== short test summary info ===\nSKIPPED [2] tests/lab.py:7: no root\n\
                    1 failed, 12 passed, 2 skipped in 3.10s\n";
        tally.pytest(text, false);
        assert_eq!(tally.summary(), "12 passed, 1 failed, 2 skipped");
        assert_eq!(tally.skipped()[1], "tests/lab.py:7: no root");
        tally.pytest("no tests: the interpreter crashed", false);
        assert!(tally.summary().contains(" 2 failed,"));
    }
}
