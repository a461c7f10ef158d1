"""Finds free ports on loopback."""

import random
import socket
import sys

FIRST, END = 20000, 32000


def free_ports(wanted, attempts=100):
    """Returns the first of `wanted` consecutive free ports."""
    for _ in range(attempts):
        base = random.randrange(FIRST, END, wanted)
        if all(is_free(port) for port in range(base, base + wanted)):
            return base
    sys.exit(f'no {wanted} consecutive free ports between {FIRST} and {END}')


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(('127.0.0.1', port))
        except OSError:
            return False
        return True
