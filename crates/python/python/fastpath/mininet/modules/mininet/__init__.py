"""Mininet's modules over labs of fastpath."""

from pkgutil import extend_path

# Modules that are not here, such as `mininet.examples`, may come from elsewhere.
__path__ = extend_path(__path__, __name__)
