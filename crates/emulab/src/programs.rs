//! Programs on nodes: start commands, and program agents with the events that start and stop them.

use crate::objects::{made, node, usage};
use crate::outcome::{Interrupt, TclResult, mistake};
use crate::simulator::{NodeCommand, Object, ProgramAgent, ScriptAction, Simulator};
use crate::state::Interp;
use crate::syntax::Value;
use fastpath_text::mistake::{Code, nearest};
use fastpath_units::Time;

/// The options of a program agent, and the variables of a program.
const OPTIONS: [&str; 6] = ["command", "dir", "timeout", "expected-exit-code", "node", "tag"];

/// `new Program $ns`.
pub(crate) fn new(tcl: &mut Interp) -> TclResult {
    tcl.simulator.is_emulab = true;
    let index = tcl.simulator.programs.len();
    let (made, handle) = made(tcl, Object::Program(index))?;
    tcl.simulator.programs.push(ProgramAgent { made: Some(made), ..ProgramAgent::default() });
    Ok(handle)
}

/// `$node program-agent -command "COMMAND"`.
pub(crate) fn agent(tcl: &mut Interp, node: usize, words: &[Value]) -> TclResult {
    let handle = new(tcl)?;
    let program = tcl.simulator.programs.len() - 1;
    let mut values = ProgramAgent { node: Some(node), ..tcl.simulator.programs[program].clone() };
    options(tcl, &mut values, words)?;
    tcl.simulator.programs[program] = values;
    Ok(handle)
}

/// `$program set command "COMMAND"`.
pub(crate) fn set(tcl: &mut Interp, program: usize, words: &[Value]) -> TclResult {
    let (name, value) = match words {
        [name] => {
            tcl.warn_if_unused(name);
            let known = &tcl.simulator.programs[program];
            let text = match name.trim_end_matches('_') {
                "command" => known.command.clone(),
                "dir" => known.directory.clone(),
                "timeout" => known.timeout.clone(),
                _ => return usage("$program set command"),
            };
            return Ok(Value::from(text.unwrap_or_default()));
        }
        [name, value] => (name, value),
        _ => return usage("$program set command \"COMMAND\""),
    };
    let mut values = tcl.simulator.programs[program].clone();
    option(tcl, &mut values, name.trim_end_matches('_'), value)?;
    tcl.simulator.programs[program] = values;
    Ok(value.clone())
}

fn options(tcl: &mut Interp, values: &mut ProgramAgent, words: &[Value]) -> Result<(), Interrupt> {
    for pair in words.chunks(2) {
        let ([name, value], true) = (pair, pair[0].starts_with('-')) else {
            return usage("$node program-agent -command \"COMMAND\"");
        };
        option(tcl, values, name.trim_start_matches('-'), value)?;
    }
    Ok(())
}

fn option(tcl: &mut Interp, values: &mut ProgramAgent, name: &str, value: &Value) -> Result<(), Interrupt> {
    let text = || Some(value.trim().to_owned());
    match name {
        // The machine of the testbed that users log in to.
        "node" if value.trim() == "ops" && tcl.simulator.object("ops").is_none() => {
            tcl.warn(Code::Ignored, "a program on ops is ignored: run it beside the lab");
            values.is_on_ops = true;
        }
        "node" => values.node = Some(node(tcl, value)?),
        "command" => values.command = text(),
        "dir" => values.directory = text(),
        "timeout" => match value.trim().parse::<f64>() {
            Ok(seconds) if seconds >= 0.0 => values.timeout = text(),
            _ => return mistake(format!("'{}' is not a time", &**value), "write a number of seconds"),
        },
        "tag" => tcl.warn(Code::Ignored, "tag is ignored: it names the run in the records of a testbed"),
        "expected-exit-code" => {
            tcl.warn(Code::Ignored, "expected-exit-code is ignored: other exit codes are reported")
        }
        other => {
            let meant = nearest(other, OPTIONS).unwrap_or("command");
            return mistake(format!("a program has no '{other}'"), format!("write {meant}"));
        }
    }
    Ok(())
}

/// `tb-set-node-startcmd $node "COMMAND"`.
pub(crate) fn start_command(tcl: &mut Interp, node: usize, command: &Value) -> TclResult {
    tcl.simulator.is_emulab = true;
    let what = ScriptAction::Run(node, command.trim().to_owned());
    tcl.simulator.commands.push(NodeCommand { at: Time::ZERO, place: tcl.at, what });
    Ok(Value::default())
}

/// `$ns at 10.0 "$program start"`.
pub(crate) fn event(tcl: &mut Interp, at: Time, program: usize, words: &[Value]) -> Result<(), Interrupt> {
    let Some((verb, rest)) = words.split_first() else {
        return usage("$ns at 10.0 \"$program start\"");
    };
    let mut values = tcl.simulator.programs[program].clone();
    tcl.simulator.programs[program].is_used = true;
    if values.is_on_ops {
        tcl.warn(Code::Ignored, "this event is ignored: its program is on ops");
        return Ok(());
    }
    let what = match (&**verb, rest) {
        ("start" | "run", [option, command]) if &**option == "COMMAND" => {
            values.command = Some(command.trim().to_owned());
            ScriptAction::Start(program, Box::new(values.clone()))
        }
        ("start" | "run", rest) => {
            options(tcl, &mut values, rest)?;
            ScriptAction::Start(program, Box::new(values.clone()))
        }
        ("stop" | "halt", []) => ScriptAction::Stop(program, "TERM".to_owned()),
        ("stop" | "halt", _) => return usage("$ns at 10.0 \"$program stop\""),
        ("kill", [signal]) if is_signal(signal) => {
            ScriptAction::Stop(program, signal.trim_start_matches("SIG").to_owned())
        }
        ("kill", []) => ScriptAction::Stop(program, "KILL".to_owned()),
        ("kill", _) => return usage("$ns at 10.0 \"$program kill SIGINT\""),
        (other, _) => {
            let meant = nearest(other, ["start", "run", "stop", "halt", "kill"]).unwrap_or("start");
            let what = format!("'{other}' is not an event of a program");
            return mistake(what, format!("write $ns at 10.0 \"$program {meant}\""));
        }
    };
    let missing = match (values.node, values.command) {
        (None, _) => Some(("node", "$program set node $n0")),
        (_, None) => Some(("command", "$program set command \"COMMAND\"")),
        _ => None,
    };
    if let Some((missing, instead)) = missing {
        let what = format!("the program has no {missing}");
        return mistake(what, format!("write {instead}"));
    }
    tcl.simulator.commands.push(NodeCommand { at, place: tcl.at, what });
    Ok(())
}

/// The signals that kill(1) of every system knows.
const SIGNALS: [&str; 13] =
    ["HUP", "INT", "QUIT", "KILL", "USR1", "USR2", "PIPE", "ALRM", "TERM", "CONT", "STOP", "TSTP", "ABRT"];

fn is_signal(text: &str) -> bool {
    let is_number = text.parse::<u8>().is_ok_and(|number| (1..=64).contains(&number));
    is_number || SIGNALS.contains(&text.trim_start_matches("SIG"))
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
            ScriptAction::Start(program, values) => {
                let line = values.line();
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
    fn line(&self) -> String {
        let command = self.command.as_deref().unwrap_or_default();
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
