//! Progress on standard error: a bar on a terminal, elsewhere a line every ten seconds, for logs.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Interval between two lines, and before the first.
const EVERY: Duration = Duration::from_secs(10);
/// What a terminal shows before the template.
const BAR: &str = "{bar:30} ";
/// Columns of the emulated terminal; longer than any line.
const WIDTH: u16 = 200;

/// Returns a bar over `len` steps, followed by `template`, such as `{msg} {pos}/{len} ({elapsed},
/// {eta} left)`.
pub(crate) fn bar(len: u64, template: &str) -> ProgressBar {
    let (target, template) = if io::stderr().is_terminal() {
        (ProgressDrawTarget::stderr(), format!("{BAR}{template}"))
    } else {
        (ProgressDrawTarget::term_like_with_hz(Box::new(Lines::new()), 1), template.to_owned())
    };
    let style = ProgressStyle::with_template(&template).expect("a template of known words");
    ProgressBar::with_draw_target(Some(len), target).with_style(style)
}

/// A drawing target that prints a line every [`EVERY`].
#[derive(Debug)]
struct Lines(Mutex<Drawn>);

#[derive(Debug)]
struct Drawn {
    text: String,
    printed_at: Instant,
}

impl Lines {
    fn new() -> Lines {
        Lines(Mutex::new(Drawn { text: String::new(), printed_at: Instant::now() }))
    }

    fn drawn(&self) -> std::sync::MutexGuard<'_, Drawn> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drawn {
    /// Returns the line to print at `now`, if it is time for one.
    fn line(&mut self, now: Instant) -> Option<String> {
        let text = std::mem::take(&mut self.text);
        let line = text.trim();
        if line.is_empty() || now.duration_since(self.printed_at) < EVERY {
            return None;
        }
        self.printed_at = now;
        Some(format!("fastpath: {line}"))
    }
}

impl TermLike for Lines {
    fn width(&self) -> u16 {
        WIDTH
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.drawn().text.push_str(text);
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)
    }

    fn flush(&self) -> io::Result<()> {
        if let Some(line) = self.drawn().line(Instant::now()) {
            eprintln!("{line}");
        }
        Ok(())
    }

    // A log has no cursor.
    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_printed_now_and_then_and_never_an_empty_one() {
        let start = Instant::now();
        let mut drawn = Drawn { text: String::new(), printed_at: start };
        let mut at = |seconds: u64, text: &str| {
            drawn.text = text.to_owned();
            drawn.line(start + Duration::from_secs(seconds))
        };
        assert_eq!(at(9, "\rpoints 1/9   "), None);
        assert_eq!(at(10, "\rpoints 2/9   "), Some("fastpath: points 2/9".to_owned()));
        assert_eq!(at(19, "points 3/9"), None);
        assert_eq!(at(21, "   "), None);
        assert_eq!(at(22, "points 4/9"), Some("fastpath: points 4/9".to_owned()));
    }
}
