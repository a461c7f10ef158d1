"""Figures of scenarios, and the table at the end."""

import collections
import contextlib
import os
import time

import measure

# The routes of a boot.
CANDIDATES = 'GET /allocation_candidates'
CLAIM = 'PUT /allocations/{uuid}'
# In place of the former, with nova-scheduler-placementd.
CLAIMS = 'POST /placementd/v1/claims'


class Row:
    """The figures of one scenario on one Placement, and what did not hold."""

    def __init__(self, scenario, placement):
        print(f'==> {scenario} on {placement}', flush=True)
        self.scenario = scenario
        self.placement = placement
        self.violations = []
        self.boots = []
        self.notes = []
        self.stray = 0
        self.requests = measure.Requests()
        self.cpu_s = 0.0
        self.boot_seconds = 0.0
        # False if most requests are not those of the boots.
        self.per_boot = True

    @contextlib.contextmanager
    def measured(self, cloud):
        """The part of the scenario whose requests and processor time count."""
        log = cloud.placement.haproxy.log
        since, before, started = os.path.getsize(log), cloud.meter.seconds(), time.monotonic()
        yield
        self.boot_seconds += time.monotonic() - started
        self.cpu_s += cloud.meter.seconds() - before
        self.requests.read(log, since)

    def add(self, boots):
        self.boots += boots
        return boots

    def note(self, text):
        self.notes.append(text)
        print(f'    {text}', flush=True)

    def must(self, holds, text):
        """Records what does not hold; returns whether it holds."""
        if not holds:
            self.violations.append(text)
            print(f'    VIOLATED: {text}', flush=True)
        return holds

    def states(self):
        return collections.Counter(boot.status for boot in self.boots)

    def cells(self):
        """The columns of the table."""
        count = len(self.boots)
        states = self.states()
        requests = self.requests
        times = [boot.seconds for boot in self.boots if boot.status == 'ACTIVE']
        cells = {
            'scenario': self.scenario, 'Placement': self.placement,
            'boots': count, 'ACTIVE': states['ACTIVE'], 'not ACTIVE': count - states['ACTIVE'],
            'time': f'{self.boot_seconds:.0f} s',
            'boot p50/p99': f'{measure.percentile(times, 50):.1f}/{measure.percentile(times, 99):.1f} s'}
        if requests.count:
            cells['requests'] = requests.count
            cells['requests per boot'] = f'{requests.count / count:.1f}' if self.per_boot else ''
            claim = CLAIMS if CLAIMS in requests.by_route else CLAIM
            for name, route in {'all': None, 'candidates': CANDIDATES, 'claim': claim}.items():
                _, p50, p99 = requests.of(route)
                cells[f'{name} p50/p99'] = f'{p50}/{p99} ms'
            cells['CPU'] = f'{self.cpu_s:.1f} s'
            cells['CPU per boot'] = f'{self.cpu_s * 1000 / count:.0f} ms' if self.per_boot else ''
            cells['409'] = requests.statuses['409']
            cells['failed'] = len(requests.failed)
        cells['stray allocations'] = self.stray
        cells['verdict'] = 'ok' if not self.violations else f'{len(self.violations)} violated'
        return {name: str(cell) for name, cell in cells.items()}

    def show(self):
        print('    ' + ', '.join(f'{name} {cell}' for name, cell in list(self.cells().items())[2:]), flush=True)
        if self.requests.count:
            print('      count    p50    p99  ms, by route', flush=True)
            print(*(f'    {line}' for line in self.requests.table()[:12]), sep='\n', flush=True)
            print(f'    statuses: {dict(self.requests.statuses)}', flush=True)
            for line in self.requests.failed[:3]:
                print(f'    {line}', flush=True)


def table(rows):
    """A table in Markdown."""
    names = list(dict.fromkeys(name for row in rows for name in row.cells()))
    lines = [names, ['---'] * len(names), *([row.cells().get(name, '') for name in names] for row in rows)]
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines)
