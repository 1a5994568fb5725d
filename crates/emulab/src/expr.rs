//! `expr`: arithmetic, comparison and logic (Tcl expr(n)) on integers, floating-point numbers and
//! strings.

use crate::syntax::Value;
use fastpath_units::Rng;

/// The deepest nesting of parentheses and operators.
const DEPTH_MAX: usize = 60;

/// Why an expression has no value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum ExprError {
    #[error("'{0}' is not an expression")]
    Syntax(String),
    #[error("the expression ends too early")]
    End,
    #[error("'{0}' is not a number")]
    NotANumber(String),
    #[error("division by zero")]
    DivisionByZero,
    #[error("the number is too large")]
    Overflow,
    #[error("the function '{0}' is not known")]
    Function(String),
    #[error("the expression is nested too deeply")]
    Depth,
}

/// A value of an expression.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Number {
    Integer(i64),
    Real(f64),
    Text(String),
}

impl Number {
    pub(crate) fn parse(text: &str) -> Number {
        let trimmed = text.trim();
        let hexadecimal = trimmed.strip_prefix("0x").or_else(|| trimmed.strip_prefix("0X"));
        if let Some(integer) = hexadecimal.and_then(|digits| i64::from_str_radix(digits, 16).ok()) {
            return Number::Integer(integer);
        }
        // Words such as "inf" and "nan" are numbers to Rust and words to Tcl.
        if !trimmed.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+')) {
            return Number::Text(text.to_owned());
        }
        match (trimmed.parse(), trimmed.parse::<f64>()) {
            (Ok(integer), _) => Number::Integer(integer),
            (_, Ok(real)) if real.is_finite() => Number::Real(real),
            _ => Number::Text(text.to_owned()),
        }
    }

    fn real(&self) -> Result<f64, ExprError> {
        match self {
            Number::Integer(integer) => Ok(*integer as f64),
            Number::Real(real) => Ok(*real),
            Number::Text(text) => Err(ExprError::NotANumber(text.clone())),
        }
    }

    fn integer(&self) -> Result<i64, ExprError> {
        match self {
            Number::Integer(integer) => Ok(*integer),
            other => Err(ExprError::NotANumber(other.print())),
        }
    }

    pub(crate) fn truth(&self) -> Result<bool, ExprError> {
        match self {
            Number::Integer(integer) => Ok(*integer != 0),
            Number::Real(real) => Ok(*real != 0.0),
            Number::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" => Ok(true),
                "false" | "no" | "off" => Ok(false),
                _ => Err(ExprError::NotANumber(text.clone())),
            },
        }
    }

    /// Formats a value as Tcl does: a real number always has a point or exponent.
    pub(crate) fn print(&self) -> String {
        match self {
            Number::Integer(integer) => integer.to_string(),
            Number::Real(real) => format!("{real:?}"),
            Number::Text(text) => text.clone(),
        }
    }
}

/// Evaluates an expression whose variables and commands are replaced by their values.
pub(crate) fn evaluate(tokens: Vec<Token>, rng: &mut Rng) -> Result<Number, ExprError> {
    let mut parser = Parser { tokens, at: 0, depth: 0, skipped: 0, rng };
    let value = parser.ternary()?;
    match parser.tokens.get(parser.at) {
        None => Ok(value),
        Some(token) => Err(ExprError::Syntax(token.print())),
    }
}

/// A token of an expression.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Token {
    Operand(Number),
    /// A bare word: a function's name, or an operator such as `eq`.
    Word(String),
    Operator(&'static str),
}

impl Token {
    pub(crate) fn operand(value: &Value) -> Token {
        Token::Operand(Number::parse(value))
    }

    fn print(&self) -> String {
        match self {
            Token::Operand(number) => number.print(),
            Token::Word(word) => word.clone(),
            Token::Operator(operator) => (*operator).to_owned(),
        }
    }
}

/// Operators, the longest first where one begins another.
pub(crate) const OPERATORS: [&str; 26] = [
    "**", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "/", "%", "<", ">", "!", "~", "&",
    "|", "^", "?", ":", "(", ")", ",",
];

/// Binary operators from loose to tight.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!=", "eq", "ne"],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

struct Parser<'r> {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    /// How many of the parts around are not taken: their values are not computed.
    skipped: usize,
    rng: &'r mut Rng,
}

