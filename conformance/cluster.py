"""Clusters under test, one per configuration, started and stopped by a command."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import tempfile

import neighbour
from nodes import Nodes
from ports import free_ports

# Configurations of upstream's fixtures, translated to placementd.
PROFILES = {
    'legacy': '[auth]\nstrategy = "noauth2"\n'
              '[policy]\nenforce_new_defaults = false\n',
    'secure': '[auth]\nstrategy = "noauth2"\n'
              '[policy]\nenforce_new_defaults = true\n',
    'open': '[auth]\nstrategy = "noauth2"\n'
            '[policy]\nenforce_new_defaults = false\nfile = "{directory}/policy.yaml"\n',
    'cors': '[auth]\nstrategy = "noauth2"\n'
            '[policy]\nenforce_new_defaults = false\n'
            '[cors]\nallowed_origin = ["http://valid.example.com"]\n',
}


class Cluster:
    """A running cluster of one profile; a context manager that returns its `Nodes`.

    `command` is a list of arguments; it has the options and the output of scripts/run-cluster.
    With `partition`, the suite runs in a partition of its own, isolated from the default one.
    """

    def __init__(self, command, profile, choice: random.Random, partition=False):
        self._command = command
        self._partition = partition
        self._profile = profile
        self._choice = choice

    def __enter__(self):
        self._directory = tempfile.mkdtemp(prefix=f'placement-conformance-{self._profile}-')
        self._data = os.path.join(self._directory, 'cluster')
        try:
            return self._start()
        except BaseException:
            self.__exit__()
            raise

    def _start(self):
        port = free_ports(40)
        output = subprocess.run(
            self._command + ['--clean', '--detach', '--no-sample', '--dir', self._data,
                             '--base-port', str(port), '--config', self._write_config()],
            check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True).stdout
        started = json.loads(output)['nodes']
        self._nodes = Nodes([node['api'] for node in started], self._choice)
        if self._partition:
            neighbour.create_partition(started[0]['data_dir'])
        return self._nodes

    def __exit__(self, *_):
        subprocess.run(self._command + ['--stop', '--dir', self._data], check=False,
                       stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        shutil.rmtree(self._directory, ignore_errors=True)

    def dump(self, path):
        """Writes a dump of the reference's database, like `sqlite3 .dump`."""
        with sqlite3.connect(os.path.join(self._data, 'placement.db')) as database:
            with open(path, 'w', encoding='utf-8') as file:
                file.writelines(f'{line}\n' for line in database.iterdump())

    def _write_config(self):
        if self._profile == 'open':
            with open(os.path.join(self._directory, 'policy.yaml'), 'w') as file:
                file.write(open_policy())
        path = os.path.join(self._directory, 'placementd.toml')
        with open(path, 'w') as file:
            file.write(PROFILES[self._profile].format(directory=self._directory))
        return path


def open_policy():
    """A policy file that allows everyone everything; the names of the rules come from upstream."""
    from placement import policies
    names = [rule.name for rule in policies.list_rules() if rule.name != 'admin_api']
    return ''.join(f'"{name}": "@"\n' for name in names)
