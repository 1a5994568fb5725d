//! The reference of commands: the help of the program, command by command.

use std::io;
use std::path::Path;
use std::process::Command;

/// Returns the page, from the help that `program` prints.
pub(crate) fn page(program: &Path) -> io::Result<String> {
    let mut page = String::from(
        "# Commands\n\nThe help of every command. Exit codes: 0 ok, 1 the answer is no, 2 could not answer. Commands that \
         print results take `--json`.\n",
    );
    append(&mut page, program, &mut Vec::new())?;
    Ok(page)
}

/// Appends the help of the command with these words, and of all commands below it.
fn append(page: &mut String, program: &Path, words: &mut Vec<String>) -> io::Result<()> {
    let help = output(program, &[words.as_slice(), &["--help".to_owned()]].concat())?;
    let level = "#".repeat(words.len().clamp(1, 2) + 1);
    let name = [&["fastpath".to_owned()], words.as_slice()].concat().join(" ");
    page.push_str(&format!("\n{level} {name}\n\n```text\n{}\n```\n", help.trim_end()));
    for command in commands_of(&help) {
        words.push(command);
        append(page, program, words)?;
        words.pop();
    }
    Ok(())
}

/// The commands that a help lists, without `help`.
fn commands_of(help: &str) -> Vec<String> {
    let list =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// What the program prints, without a terminal.
pub(crate) fn output(program: &Path, arguments: &[String]) -> io::Result<String> {
    let output = Command::new(program).args(arguments).env_remove("COLUMNS").output()?;
    if !output.status.success() {
        let what = format!("{} {}: {}", program.display(), arguments.join(" "), output.status);
        return Err(io::Error::other(what));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn the_commands_of_a_help_are_found() {
    let help = "Usage: x\n\nCommands:\n  lab   Run programs\n        on hosts\n  help  Print this\n\nOptions:\n  -h\n";
    assert_eq!(commands_of(help), ["lab"]);
}