impl Parser<'_> {
    fn take(&mut self, wanted: &str) -> bool {
        let found = match self.tokens.get(self.at) {
            Some(Token::Operator(operator)) => *operator == wanted,
            Some(Token::Word(word)) => word == wanted,
            _ => false,
        };
        self.at += usize::from(found);
        found
    }

    fn ternary(&mut self) -> Result<Number, ExprError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ExprError::Depth);
        }
        let condition = self.binary(0)?;
        let mut value = condition;
        if self.take("?") {
            let is_true = self.skipped > 0 || value.truth()?;
            let yes = self.part(is_true, Parser::ternary)?;
            if !self.take(":") {
                return Err(ExprError::Syntax("? without :".to_owned()));
            }
            let no = self.part(!is_true, Parser::ternary)?;
            value = if is_true { yes } else { no };
        }
        self.depth -= 1;
        Ok(value)
    }

    /// A part of the expression, which is computed if it is taken.
    fn part(
        &mut self,
        is_taken: bool,
        parse: impl FnOnce(&mut Self) -> Result<Number, ExprError>,
    ) -> Result<Number, ExprError> {
        self.skipped += usize::from(!is_taken);
        let value = parse(self);
        self.skipped -= usize::from(!is_taken);
        value
    }

    /// A value, unless its part is not taken.
    fn value(&self, compute: impl FnOnce() -> Result<Number, ExprError>) -> Result<Number, ExprError> {
        if self.skipped > 0 { Ok(Number::Integer(0)) } else { compute() }
    }

    fn binary(&mut self, level: usize) -> Result<Number, ExprError> {
        let Some(operators) = LEVELS.get(level) else { return self.power() };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.take(operator)) {
            let is_decided = match *operator {
                "&&" => self.skipped == 0 && !left.truth()?,
                "||" => self.skipped == 0 && left.truth()?,
                _ => false,
            };
            let right = self.part(!is_decided, |parser| parser.binary(level + 1))?;
            left = self.value(|| apply(operator, &left, &right))?;
        }
        Ok(left)
    }

    fn power(&mut self) -> Result<Number, ExprError> {
        let base = self.unary()?;
        if !self.take("**") {
            return Ok(base);
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ExprError::Depth);
        }
        let exponent = self.power()?;
        self.depth -= 1;
        self.value(|| match (&base, &exponent) {
            (Number::Integer(base), Number::Integer(exponent)) if *exponent >= 0 => {
                let exponent = u32::try_from(*exponent).map_err(|_| ExprError::Overflow)?;
                base.checked_pow(exponent).map(Number::Integer).ok_or(ExprError::Overflow)
            }
            _ => finite(base.real()?.powf(exponent.real()?)),
        })
    }

    fn unary(&mut self) -> Result<Number, ExprError> {
        for operator in ["-", "+", "!", "~"] {
            if !self.take(operator) {
                continue;
            }
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return Err(ExprError::Depth);
            }
            let value = self.unary()?;
            self.depth -= 1;
            return self.value(|| match (operator, &value) {
                ("-", Number::Integer(integer)) => {
                    integer.checked_neg().map(Number::Integer).ok_or(ExprError::Overflow)
                }
                ("-", _) => Ok(Number::Real(-value.real()?)),
                ("+", _) => value.real().map(|_| value.clone()),
                ("~", _) => Ok(Number::Integer(!value.integer()?)),
                _ => Ok(Number::Integer(i64::from(!value.truth()?))),
            });
        }
        self.operand()
    }

    fn operand(&mut self) -> Result<Number, ExprError> {
        if self.take("(") {
            let value = self.ternary()?;
            return if self.take(")") { Ok(value) } else { Err(ExprError::Syntax("( without )".to_owned())) };
        }
        let Some(token) = self.tokens.get(self.at).cloned() else {
            return Err(ExprError::End);
        };
        self.at += 1;
        match token {
            Token::Operand(number) => Ok(number),
            Token::Word(name) if self.take("(") => {
                let mut arguments = Vec::new();
                while !self.take(")") {
                    arguments.push(self.ternary()?);
                    if !self.take(",") && !matches!(self.tokens.get(self.at), Some(Token::Operator(")"))) {
                        return Err(ExprError::Syntax(name));
                    }
                }
                if self.skipped > 0 { Ok(Number::Integer(0)) } else { self.function(&name, &arguments) }
            }
            Token::Word(word) if Number::Text(word.clone()).truth().is_ok() => Ok(Number::Text(word)),
            other => Err(ExprError::Syntax(other.print())),
        }
    }

    fn function(&mut self, name: &str, arguments: &[Number]) -> Result<Number, ExprError> {
        let whole = |real: f64| {
            let fits = real.abs() < 9.2e18;
            if fits { Ok(Number::Integer(real as i64)) } else { Err(ExprError::Overflow) }
        };
        match (name, arguments) {
            ("rand", []) => Ok(Number::Real(self.rng.unit_f64())),
            ("srand", [seed]) => {
                *self.rng = Rng::new(seed.integer()? as u64);
                Ok(Number::Real(self.rng.unit_f64()))
            }
            ("int" | "wide" | "entier", [x]) => whole(x.real()?.trunc()),
            ("round", [x]) => whole(x.real()?.round()),
            ("double", [x]) => x.real().map(Number::Real),
            ("abs", [Number::Integer(x)]) => x.checked_abs().map(Number::Integer).ok_or(ExprError::Overflow),
            ("abs", [x]) => x.real().map(|x| Number::Real(x.abs())),
            ("ceil", [x]) => x.real().map(|x| Number::Real(x.ceil())),
            ("floor", [x]) => x.real().map(|x| Number::Real(x.floor())),
            ("sqrt", [x]) => finite(x.real()?.sqrt()),
            ("exp", [x]) => finite(x.real()?.exp()),
            ("log", [x]) => finite(x.real()?.ln()),
            ("log10", [x]) => finite(x.real()?.log10()),
            ("sin", [x]) => finite(x.real()?.sin()),
            ("cos", [x]) => finite(x.real()?.cos()),
            ("pow", [x, y]) => finite(x.real()?.powf(y.real()?)),
            ("fmod", [x, y]) => finite(x.real()? % y.real()?),
            ("min", [first, rest @ ..]) => extreme("<", first, rest),
            ("max", [first, rest @ ..]) => extreme(">", first, rest),
            _ => Err(ExprError::Function(name.to_owned())),
        }
    }
}

