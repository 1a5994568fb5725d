"""Mininet's logger: levels `debug` to `error`, with `output` between warnings and errors."""

import logging
import sys
import types
from functools import wraps
from logging import Logger

OUTPUT = 25
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "output": OUTPUT,
    "warning": logging.WARNING,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
LOGLEVELDEFAULT = OUTPUT
LOGMSGFORMAT = "%(message)s"


class StreamHandlerNoNewline(logging.StreamHandler):
    """Writes messages without a line end."""

    def emit(self, record):
        try:
            self.stream.write(self.format(record))
            self.flush()
        except Exception:
            self.handleError(record)


class MininetLogger(Logger):
    """A logger whose messages are several words, as `print` takes them."""

    def __init__(self, name="mininet"):
        super().__init__(name)
        handler = StreamHandlerNoNewline(sys.stdout)
        handler.setFormatter(logging.Formatter(LOGMSGFORMAT))
        self.addHandler(handler)
        self.ch = handler
        self.setLogLevel()

    def setLogLevel(self, levelname=None):
        if levelname and levelname not in LEVELS:
            raise Exception(f"unknown loglevel {levelname} (have: {', '.join(LEVELS)})")
        level = LEVELS.get(levelname, LOGLEVELDEFAULT)
        self.setLevel(level)
        self.handlers[0].setLevel(level)

    def output(self, msg, *args, **kwargs):
        if self.isEnabledFor(OUTPUT):
            self._log(OUTPUT, msg, args, **kwargs)


lg = MininetLogger()


def _words(method):
    @wraps(method)
    def said(self, *args, **kwargs):
        return method(self, "%s", " ".join(map(str, args)), **kwargs)

    return types.MethodType(said, lg)


for _name in ("debug", "info", "output", "warning", "error", "critical"):
    setattr(lg, _name, _words(getattr(MininetLogger, _name)))

info, output, warning, error, debug = lg.info, lg.output, lg.warning, lg.error, lg.debug
warn = warning
lg.warn = warning
setLogLevel = lg.setLogLevel
newline = "\n"


def makeListCompatible(fn):
    """Decorator of Mininet: a function that takes words as `print` does."""

    @wraps(fn)
    def compatible(*args):
        return fn(" ".join(map(str, args)))

    return compatible
