"""Boots go on while the cloud moves from placementd to openstack-placement and back, with the commands of
docs/deploy/moving.md."""

import shutil
import time

import checks
import measure
import runbook
from cutover import CutOver
from fleet import Fleet
from placements import OpenStackPlacement

# Twice as many fit on the least number of hosts.
COUNT = 60
# Boots run for this long before a move.
BEFORE_S = 5


def run(cloud, new_row):
    row, ours, meter = new_row('out'), cloud.placement, cloud.meter
    old = Old(cloud, ours)
    steps = CutOver(cloud.directory, old.database, ours.nodes)
    cloud.meter = measure.Meter(lambda: old.pids() + [node.pid for node in ours.nodes])
    try:
        ours.haproxy.use(runbook.servers_of_move(old.port, ours.nodes, out=True))
        boot(cloud, row, 'out', lambda: steps.move_out(old, 'placement'))
        for node in ours.nodes:
            node.stop_cleanly()
        cloud.placement = old
        check(cloud, row)
        cloud.placement = ours

        row = new_row('in')
        for node in ours.nodes:
            shutil.rmtree(f'{node.directory}/data')
        ours.haproxy.use(runbook.servers_of_move(old.port, ours.nodes))
        boot(cloud, row, 'in', lambda: steps.move_in(old))
        ours.haproxy.use()
        ours.ctl('backup', f'{cloud.directory}/after-move.backup')
        check(cloud, row)
        Fleet(cloud.client).delete_all()
        checks.nothing_left(cloud, row)
    finally:
        cloud.meter.stop()
        cloud.placement, cloud.meter = ours, meter
        old.database.stop()


class Old(OpenStackPlacement):
    """openstack-placement behind the haproxy of the nodes, as the Placement of the cloud."""

    def __init__(self, cloud, ours):
        super().__init__(cloud)
        self.haproxy = ours.haproxy


def boot(cloud, row, prefix, move):
    """Boots servers, and moves in the meantime."""
    moving = Moving(move)
    with row.measured(cloud):
        row.add(Fleet(cloud.client).boot(COUNT, 'small', prefix, moving.tick))
    row.must(moving.boots_went_on, 'the boots ended before the move')
    slowest_ms = max(ms for times in row.requests.by_route.values() for ms in times)
    row.note(f'the move took {moving.took_s:.1f} s, the slowest request {slowest_ms / 1000:.1f} s')


class Moving:
    """A move that begins some seconds after the first boot."""

    def __init__(self, move):
        self._move = move
        self._begins = time.monotonic() + BEFORE_S
        self.took_s = 0.0
        self.boots_went_on = False

    def tick(self):
        """Is called until the last boot has ended."""
        if self.took_s:
            self.boots_went_on = True
        elif time.monotonic() > self._begins:
            started = time.monotonic()
            self._move()
            self.took_s = time.monotonic() - started


def check(cloud, row):
    checks.all_active(row, row.boots)
    failed = row.requests.failed
    row.must(not failed, f'{len(failed)} requests failed, such as {failed[:1]}')
    checks.consistent(cloud, row)
    checks.audits(cloud, row)
