//! ns-2's random numbers: `new RNG`, `new RandomVariable/Exponential` and their methods (The ns
//! Manual, "Mathematical Support"; `tools/ranvar.cc`).
//!
//! The distributions are those of ns-2, the generator is another. A script therefore draws other
//! numbers than in ns-2, and the same numbers in every run.

use crate::objects::{add, shown, usage};
use crate::outcome::{Interrupt, TclResult, mistake};
use crate::simulator::{Object, RandomVariable};
use crate::state::Interp;
use crate::syntax::Value;
use fastpath_text::mistake::{Code, nearest};
use fastpath_units::Rng;
use fastpath_units::math::{exp, ln, normal_quantile};

/// A distribution: its class, and its parameters with ns-2's defaults.
type Law = (&'static str, &'static [(&'static str, f64)]);

const LAWS: [Law; 8] = [
    ("RandomVariable/Constant", &[("val_", 1.0)]),
    ("RandomVariable/Uniform", &[("min_", 0.0), ("max_", 1.0)]),
    ("RandomVariable/Exponential", &[("avg_", 1.0)]),
    ("RandomVariable/Pareto", &[("avg_", 1.0), ("shape_", 1.5)]),
    ("RandomVariable/ParetoII", &[("avg_", 10.0), ("shape_", 1.2)]),
    ("RandomVariable/Normal", &[("avg_", 0.0), ("std_", 1.0)]),
    ("RandomVariable/LogNormal", &[("avg_", 1.0), ("std_", 1.0)]),
    ("RandomVariable/Weibull", &[("shape_", 1.0), ("scale_", 1.0)]),
];

/// The commands of a generator, with example arguments.
const GENERATOR: [&str; 7] =
    ["seed 7", "uniform 0 1", "integer 10", "exponential 1.0", "normal 0 1", "lognormal 0 1", "next-random"];

/// Makes a generator or a random variable; `None` if the class is neither.
pub(crate) fn new(tcl: &mut Interp, class: &str) -> Option<TclResult> {
    if class == "RNG" {
        // As in ns-2, generators without a seed differ from each other.
        let stream = tcl.simulator.generators.len() as u64;
        tcl.simulator.generators.push(Rng::stream(0, stream));
        return Some(add(tcl, Object::Generator(stream as usize)));
    }
    let name = class.strip_prefix("RandomVariable")?.trim_start_matches('/');
    let Some(law) = LAWS.iter().position(|(known, _)| *known == class) else {
        let classes = LAWS.map(|(class, _)| class);
        let instead = match nearest(name, classes.map(|class| class.trim_start_matches("RandomVariable/"))) {
            Some(meant) => format!("write new RandomVariable/{meant}"),
            None => format!("write new and one of {}", classes.join(", ")),
        };
        return Some(mistake(format!("there is no random variable '{class}'"), instead));
    };
    if tcl.simulator.variables.is_empty() {
        tcl.warn(Code::Different, "random numbers are the same in every run, and not those of ns-2");
    }
    let parameters = LAWS[law].1.iter().map(|(_, default)| *default).collect();
    tcl.simulator.variables.push(RandomVariable { law, parameters, generator: 0 });
    Some(add(tcl, Object::Variable(tcl.simulator.variables.len() - 1)))
}

/// A method of a random variable.
pub(crate) fn variable(tcl: &mut Interp, index: usize, words: &[Value]) -> TclResult {
    let RandomVariable { law, generator, .. } = tcl.simulator.variables[index];
    let (class, parameters) = LAWS[law];
    let named = |name: &Value| match parameters.iter().position(|(known, _)| **known == **name) {
        Some(found) => Ok(found),
        None => {
            let known: Vec<_> = parameters.iter().map(|(known, _)| *known).collect();
            mistake(format!("{class} has no '{}'", &**name), format!("write {}", known.join(" or ")))
        }
    };
    match words {
        [value] if &**value == "value" => {
            let parameters = &tcl.simulator.variables[index].parameters;
            let drawn = draw(class, parameters, &mut tcl.simulator.generators[generator]);
            real(drawn)
        }
        [set, name] if &**set == "set" => {
            let parameter = named(name)?;
            real(tcl.simulator.variables[index].parameters[parameter])
        }
        [set, name, value] if &**set == "set" => {
            let parameter = named(name)?;
            let number = number(value)?;
            if matches!(&**name, "shape_" | "scale_") && number <= 0.0 {
                let what = format!("{class}: {} {} is not above 0", &**name, &**value);
                return mistake(what, "write a larger number");
            }
            tcl.simulator.variables[index].parameters[parameter] = number;
            Ok(value.clone())
        }
        [using, rng] if &**using == "use-rng" => {
            let Some(Object::Generator(generator)) = tcl.simulator.object(rng.trim()) else {
                let what = format!("{} is not an RNG", shown(tcl, rng));
                return mistake(what, "write $rng, of set rng [new RNG]");
            };
            tcl.simulator.variables[index].generator = generator;
            Ok(Value::default())
        }
        _ => {
            let first = words.first().map_or("", |word| word);
            mistake(
                format!("a random variable has no command '{first}'"),
                format!(
                    "write $variable value, $variable set {} 1, or $variable use-rng $rng",
                    parameters[0].0
                ),
            )
        }
    }
}

/// A method of a generator.
pub(crate) fn generator(tcl: &mut Interp, index: usize, words: &[Value]) -> TclResult {
    let Some((name, arguments)) = words.split_first() else { return usage("$rng uniform 0 1") };
    let numbers = arguments.iter().map(number).collect::<Result<Vec<f64>, Interrupt>>()?;
    let rng = &mut tcl.simulator.generators[index];
    let (class, parameters): (&str, &[f64]) = match (&**name, numbers.as_slice()) {
        ("seed", [seed]) => {
            *rng = Rng::new(*seed as u64);
            if *seed == 0.0 {
                tcl.warn(Code::Different, "seed 0 is a seed like others: in ns-2 it is the time of day");
            }
            return Ok(Value::default());
        }
        ("next-random", []) => return Ok(Value::from((rng.next_u64() >> 33).to_string())),
        ("integer", [below]) if *below >= 1.0 => {
            return Ok(Value::from(rng.below(*below as u64).to_string()));
        }
        ("exponential", []) => ("RandomVariable/Exponential", &[1.0]),
        ("exponential", [_]) => ("RandomVariable/Exponential", &numbers),
        ("uniform", [_, _]) => ("RandomVariable/Uniform", &numbers),
        ("normal", [_, _]) => ("RandomVariable/Normal", &numbers),
        ("lognormal", [_, _]) => ("RandomVariable/LogNormal", &numbers),
        ("default" | "next-substream" | "reset-start-substream", []) => return Ok(Value::default()),
        (other, _) => {
            let what = format!("an RNG has no command '{other}' with {} values", numbers.len());
            return mistake(what, format!("write $rng and one of {}", GENERATOR.join(", ")));
        }
    };
    real(draw(class, parameters, rng))
}

/// Draws one value of a distribution.
fn draw(class: &str, parameters: &[f64], rng: &mut Rng) -> f64 {
    // In (0, 1): a logarithm of 0 is not a number.
    let uniform = (rng.unit_f64() + f64::EPSILON / 4.0).min(1.0 - f64::EPSILON);
    let power = |base: f64, exponent: f64| exp(exponent * ln(base));
    match (class, parameters) {
        ("RandomVariable/Uniform", &[min, max]) => min + (max - min) * uniform,
        ("RandomVariable/Exponential", &[avg]) => -avg * ln(uniform),
        ("RandomVariable/Pareto", &[avg, shape]) => avg * (shape - 1.0) / shape / power(uniform, 1.0 / shape),
        ("RandomVariable/ParetoII", &[avg, shape]) => {
            avg * (shape - 1.0) * (1.0 / power(uniform, 1.0 / shape) - 1.0)
        }
        ("RandomVariable/Normal", &[avg, std]) => avg + std * normal_quantile(uniform),
        ("RandomVariable/LogNormal", &[avg, std]) => exp(avg + std * normal_quantile(uniform)),
        ("RandomVariable/Weibull", &[shape, scale]) => scale * power(-ln(uniform), 1.0 / shape),
        (_, parameters) => parameters[0],
    }
}

fn number(word: &Value) -> Result<f64, Interrupt> {
    match word.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => mistake(format!("'{}' is not a number", &**word), "write for example 1.5"),
    }
}

fn real(value: f64) -> TclResult {
    if value.is_finite() {
        Ok(Value::from(format!("{value:?}")))
    } else {
        mistake("the random number is too large", "write other parameters")
    }
}
