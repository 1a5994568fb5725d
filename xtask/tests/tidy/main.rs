//! The repository rules, as tests over the committed files.
//!
//! A rule is a function from the repository to its violations, each with its place and its remedy.
//! A test per rule asserts that there are none, and shows all violations. Next to each rule, a bad
//! sample proves that the rule can fail.
//!
//! The length of functions in tests is checked by clippy's `too_many_lines`. `shape.rs` keeps that
//! lint enabled, and has a shorter limit for functions outside of tests.
//!
//! Read first: `repository.rs`, then any rule.

mod banned;
mod circles;
mod commands;
mod crates;
mod documents;
mod errors;
mod extension_points;
mod language;
mod names;
mod paths;
mod repository;
mod shape;
mod source;

use repository::{Repository, Violation};

/// Fails with every violation of one rule.
fn assert_none(rule: &str, violations: &[Violation]) {
    let list: Vec<String> = violations.iter().map(Violation::to_string).collect();
    assert!(list.is_empty(), "{rule}\n{}\n", list.join("\n"));
}

#[test]
fn crate_edges_are_those_of_the_table_in_the_architecture() {
    assert_none("ARCHITECTURE.md lists every allowed edge", &crates::edges(&Repository::here()));
}

#[test]
fn files_import_each_other_in_no_circle() {
    assert_none("no circles between files", &circles::rule(&Repository::here()));
}

#[test]
fn every_crate_says_what_it_is_and_takes_the_lints_of_the_workspace() {
    assert_none("package description and [lints] workspace = true", &crates::manifests(&Repository::here()));
}

#[test]
fn crates_without_unsafe_code_forbid_it_and_the_others_keep_it_in_one_directory() {
    assert_none("unsafe code has one door per crate", &crates::unsafety(&Repository::here()));
}

#[test]
fn pure_crates_take_time_and_chance_as_arguments() {
    assert_none("pure crates touch nothing of the world", &crates::purity(&Repository::here()));
}

#[test]
fn source_files_open_with_what_they_are_and_stay_short() {
    assert_none("files of one idea, introduced", &shape::rule(&Repository::here()));
}

#[test]
fn nothing_is_left_unfinished_ignored_or_asleep() {
    assert_none("finished code, tests that run and do not sleep", &banned::rule(&Repository::here()));
}

#[test]
fn no_file_names_a_place_on_somebodys_machine() {
    assert_none("committed files work anywhere", &paths::rule(&Repository::here()));
}

#[test]
fn a_type_name_is_defined_in_at_most_two_crates() {
    assert_none("one word, one meaning", &names::rule(&Repository::here()));
}

#[test]
fn public_errors_may_get_variants() {
    assert_none("public errors are #[non_exhaustive]", &errors::rule(&Repository::here()));
}

#[test]
fn prose_uses_the_terms_of_the_field() {
    assert_none("no word that has to be learnt", &language::phrases(&Repository::here()));
}

#[test]
fn comments_are_at_most_100_columns_wide() {
    assert_none("comments of at most 100 columns", &language::width(&Repository::here()));
}

#[test]
fn lines_of_javascript_are_at_most_110_columns_wide() {
    assert_none("JavaScript of at most 110 columns", &language::scripts(&Repository::here()));
}

#[test]
fn what_is_not_something_is_said_in_english() {
    assert_none("\"is not a\", not \"is no\"", &language::negations(&Repository::here()));
}

#[test]
fn crates_have_at_most_13_000_lines() {
    assert_none("a crate is one idea", &crates::sizes(&Repository::here()));
}

#[test]
fn an_extension_is_its_files_and_a_line() {
    assert_none("a member is its files and a line", &extension_points::rule(&Repository::here()));
}

#[test]
fn the_test_command_of_the_readme_is_the_one_that_ci_runs() {
    assert_none("README.md and .ci/run agree", &commands::rule(&Repository::here()));
}

#[test]
fn links_of_documents_lead_somewhere() {
    assert_none("no dead links", &documents::links(&Repository::here()));
}

#[test]
fn the_glossary_defines_a_word_once() {
    assert_none("one word, one meaning", &documents::glossary(&Repository::here()));
}

#[test]
fn every_page_is_in_the_contents_of_the_book() {
    assert_none("docs/SUMMARY.md lists every page", &documents::contents(&Repository::here()));
}

#[test]
fn the_readme_is_read_in_a_minute() {
    assert_none("a short README with a picture and a table", &documents::readme(&Repository::here()));
}

#[test]
fn files_that_documents_name_exist() {
    assert_none("documents name files that exist", &documents::places(&Repository::here()));
}

#[test]
fn the_tables_of_the_readme_are_those_of_their_data() {
    assert_none("README.md shows the data", &documents::tables(&Repository::here()));
}

#[test]
fn every_dependency_comes_from_the_registry() {
    assert_none("dependencies from crates.io", &documents::sources(&Repository::here()));
}