fn extreme(operator: &str, first: &Number, rest: &[Number]) -> Result<Number, ExprError> {
    rest.iter().try_fold(first.clone(), |best, number| {
        Ok(if apply(operator, number, &best)?.truth()? { number.clone() } else { best })
    })
}

fn finite(real: f64) -> Result<Number, ExprError> {
    if real.is_finite() { Ok(Number::Real(real)) } else { Err(ExprError::Overflow) }
}

fn apply(operator: &str, left: &Number, right: &Number) -> Result<Number, ExprError> {
    let truth = |value: bool| Ok(Number::Integer(i64::from(value)));
    match operator {
        "||" => return truth(left.truth()? || right.truth()?),
        "&&" => return truth(left.truth()? && right.truth()?),
        "eq" => return truth(left.print() == right.print()),
        "ne" => return truth(left.print() != right.print()),
        "==" | "!=" | "<" | ">" | "<=" | ">=" => {
            let order = compare(left, right);
            return truth(match operator {
                "==" => order.is_eq(),
                "!=" => order.is_ne(),
                "<" => order.is_lt(),
                ">" => order.is_gt(),
                "<=" => order.is_le(),
                _ => order.is_ge(),
            });
        }
        _ => (),
    }
    match (left, right) {
        (Number::Integer(left), Number::Integer(right)) => {
            integers(operator, *left, *right).map(Number::Integer)
        }
        _ => match operator {
            "+" => finite(left.real()? + right.real()?),
            "-" => finite(left.real()? - right.real()?),
            "*" => finite(left.real()? * right.real()?),
            "/" if right.real()? == 0.0 => Err(ExprError::DivisionByZero),
            "/" => finite(left.real()? / right.real()?),
            _ => integers(operator, left.integer()?, right.integer()?).map(Number::Integer),
        },
    }
}

fn integers(operator: &str, left: i64, right: i64) -> Result<i64, ExprError> {
    let shift = || u32::try_from(right).map_err(|_| ExprError::Overflow);
    let value = match operator {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" | "%" if right == 0 => return Err(ExprError::DivisionByZero),
        // Tcl rounds towards minus infinity, so the remainder has the divisor's sign.
        "/" => left
            .checked_div(right)
            .map(|quotient| quotient - i64::from(left % right != 0 && (left < 0) != (right < 0))),
        "%" => left
            .checked_rem(right)
            .map(|rest| if rest != 0 && (rest < 0) != (right < 0) { rest + right } else { rest }),
        "<<" => left.checked_shl(shift()?),
        ">>" => left.checked_shr(shift()?),
        "&" => Some(left & right),
        "|" => Some(left | right),
        _ => Some(left ^ right),
    };
    value.ok_or(ExprError::Overflow)
}

fn compare(left: &Number, right: &Number) -> std::cmp::Ordering {
    match (left, right) {
        (Number::Integer(left), Number::Integer(right)) => left.cmp(right),
        _ => match (left.real(), right.real()) {
            (Ok(left), Ok(right)) => left.partial_cmp(&right).unwrap_or(std::cmp::Ordering::Equal),
            _ => left.print().cmp(&right.print()),
        },
    }
}
