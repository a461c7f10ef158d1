"""A cluster of three nodes behind `placementctl web`, whose leaders are killed and restarted."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request

from ports import free_ports

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUN_CLUSTER = os.path.join(ROOT, 'scripts', 'run-cluster')
PLACEMENTCTL = os.environ['PLACEMENTCTL']
READY_S = 60


class Cluster:
    """Stops the cluster when the context ends."""

    def __enter__(self):
        self._directory = tempfile.mkdtemp(prefix='placement-browser-')
        self._data = os.path.join(self._directory, 'cluster')
        self._started = []
        try:
            output = subprocess.run(
                [RUN_CLUSTER, '--nodes', '3', '--clean', '--detach', '--no-sample', '--dir', self._data,
                 '--base-port', str(free_ports(30))],
                check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True).stdout
            self.nodes = json.loads(output)['nodes']
            self.endpoints = ','.join(f'unix:{node["data_dir"]}/admin.sock' for node in self.nodes)
            self._web = subprocess.Popen([PLACEMENTCTL, '--endpoint', self.endpoints, 'web'],
                                         stdout=subprocess.PIPE, text=True)
            self._started.append(self._web)
            self.address = self._web.stdout.readline().strip()
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        for process in self._started:
            process.kill()
            process.wait()
        subprocess.run([RUN_CLUSTER, '--stop', '--dir', self._data], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        shutil.rmtree(self._directory, ignore_errors=True)

    def leader(self):
        """Returns the leader, or None."""
        # Exit status 2: a node does not answer.
        status = subprocess.run([PLACEMENTCTL, '--endpoint', self.endpoints, 'status', '-o', 'json'],
                                check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        leader = json.loads(status or '{}').get('leader')
        return next((node for node in self.nodes if node['id'] == leader), None)

    def kill(self, node):
        """Kills a node; returns a function that restarts it."""
        of = f'/proc/{node["pid"]}'
        with open(f'{of}/cmdline', 'rb') as arguments, open(f'{of}/environ', 'rb') as environment:
            command = arguments.read().split(b'\0')[:-1]
            variables = dict(one.split(b'=', 1) for one in environment.read().split(b'\0') if one)
        directory = os.readlink(f'{of}/cwd')
        os.kill(node['pid'], signal.SIGKILL)

        def start():
            process = subprocess.Popen(command, env=variables, cwd=directory, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self._started.append(process)
            node['pid'] = process.pid
            until = time.monotonic() + READY_S
            while not is_ready(node):
                if time.monotonic() > until:
                    raise RuntimeError(f'node {node["id"]} is not ready after {READY_S} s')
                time.sleep(0.1)
        return start


class Killer(threading.Thread):
    """Kills and restarts leaders until it is stopped."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.killed = 0
        self.error = None
        self._cluster = cluster
        self._ended = threading.Event()

    def run(self):
        try:
            while not self._ended.is_set():
                leader = self._cluster.leader()
                if leader is not None:
                    start = self._cluster.kill(leader)
                    self.killed += 1
                    self._ended.wait(3)
                    start()
                self._ended.wait(3)
        except Exception as error:
            self.error = error

    def end(self):
        self._ended.set()
        self.join()


def is_ready(node):
    try:
        with urllib.request.urlopen(f'{node["api"]}/readyz', timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False
