"""Removal of what is left: labs end with their interpreter, so there is little."""

import subprocess

from fastpath.program import program
from mininet.lab import NETWORK
from mininet.log import info


def sh(cmd):
    return subprocess.run(cmd, shell=True, capture_output=True, check=False).stdout.decode(errors="replace")


def killprocs(pattern):
    sh(f"pkill -9 -f {pattern}")


class Cleanup:
    """Functions to be called at the end."""

    callbacks = []

    @classmethod
    def cleanup(cls):
        info("*** Removing labs whose engine was killed\n")
        NETWORK.down()
        import json

        listed = subprocess.run([program(), "lab", "list", "--json"], capture_output=True, check=False)
        labs = json.loads(listed.stdout or "[]")
        for lab in labs:
            if lab["name"].startswith("mn-") and not lab["alive"]:
                subprocess.run([program(), "lab", "down", lab["name"]], capture_output=True, check=False)
        for callback in cls.callbacks:
            callback()
        info("*** Cleanup complete.\n")

    @classmethod
    def addCleanupCallback(cls, callback):
        if callback not in cls.callbacks:
            cls.callbacks.append(callback)


cleanup = Cleanup.cleanup
addCleanupCallback = Cleanup.addCleanupCallback
