//! The blocks of one page, run in order in one directory, as a reader would.

use super::blocks::{self, Block};
use crate::common::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fastpath");
/// How long a block may take, in seconds: all take a few.
const LIMIT_S: &str = "100";

/// What a script did.
struct ScriptRun {
    code: i32,
    output: String,
    errors: String,
}

impl ScriptRun {
    fn all(&self) -> String {
        format!("{}{}", self.output, self.errors)
    }
}

/// The page that is run: its directory, which is removed on drop after its labs.
pub(crate) struct Session<'p> {
    page: &'p str,
    directory: PathBuf,
    may_run_labs: bool,
    /// The standard output of the last block that ran.
    output: Option<String>,
    /// What is wrong, with its place.
    mistakes: Vec<String>,
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = entry.map(|entry| (entry.path(), to.join(entry.file_name()))).unwrap();
        if path.is_dir() {
            copy_tree(&path, &to);
        } else {
            fs::copy(path, to).unwrap();
        }
    }
}

impl<'p> Session<'p> {
    /// Makes a directory with the examples of the repository.
    pub(crate) fn new(page: &'p str, root: &Path, may_run_labs: bool) -> Session<'p> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("fastpath-docs-{}-{number}", std::process::id()));
        let examples = directory.join("examples");
        copy_tree(&root.join("examples"), &examples);
        Session { page, directory, may_run_labs, output: None, mistakes: Vec::new() }
    }

    /// Runs the blocks of the page, and returns what is wrong.
    pub(crate) fn run(mut self, text: &str) -> Vec<String> {
        match blocks::of(text) {
            Ok(blocks) => blocks.iter().for_each(|block| self.take(block)),
            Err(line) => self.mistakes.push(format!("{}:{line}: the block is not closed", self.page)),
        }
        std::mem::take(&mut self.mistakes)
    }

    fn mistake(&mut self, block: &Block, what: &str) {
        self.mistakes.push(format!("{}:{}: {what}", self.page, block.line));
    }

    fn take(&mut self, block: &Block) {
        if !block.unknown().is_empty() {
            self.mistake(block, &format!("unknown words: {}", block.unknown().join(", ")));
        }
        if let Some(name) = block.value("file") {
            fs::write(self.directory.join(name), &block.text).unwrap();
        }
        match &*block.language {
            "sh" => self.command(block),
            "toml" | "tcl" | "yaml" if !block.has("no-run") => self.network(block),
            "text" if block.has("output") || block.has("like") => self.compare(block),
            // Python and Rust blocks are run by the tests of crates/python and crates/fastpath.
            "text" | "json" | "csv" | "python" | "rust" | "toml" | "tcl" | "yaml" => {}
            _ => self.mistake(block, "say what the block is: sh, toml, text, …"),
        }
    }

    fn command(&mut self, block: &Block) {
        self.output = None;
        if block.has("no-run") {
            return;
        }
        let place = format!("documentation: {}:{}", self.page, block.line);
        if block.has("root") && !self.may_run_labs {
            return skip(&place, "network namespaces are not permitted here");
        }
        if let Some(program) = block.value("needs").filter(|program| !is_installed(program)) {
            return skip(&place, &format!("{program} is not installed"));
        }
        let run = self.shell(&block.text);
        let expected = block.value("exit").unwrap_or("0");
        if !expected.split('|').any(|code| code == run.code.to_string()) {
            self.mistake(block, &format!("exit code {} instead of {expected}:\n{}", run.code, run.all()));
        }
        self.output = Some(run.output);
    }

    fn network(&mut self, block: &Block) {
        let extension = match &*block.language {
            "tcl" => "ns",
            "yaml" => "clab.yml",
            other => other,
        };
        let name = block.value("file").map_or_else(|| format!("block.{extension}"), str::to_owned);
        fs::write(self.directory.join(&name), &block.text).unwrap();
        let run = self.shell(&format!("fastpath check {name}"));
        if run.code != 0 {
            self.mistake(block, &format!("fastpath check: {}", run.all()));
        }
    }

    fn compare(&mut self, block: &Block) {
        let Some(output) = self.output.take() else { return };
        let alike = match block.has("like") {
            true => blocks::without_numbers(&output) == blocks::without_numbers(&block.text),
            false => lines_of(&output) == lines_of(&block.text),
        };
        if !alike {
            self.mistake(block, &format!("the output is now:\n{output}"));
        }
    }

    /// Runs a script. Its output goes to files, so that a program in the background does not hold a
    /// pipe open.
    fn shell(&self, script: &str) -> ScriptRun {
        let logs = [".output", ".errors"].map(|name| self.directory.join(name));
        let [output, errors] = logs.each_ref().map(|log| fs::File::create(log).unwrap());
        let programs = Path::new(PROGRAM).parent().unwrap().display();
        let path = format!("{programs}:{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("timeout");
        command.args(["-k", "5", LIMIT_S, "bash", "-e", "-u", "-o", "pipefail", "-c", script]);
        command.current_dir(&self.directory).env("PATH", path).env("HOME", &self.directory);
        command.env("FASTPATH_STATE_DIR", self.directory.join("state"));
        command.env_remove("FASTPATH_LAB").env_remove("COLUMNS");
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let status = command.status().expect("timeout(1) of coreutils runs");
        let [output, errors] = logs.map(|log| String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned());
        ScriptRun { code: status.code().unwrap_or(-1), output, errors }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let labs = fs::read_dir(self.directory.join("state")).into_iter().flatten().filter_map(Result::ok);
        for lab in labs {
            self.shell(&format!("fastpath lab down {}", lab.file_name().to_string_lossy()));
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The lines of a text without trailing blanks.
fn lines_of(text: &str) -> Vec<&str> {
    text.trim().lines().map(str::trim_end).collect()
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).any(|directory| directory.join(program).is_file())
}
