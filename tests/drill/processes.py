"""Programs that a drill or a cloud starts. Each has its own log, and none outlives the one that started it."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import time
import urllib.request

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Failed(Exception):
    """The run cannot go on, or has found a violation; the message describes it."""


@contextlib.contextmanager
def step(what):
    """Prints what is done and how long it took."""
    print(f'{what}: ', end='', flush=True)
    started = time.monotonic()
    yield
    print(f'{time.monotonic() - started:.1f} s', flush=True)


class Process:
    """A program that runs until it is stopped, or until the thread that started it ends, however that ends."""

    def __init__(self, log, *command, **options):
        self.command = command
        with open(log, 'ab') as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, preexec_fn=end_with_parent,
                **options)

    @property
    def pid(self):
        return self._process.pid

    def ended(self):
        """Returns the exit status, or None while it runs."""
        return self._process.poll()

    def send(self, sent):
        """Sends a signal."""
        self._process.send_signal(sent)

    def stop(self, sent=signal.SIGTERM, seconds=30):
        """Stops it cleanly; kills it if that takes too long."""
        self.send(sent)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def until(self, ready, seconds=60):
        """Waits until `ready()` is true."""
        started = time.monotonic()
        while not ready():
            if self._process.poll() is not None:
                raise Failed(f'{self.command[0]} ended with {self._process.returncode}')
            if time.monotonic() - started > seconds:
                raise Failed(f'{self.command[0]} is not ready after {seconds} s')
            time.sleep(0.02)


def end_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run(*command, **options):
    """Runs a program to its end."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, preexec_fn=end_with_parent, check=False, **options)
    if done.returncode:
        raise Failed(f'{" ".join(command)}\nended with {done.returncode}\n{done.stdout}')


def shell(command, **options):
    """Runs a line of the runbook; returns its output."""
    statuses = """trap 'echo "statuses: ${PIPESTATUS[*]}" >&2' ERR"""
    done = subprocess.run(['bash', '-euo', 'pipefail', '-c', f'{statuses}\n{command}'], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if done.returncode:
        raise Failed(f'{command}\nended with {done.returncode}\n{done.stdout}{done.stderr}')
    return done.stdout


def unprivileged(directory):
    """Creates a directory; returns the options that run a program as its owner, who is not root."""
    os.mkdir(directory)
    if os.geteuid() != 0:
        return {'cwd': directory}
    os.chown(directory, 1, 1)
    return {'cwd': directory, 'user': 1, 'group': 1, 'extra_groups': []}


def free_ports(count):
    """Returns free ports of loopback."""
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(('127.0.0.1', 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def accepts(address):
    """Whether something listens on a port of loopback or on a Unix socket."""
    family = socket.AF_INET if isinstance(address, int) else socket.AF_UNIX
    with socket.socket(family) as probe:
        place = ('127.0.0.1', address) if isinstance(address, int) else address
        return probe.connect_ex(place) == 0


def answers(url):
    """Whether a GET of the URL is answered with 200."""
    try:
        return urllib.request.urlopen(url, timeout=30).status == 200
    except OSError:
        return False
