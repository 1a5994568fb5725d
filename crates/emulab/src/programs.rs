//! Programs on nodes: start commands, and program agents with the events that start and stop them.

use crate::objects::{add, node, usage};
use crate::outcome::{Interrupt, TclResult, mistake};
use crate::simulator::{NodeCommand, Object, ProgramAgent, ScriptAction, Simulator};
use crate::state::Interp;
use crate::syntax::Value;
use fastpath_text::mistake::nearest;
use fastpath_units::Time;

/// The options of a program agent, and the variables of a program.
const OPTIONS: [&str; 5] = ["command", "dir", "timeout", "expected-exit-code", "node"];

/// `new Program $ns`.
pub(crate) fn new(tcl: &mut Interp) -> TclResult {
    tcl.simulator.programs.push(ProgramAgent::default());
    add(tcl, Object::Program(tcl.simulator.programs.len() - 1))
}

/// `$node program-agent -command "COMMAND"`.
pub(crate) fn agent(tcl: &mut Interp, node: usize, words: &[Value]) -> TclResult {
    let handle = new(tcl)?;
    let program = tcl.simulator.programs.len() - 1;
    tcl.simulator.programs[program].node = Some(node);
    options(tcl, program, words)?;
    Ok(handle)
}

/// `$program set command "COMMAND"`.
pub(crate) fn set(tcl: &mut Interp, program: usize, words: &[Value]) -> TclResult {
    let [name, value] = words else { return usage("$program set command \"COMMAND\"") };
    option(tcl, program, name.trim_end_matches('_'), value)?;
    Ok(value.clone())
}

fn options(tcl: &mut Interp, program: usize, words: &[Value]) -> Result<(), Interrupt> {
    for pair in words.chunks(2) {
        let ([name, value], true) = (pair, pair[0].starts_with('-')) else {
            return usage("$node program-agent -command \"COMMAND\"");
        };
        option(tcl, program, name.trim_start_matches('-'), value)?;
    }
    Ok(())
}

fn option(tcl: &mut Interp, program: usize, name: &str, value: &Value) -> Result<(), Interrupt> {
    let text = || Some(value.trim().to_owned());
    match name {
        "node" => {
            let node = node(tcl, value)?;
            tcl.simulator.programs[program].node = Some(node);
        }
        "command" => tcl.simulator.programs[program].command = text(),
        "dir" => tcl.simulator.programs[program].directory = text(),
        "timeout" => match value.trim().parse::<f64>() {
            Ok(seconds) if seconds >= 0.0 => tcl.simulator.programs[program].timeout = text(),
            _ => return mistake(format!("'{}' is not a time", &**value), "write a number of seconds"),
        },
        "expected-exit-code" => tcl.warn("expected-exit-code is ignored: other exit codes are reported"),
        other => {
            let meant = nearest(other, OPTIONS).unwrap_or("command");
            return mistake(format!("a program has no '{other}'"), format!("write {meant}"));
        }
    }
    Ok(())
}

/// `tb-set-node-startcmd $node "COMMAND"`.
pub(crate) fn start_command(tcl: &mut Interp, node: usize, command: &Value) -> TclResult {
    let what = ScriptAction::Run(node, command.trim().to_owned());
    tcl.simulator.commands.push(NodeCommand { at: Time::ZERO, place: tcl.at, what });
    Ok(Value::default())
}

/// `$ns at 10.0 "$program start"`.
pub(crate) fn event(tcl: &mut Interp, at: Time, program: usize, words: &[Value]) -> Result<(), Interrupt> {
    let Some((verb, rest)) = words.split_first() else {
        return usage("$ns at 10.0 \"$program start\"");
    };
    let what = match (&**verb, rest) {
        ("start" | "run", []) => ScriptAction::Start(program, None),
        ("start" | "run", [option, command]) if matches!(&**option, "-command" | "COMMAND") => {
            ScriptAction::Start(program, Some(command.trim().to_owned()))
        }
        ("stop" | "halt", _) => ScriptAction::Stop(program, "TERM".to_owned()),
        ("kill", [signal]) if signal.chars().all(|c| c.is_ascii_alphanumeric()) => {
            ScriptAction::Stop(program, signal.trim_start_matches("SIG").to_owned())
        }
        ("kill", []) => ScriptAction::Stop(program, "KILL".to_owned()),
        (other, _) => {
            let meant = nearest(other, ["start", "run", "stop", "halt", "kill"]).unwrap_or("start");
            let what = format!("'{other}' is not an event of a program");
            return mistake(what, format!("write $ns at 10.0 \"$program {meant}\""));
        }
    };
    let known = &tcl.simulator.programs[program];
    let has_command = known.command.is_some() || matches!(&what, ScriptAction::Start(_, Some(_)));
    let missing = match (known.node, has_command) {
        (None, _) => Some(("node", "$program set node $n0")),
        (_, false) => Some(("command", "$program set command \"COMMAND\"")),
        _ => None,
    };
    if let Some((missing, instead)) = missing {
        let what = format!("the program has no {missing}");
        return mistake(what, format!("write {instead} before the event"));
    }
    tcl.simulator.commands.push(NodeCommand { at, place: tcl.at, what });
    Ok(())
}

/// Returns the line of a shell for each command, in the order of time, with its node.
pub(crate) fn lines(tcl: &Simulator) -> Vec<(Time, usize, String)> {
    let stopped = |program: usize| {
        tcl.commands
            .iter()
            .any(|command| matches!(command.what, ScriptAction::Stop(other, _) if other == program))
    };
    let mut sorted: Vec<&NodeCommand> = tcl.commands.iter().collect();
    sorted.sort_by_key(|command| command.at);
    let line = |command: &&NodeCommand| {
        let node = tcl.node_of(&command.what)?;
        let line = match &command.what {
            ScriptAction::Run(_, command) => command.clone(),
            ScriptAction::Start(program, other) => {
                let line = tcl.programs[*program].line(other.as_deref());
                match stopped(*program) {
                    // The group of the program has the number of its first process.
                    true => format!("echo $$ > \"{}\"; exec setsid sh -c {}", file(*program), quoted(&line)),
                    false => line,
                }
            }
            ScriptAction::Stop(program, signal) => {
                format!("kill -s {signal} -- \"-$(cat \"{}\")\"", file(*program))
            }
        };
        Some((command.at, node, line))
    };
    sorted.iter().filter_map(line).collect()
}

/// The file with the number of a program's first process, in the state directory of the lab.
fn file(program: usize) -> String {
    format!("$FASTPATH_STATE_DIR/$FASTPATH_LAB/program-{program}.pid")
}

impl ProgramAgent {
    /// The line of a shell that runs the program.
    fn line(&self, command: Option<&str>) -> String {
        let command = command.or(self.command.as_deref()).unwrap_or_default();
        let limited = match &self.timeout {
            Some(seconds) => format!("timeout {seconds} sh -c {}", quoted(command)),
            None => command.to_owned(),
        };
        match &self.directory {
            Some(directory) => format!("cd {} && {{ {limited}\n}}", quoted(directory)),
            None => limited,
        }
    }
}

/// Returns the text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
