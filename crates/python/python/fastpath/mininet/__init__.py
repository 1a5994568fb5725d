"""Runs scripts written for Mininet 2.3, with no Mininet, no Open vSwitch and no kernel module.

``python -m fastpath.mininet SCRIPT`` puts ``modules/`` first on the path: its modules are called
``mininet.*`` and have Mininet's names. ``fastpath-mn`` is Mininet's command line ``mn``.

Hosts and links are those of a lab of ``fastpath``: see ``modules/mininet/lab.py``.
"""
