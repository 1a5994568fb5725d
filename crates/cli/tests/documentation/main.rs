//! Runs the shell blocks of README.md and of the pages below `docs/`, checks their networks, and
//! compares the output that they show.
#![cfg(target_os = "linux")]

mod blocks;
#[path = "../common/mod.rs"]
mod common;
mod session;

use session::Session;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Pages that run at the same time.
const SESSIONS: usize = 2;
/// Directories without instructions for readers: decisions, which name old commits.
const EXEMPT: &[&str] = &["docs/decisions"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The pages, from the root of the repository.
fn pages(root: &Path) -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    let mut directories = vec!["docs".to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root.join(&directory)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{directory}/{}", entry.file_name().to_string_lossy());
            match entry.file_type().unwrap().is_dir() {
                true if !EXEMPT.contains(&&*path) => directories.push(path),
                false if path.ends_with(".md") => pages.push(path),
                _ => {}
            }
        }
    }
    pages.sort();
    pages
}

/// Whether labs can run: a lab of one host comes up.
fn may_run_labs() -> bool {
    let program = env!("CARGO_BIN_EXE_fastpath");
    let directory = std::env::temp_dir().join(format!("fastpath-docs-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let spec = directory.join("probe.toml");
    fs::write(&spec, "[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\n").unwrap();
    let mut command = Command::new(program);
    command.args(["lab", "run"]).arg(&spec).args(["--on", "a", "--", "true"]);
    let output = command.env("FASTPATH_STATE_DIR", directory.join("state")).output().unwrap();
    let _ = fs::remove_dir_all(&directory);
    output.status.success()
}

#[test]
fn the_commands_and_networks_of_the_documentation_work_and_print_what_it_shows() {
    let root = root();
    let queue = Mutex::new(pages(&root));
    let may_run_labs = may_run_labs();
    let mistakes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..SESSIONS {
            scope.spawn(|| {
                loop {
                    let page = queue.lock().unwrap().pop();
                    let Some(page) = page else { break };
                    let text = fs::read_to_string(root.join(&page)).unwrap();
                    let found = Session::new(&page, &root, may_run_labs).run(&text);
                    mistakes.lock().unwrap().extend(found);
                }
            });
        }
    });
    let mistakes = mistakes.into_inner().unwrap();
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn a_block_that_fails_prints_something_else_or_has_no_language_is_found() {
    let page = "```sh\nfalse\n```\n```sh\necho 7 ms\n```\n```text,like\n8.5 ms\n```\n```sh\necho 7\n```\n\
                ```text,output\n8\n```\n```\nplain\n```\n```toml\n[host.a]\nport = 1\n```\n```sh,exit=3\nexit 3\n```\n";
    let mistakes = Session::new("page.md", &root(), false).run(page);
    let places: Vec<_> = mistakes.iter().map(|mistake| mistake.split(": ").next().unwrap()).collect();
    assert_eq!(places, ["page.md:1", "page.md:13", "page.md:16", "page.md:19"], "{mistakes:#?}");
}
