//! How errors, signals and panics reach Python.

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;

pyo3::create_exception!(
    fastpath._native,
    Error,
    pyo3::exceptions::PyException,
    "An operation of fastpath could not be carried out. The text says what, where, and what to write."
);

/// Ends a call whose only way out is unwinding: a signal handler raised.
struct Interrupted;

/// Makes an exception of an error of the library.
pub(crate) fn raise(error: fastpath::Error) -> PyErr {
    match &error {
        fastpath::Error::File { path, source } => {
            // With these arguments Python chooses FileNotFoundError and the like.
            let why = source.to_string();
            PyOSError::new_err((source.raw_os_error().unwrap_or(0), why, path.display().to_string()))
        }
        _ => Error::new_err(error.to_string()),
    }
}

/// Makes an exception of any other error.
pub(crate) fn argument(error: impl ToString) -> PyErr {
    Error::new_err(error.to_string())
}

/// Runs `work` without the interpreter lock. A panic, which is a defect, becomes an exception.
/// `Signals` is how `work` notices Ctrl-C.
pub(crate) fn without_lock<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Signals) -> PyResult<T> + Send,
) -> PyResult<T> {
    let signals = Signals::default();
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(|| work(&signals))));
    if let Some(raised) = signals.0.into_inner().ok().flatten() {
        return Err(raised);
    }
    match done {
        Ok(result) => result,
        Err(panic) if panic.is::<Interrupted>() => Err(PyKeyboardInterrupt::new_err(())),
        Err(panic) => Err(Error::new_err(format!("internal error: {}; please report this", text(&*panic)))),
    }
}

/// Looks for signals during a long call, and keeps the exception of their handler.
#[derive(Default)]
pub(crate) struct Signals(Mutex<Option<PyErr>>);

impl Signals {
    /// Runs the handlers of signals that have arrived, and `then` with the interpreter lock.
    /// Returns whether the call may go on.
    pub(crate) fn go_on(&self, then: impl FnOnce(Python<'_>) -> PyResult<()>) -> bool {
        let handled = Python::attach(|py| py.check_signals().and_then(|()| then(py)));
        let Err(raised) = handled else { return true };
        if let Ok(mut kept) = self.0.lock() {
            kept.get_or_insert(raised);
        }
        false
    }

    /// Ends the call from inside a callback that cannot return an error.
    pub(crate) fn leave(&self) -> ! {
        // Does not run the panic hook: nothing is printed.
        resume_unwind(Box::new(Interrupted))
    }
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic")
}
