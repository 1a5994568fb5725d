"""Kernel modules and programs: none are needed."""

import shutil
import sys

from mininet.log import error


def lsmod():
    return ""


def rmmod(mod):
    return ""


def modprobe(mod):
    return ""


def moduleDeps(subtract=None, add=None):
    """No kernel module is needed."""


def pathCheck(*args, **kwargs):
    moduleName = kwargs.get("moduleName", "it")
    for arg in args:
        if not shutil.which(arg):
            error(f"Cannot find required executable {arg}.\nPlease make sure that {moduleName} is installed "
                  "and available in your $PATH.\n")
            sys.exit(1)
