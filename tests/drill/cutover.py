"""The steps of docs/deploy/moving.md between openstack-placement and three nodes behind haproxy."""

import concurrent.futures
import contextlib
import os
import re
import time

import processes
import runbook
from processes import Failed, step

# At most this long until requests under way have ended.
IDLE_S = 60


class CutOver:
    """Runs the commands of moving.md in a directory, which also has haproxy's `admin.sock`."""

    def __init__(self, directory, database, nodes):
        self.backup = f'{directory}/placement.backup'
        self._directory = directory
        self._database = database
        self._nodes = nodes

    def move_in(self, old):
        """Moves from openstack-placement to the nodes, whose data directories are empty."""
        with step('hold requests'):
            self._sh(runbook.command('Cut over', 'placement/hold state ready'))
            self._until_idle('old')
        with step('stop openstack-placement'):
            old.stop()
        self.convert()
        with step('restore'):
            self._restore()
        with step('start three nodes'):
            for node in self._nodes:
                node.start()
            for node in self._nodes:
                node.until_ready()
        with step('release the held requests'):
            self._sh(runbook.command('Cut over', 'node-1 state ready'))

    def move_out(self, back, name):
        """Moves from the nodes to an openstack-placement that is not started, on this empty database."""
        with step('hold requests'):
            self._sh(runbook.command('Move out', 'placement/hold state ready'))
            self._until_idle(*(f'node-{node.id}' for node in self._nodes))
        with step('export'):
            self.exported(f'{self._database.load} {name}')
        for node in self._nodes:
            node.leave()
        with step('start openstack-placement'):
            back.start()
        with step('release the held requests'):
            self._sh(runbook.command('Cut over', 'placement/old state ready'))

    def convert(self, database='placement'):
        """Dumps a database and converts the dump into a backup; returns the digest of its content."""
        for file in (f'{self._directory}/placement.sql', self.backup):
            with contextlib.suppress(FileNotFoundError):
                os.remove(file)
        with step('dump'):
            self._sh(runbook.command('Rehearse', self._database.dump).replace('placement >', f'{database} >'))
        with step('import'):
            return self._sh(runbook.command('Rehearse', 'placementd import')).split()[-1]

    def exported(self, into):
        """Pipes an export of the cluster into another program; returns the output of that program."""
        command = runbook.command('Move out', 'placementd export', f'| {self._database.load} ')
        command = command.replace('/var/lib/placementd', f'{self._nodes[0].directory}/data')
        return self._sh(f'{command.split("|")[0]}| {into}')

    def _restore(self):
        """Restores on the first node, then on the others at once with the cluster id that it
        printed."""
        first, *others = self._nodes
        printed = self._on(first, runbook.command('Cut over', 'placementd restore', without='CLUSTER_ID'))
        cluster = re.search('^new_cluster_id: (.*)$', printed, re.M)[1]
        further = runbook.command('Cut over', 'placementd restore', 'CLUSTER_ID').replace('CLUSTER_ID', cluster)
        with concurrent.futures.ThreadPoolExecutor() as both:
            list(both.map(lambda node: self._on(node, further), others))

    def _on(self, node, command):
        return self._sh(command.replace('placement.backup', self.backup), node.directory)

    def _sh(self, command, directory=None):
        """Runs a command of the runbook."""
        return processes.shell(command.replace('/run/haproxy', self._directory), cwd=directory or self._directory,
                               env=os.environ | self._database.environment)

    def _until_idle(self, *servers):
        """Waits until these servers of the balancer have no request under way."""
        show = runbook.command('Cut over', 'show stat')
        until = time.monotonic() + IDLE_S
        while busy := [server for server in servers if self._sh(show.replace('old', server)) != f'{server},0\n']:
            if time.monotonic() > until:
                raise Failed(f'{", ".join(busy)} still have requests after {IDLE_S} s')
            time.sleep(0.05)
