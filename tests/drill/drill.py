"""Moves a cloud from openstack-placement to three nodes and back, under load, as
docs/deploy/moving.md describes."""

import argparse
import concurrent.futures
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import content
import processes
import runbook
from databases import MariaDb, PostgreSql
from load import Load
from processes import Failed, Process, step
from services import Haproxy, Upstream, three_nodes

DATABASES = {'mariadb': MariaDb, 'postgresql': PostgreSql}
# Longest time without an answer to any client, for 5,000 hosts with 100,000 consumers on two cores.
LONGEST_GAP_S = 15
LOAD_S = 3
# Limit on the consumers compared: openstack-placement answers some 150 requests per second.
COMPARED_MAX = 10_000
# On PostgreSQL, openstack-placement 16.0.0 answers each GET /usages of microversion 1.38 and later
# with 500 and logs this.
NOT_ON_POSTGRESQL = 'psycopg2.errors.GroupingError'


def main():
    options = parse()
    # sys.exit also closes everything on the stack.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix='placement-drill-'))
        os.chmod(directory, 0o711)
        try:
            Drill(options, directory, stack).run()
        except Failed as failure:
            show_logs(directory)
            sys.exit(f'FAILED: {failure}')


def parse():
    parser = argparse.ArgumentParser(prog='scripts/drill', description=__doc__)
    parser.add_argument('--hosts', type=int, default=100, help='default: %(default)s')
    parser.add_argument('--consumers', type=int, default=300, help='default: %(default)s')
    parser.add_argument('--database', choices=DATABASES, default='mariadb', help='default: %(default)s')
    parser.add_argument('--release', action='store_true', help='run the binaries of a release')
    return parser.parse_args()


def show_logs(directory):
    for name in sorted(os.listdir(directory)):
        if name.endswith('.log'):
            with open(os.path.join(directory, name), errors='replace') as log:
                print(f'--- {name}', *log.read().splitlines()[-8:], sep='\n', file=sys.stderr)


