"""Moves a cloud from openstack-placement to three nodes and back, under load, as
docs/deploy/moving.md describes."""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time

import content
import processes
import runbook
from cutover import CutOver
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
    # scripts/drill describes the options.
    parser = argparse.ArgumentParser(prog='scripts/drill')
    parser.add_argument('--hosts', type=int, default=100)
    parser.add_argument('--consumers', type=int, default=300)
    parser.add_argument('--database', choices=DATABASES, default='mariadb')
    parser.add_argument('--release', action='store_true')
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
        nodes = three_nodes(directory, runbook.block('haproxy.md', 'toml'))
        for node in nodes:
            self._kept(node)
        self._cutover = CutOver(directory, self._database, nodes)
        port, = processes.free_ports(1)
        self._url = f'http://127.0.0.1:{port}/placement'
        self._kept(Haproxy(directory, runbook.balancer(directory, port, self._old.port, nodes), port))
        self._load = Load(runbook.nova(self._url), directory, options.hosts)

    def run(self):
        self._rehearse()
        self._under_load('move in', lambda: self._cutover.move_in(self._old))
        self._rehearse_back()
        back = self._upstream('back', self._old.port)
        self._under_load('move out', lambda: self._cutover.move_out(back, 'back'))
        if max(self._gaps_s) > LONGEST_GAP_S:
            raise Failed(f'no client got an answer for {max(self._gaps_s):.1f} s; the limit is {LONGEST_GAP_S} s')

    def _kept(self, service):
        self._stack.callback(service.stop)
        return service

    def _upstream(self, name, port=None):
        self._database.create(name)
        port = port or processes.free_ports(1)[0]
        return self._kept(Upstream(self._directory, self._database, name, port))

    def _rehearse(self):
        self._cutover.convert()
        self._compare_with_replay(self._old.url)

    def _compare_with_replay(self, url):
        """Compares a service with a `replay` of the backup."""
        port, = processes.free_ports(1)
        address = f'127.0.0.1:{port}'
        replay = Process(f'{self._directory}/replay.log', 'placementd', 'replay', self._cutover.backup, '--listen',
                         address)
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

    def _rehearse_back(self):
        rehearsed = self._upstream('rehearsal')
        with step('export'):
            self._cutover.exported(f'{self._database.load} rehearsal')
        digest = self._cutover.convert('rehearsal')
        if digest not in self._cutover.exported('tail -1'):
            raise Failed(f'the digest {digest} of the database differs from that of the exported cluster')
        rehearsed.start()
        self._compare(rehearsed.url, self._url)
        rehearsed.stop()

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
