//! What was judged, as JUnit XML: the format that services of continuous integration read. It has
//! no standard; these are the elements that Jenkins, GitLab and GitHub's actions agree on.

use crate::xml::escaped;
use std::fmt::Write;

/// Tests that belong together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TestSuite {
    /// Its name.
    pub name: String,
    /// The tests, in their order.
    pub cases: Vec<TestCase>,
}

/// A test: one thing that was judged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestCase {
    /// What kind of test it is, one word.
    pub class: &'static str,
    /// What was judged.
    pub name: String,
    /// The judgement.
    pub outcome: TestOutcome,
    /// What was found, in words; empty for nothing.
    pub found: String,
}

/// The judgement of a test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TestOutcome {
    /// It holds.
    Passed,
    /// It does not hold, and why. Further lines are details.
    Failed(String),
    /// It is not judged, and why.
    Skipped(String),
}

impl TestSuite {
    /// Returns the tests as JUnit XML.
    pub fn xml(&self) -> String {
        let count = |is: fn(&TestOutcome) -> bool| self.cases.iter().filter(|case| is(&case.outcome)).count();
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" \
             errors=\"0\" skipped=\"{}\">\n",
            escaped(&self.name),
            self.cases.len(),
            count(|outcome| matches!(outcome, TestOutcome::Failed(_))),
            count(|outcome| matches!(outcome, TestOutcome::Skipped(_))),
        );
        for case in &self.cases {
            case.write(&mut xml);
        }
        xml + "</testsuite>\n"
    }
}

impl TestCase {
    fn write(&self, xml: &mut String) {
        let mut inside = match &self.outcome {
            TestOutcome::Passed => String::new(),
            // An attribute is one line (XML 1.0, §3.3.3).
            TestOutcome::Failed(why) => match why.split_once('\n') {
                Some((first, _)) => {
                    format!("<failure message=\"{}\">{}</failure>", escaped(first), escaped(why))
                }
                None => format!("<failure message=\"{}\"/>", escaped(why)),
            },
            TestOutcome::Skipped(why) => format!("<skipped message=\"{}\"/>", escaped(why)),
        };
        if !self.found.is_empty() {
            _ = write!(inside, "<system-out>{}</system-out>", escaped(&self.found));
        }
        _ = writeln!(
            xml,
            "  <testcase classname=\"{}\" name=\"{}\">{inside}</testcase>",
            self.class,
            escaped(&self.name)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_is_a_case_with_its_judgement() {
        let case = |name: &str, outcome: TestOutcome, found: &str| TestCase {
            class: "audit",
            name: name.to_owned(),
            outcome,
            found: found.to_owned(),
        };
        let suite = TestSuite {
            name: "a & b".to_owned(),
            cases: vec![
                case("<one>", TestOutcome::Passed, ""),
                case("two", TestOutcome::Failed("9 > 8\nrun 3".to_owned()), "9"),
                case("three", TestOutcome::Failed("late".to_owned()), ""),
                case("four", TestOutcome::Skipped("not judged".to_owned()), ""),
            ],
        };
        let lines = [
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
            "<testsuite name=\"a &amp; b\" tests=\"4\" failures=\"2\" errors=\"0\" skipped=\"1\">",
            "  <testcase classname=\"audit\" name=\"&lt;one&gt;\"></testcase>",
            "  <testcase classname=\"audit\" name=\"two\"><failure message=\"9 &gt; 8\">9 &gt; 8",
            "run 3</failure><system-out>9</system-out></testcase>",
            "  <testcase classname=\"audit\" name=\"three\"><failure message=\"late\"/></testcase>",
            "  <testcase classname=\"audit\" name=\"four\"><skipped message=\"not judged\"/></testcase>",
            "</testsuite>",
            "",
        ];
        assert_eq!(suite.xml(), lines.join("\n"));
    }
}