class Drill:
    """The move in and the move out; everything that they start is on the stack."""

    def __init__(self, options, directory, stack):
        self._options = options
        self._directory = directory
        self._stack = stack
        self._gaps_s = []
        cloud = f'{options.hosts} hosts and {options.consumers} consumers'
        with step(f'openstack-placement on {options.database}, {cloud}'):
            self._database = self._kept(DATABASES[options.database](directory))
            self._old = self._upstream('placement')
            self._old.start()
            content.fill(self._database.url('placement'), options.hosts, options.consumers)
        self._nodes = three_nodes(directory, runbook.block('haproxy.md', 'toml'))
        port, = processes.free_ports(1)
        self._url = f'http://127.0.0.1:{port}/placement'
        self._kept(Haproxy(directory, runbook.balancer(directory, port, self._old.port, self._nodes), port))
        self._load = Load(runbook.nova(self._url), directory, options.hosts)

    def run(self):
        self._rehearse()
        self._under_load('move in', self._move_in)
        self._rehearse_back()
        self._back = self._upstream('back', self._old.port)
        self._under_load('move out', self._move_out)
        if max(self._gaps_s) > LONGEST_GAP_S:
            raise Failed(f'no client got an answer for {max(self._gaps_s):.1f} s; the limit is {LONGEST_GAP_S} s')

    def _kept(self, service):
        self._stack.callback(service.stop)
        return service

    def _upstream(self, name, port=None):
        self._database.create(name)
        port = port or processes.free_ports(1)[0]
        return self._kept(Upstream(self._directory, self._database, name, port))

    def _sh(self, command, directory=None):
        """Runs a command of the runbook."""
        return processes.shell(command.replace('/run/haproxy', self._directory), cwd=directory or self._directory,
                               env=os.environ | self._database.environment)

    def _rehearse(self):
        self._import()
        self._compare_with_replay(self._old.url, 'placement.backup')

    def _import(self, database='placement'):
        """Checks the dump of a database; returns the digest of its content."""
        for file in ('placement.sql', 'placement.backup'):
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join(self._directory, file))
        with step('dump'):
            self._sh(runbook.command('Rehearse', self._database.dump).replace('placement >', f'{database} >'))
        with step('import'):
            return self._sh(runbook.command('Rehearse', 'placementd import')).split()[-1]

    def _compare_with_replay(self, url, backup):
        """Compares a service with a `replay` of a backup."""
        port, = processes.free_ports(1)
        address = f'127.0.0.1:{port}'
        replay = Process(f'{self._directory}/replay.log', 'placementd', 'replay', f'{self._directory}/{backup}',
                         '--listen', address)
        try:
            replay.until(lambda: processes.accepts(port))
            self._compare(url, f'http://{address}')
        finally:
            replay.stop(signal.SIGINT)

    def _compare(self, url, other):
        if self._options.consumers > COMPARED_MAX:
            return print('(not compared request by request: it would take too long)')
        # Progress is shown on standard error.
        comparison = subprocess.run(['placementctl', 'compare', url, other], check=False, text=True,
                                    stdout=subprocess.PIPE)
        *differences, count = comparison.stdout.splitlines() or ['placementctl compare failed']
        print(count, flush=True)
        differences = [line for line in differences if NOT_ON_POSTGRESQL not in line]
        if differences or not count.endswith('responses'):
            raise Failed('\n'.join([count, *differences[:10]]))

    def _move_in(self):
        with step('hold requests'):
            self._sh(runbook.command('Cut over', 'placement/hold state ready'))
            self._until_idle('old')
        with step('stop openstack-placement'):
            self._old.stop()
        self._import()
        with step('restore'):
            self._restore()
        with step('start three nodes'):
            for node in self._nodes:
                self._kept(node.start())
            for node in self._nodes:
                node.until_ready()
        with step('release the held requests'):
            self._sh(runbook.command('Cut over', 'node-1 state ready'))

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
        return self._sh(command.replace('placement.backup', f'{self._directory}/placement.backup'), node.directory)

    def _rehearse_back(self):
        rehearsed = self._upstream('rehearsal')
        with step('export'):
            self._exported(f'{self._database.load} rehearsal')
        digest = self._import('rehearsal')
        if digest not in self._exported('tail -1'):
            raise Failed(f'the digest {digest} of the database differs from that of the exported cluster')
        rehearsed.start()
        self._compare(rehearsed.url, self._url)
        rehearsed.stop()

    def _exported(self, into):
        """Pipes an export of the cluster into another program; returns the output of that program."""
        command = runbook.command('Move out', 'placementd export', f'| {self._database.load} ')
        command = command.replace('/var/lib/placementd', f'{self._nodes[0].directory}/data')
        return self._sh(f'{command.split("|")[0]}| {into}')

    def _move_out(self):
        with step('hold requests'):
            self._sh(runbook.command('Move out', 'placement/hold state ready'))
            self._until_idle(*(f'node-{node.id}' for node in self._nodes))
        with step('export'):
            self._exported(f'{self._database.load} back')
        for node in self._nodes:
            node.leave()
        with step('start openstack-placement'):
            self._back.start()
        with step('release the held requests'):
            self._sh(runbook.command('Cut over', 'placement/old state ready'))

    def _until_idle(self, *servers):
        """Waits until these servers of the balancer have no request under way."""
        show = runbook.command('Cut over', 'show stat')
        while any(self._sh(show.replace('old', server)) != f'{server},0\n' for server in servers):
            time.sleep(0.05)

    def _under_load(self, what, move):
        """Moves while clients claim and read, then looks for everything that was acknowledged."""
        load = self._load
        load.start()
        time.sleep(LOAD_S)
        started = time.monotonic()
        move()
        took = time.monotonic() - started
        time.sleep(LOAD_S)
        load.stop()
        with step(f'check acknowledged writes of {len(load.acknowledged)} consumers'):
            load.look()
        print(f'==> {what}: {took:.1f} s. The load got {load.answers} answers, the slowest after {load.slowest_s:.1f} s; '
              f'the longest time without one was {load.longest_gap_s:.1f} s', flush=True)
        if load.failures:
            raise Failed(f'{len(load.failures)} requests failed, such as {load.failures[0]}')
        self._gaps_s.append(load.longest_gap_s)


if __name__ == '__main__':
    main()
