//! The findings of an experiment as tests, for JUnit XML.

use super::Findings;
use super::plan::Experiment;
use fastpath_record::{TestCase, TestOutcome, TestSuite};

/// Returns the findings as tests: one for each expectation, and one for each run that is not
/// usable.
pub fn tests(plan: &Experiment, findings: &Findings) -> TestSuite {
    let case = |name: String, outcome: TestOutcome| TestCase {
        class: "experiment",
        name,
        outcome,
        found: String::new(),
    };
    let expectations = findings.judged.iter().map(|judged| {
        let outcome = match judged.runs {
            0 => TestOutcome::Failed("no run was compared".to_owned()),
            _ if judged.holds() => TestOutcome::Passed,
            _ => TestOutcome::Failed(judged.broken.join("\n")),
        };
        case(judged.expectation.clone(), outcome)
    });
    let left_out = findings.runs.iter().filter_map(|run| {
        let why = run.why_left_out()?.to_owned();
        Some(case(format!("run {} ({})", run.run, run.condition_words()), TestOutcome::Failed(why)))
    });
    TestSuite { name: plan.name.clone(), cases: expectations.chain(left_out).collect() }
}
