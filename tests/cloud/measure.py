"""What haproxy's log and the processes say about a scenario."""

import collections
import os
import re
import threading

TICKS_PER_S = os.sysconf('SC_CLK_TCK')
# … placement~ placement/node-1 0/0/0/3/3 200 209 - - ---- 17/17/3/2/0 0/0 "GET /placement/…"
LINE = re.compile(r' \S+/\S+ [-\d]+/[-\d]+/[-\d]+/[-\d]+/\+?(?P<ms>\d+) (?P<status>[-\d]+) '
                  r'.*"(?P<method>[A-Z]+) (?P<uri>\S+)')
UUID = re.compile(r'[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}')
SAMPLES_PER_S = 4


class Requests:
    """Requests that haproxy logged."""

    def __init__(self):
        self.by_route = collections.defaultdict(list)
        self.conflicts = collections.Counter()
        self.statuses = collections.Counter()
        self.failed = []

    def read(self, log, since):
        """Adds the part of a log that begins at this byte."""
        with open(log, errors='replace') as lines:
            lines.seek(since)
            for line in lines:
                self._add(line)

    def _add(self, line):
        match = LINE.search(line)
        if not match:
            return
        path = match['uri'].split('?')[0].removeprefix('/placement') or '/'
        route = f'{match["method"]} {UUID.sub("{uuid}", path)}'
        self.by_route[route].append(int(match['ms']))
        self.conflicts[route] += match['status'] == '409'
        self.statuses[match['status']] += 1
        if match['status'] not in ('200', '201', '204', '404', '409'):
            self.failed.append(line.strip())

    @property
    def count(self):
        return sum(self.statuses.values())

    def of(self, route):
        """Returns count, p50 and p99 in ms of one route; of all if it is None."""
        times = self.by_route[route] if route else [ms for route in self.by_route.values() for ms in route]
        return len(times), percentile(times, 50), percentile(times, 99)

    def table(self):
        """Lines of all routes, the most frequent first."""
        routes = sorted(self.by_route, key=lambda route: -len(self.by_route[route]))
        return [f'{count:7} {p50:6} {p99:6}  {route}' for route in routes for count, p50, p99 in [self.of(route)]]


def percentile(values, percent):
    """Nearest rank; 0 without values."""
    values = sorted(values)
    return values[max(0, -(-len(values) * percent // 100) - 1)] if values else 0


class Meter:
    """Processor time of processes and their children, also of processes that are killed and started again."""

    def __init__(self, pids):
        self._pids = pids
        self._seen = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        threading.Thread(target=self._sample, daemon=True).start()

    def _sample(self):
        while not self._stopping.wait(1 / SAMPLES_PER_S):
            self.seconds()

    def seconds(self):
        """Returns the sum since the meter was made, without the last 250 ms of killed processes."""
        with self._lock:
            children = children_of_all()
            todo = list(self._pids())
            while todo:
                pid = todo.pop()
                todo += children.get(pid, [])
                ticks = ticks_of(pid)
                if ticks:
                    self._seen[ticks[0]] = ticks[1]
            return sum(self._seen.values()) / TICKS_PER_S

    def stop(self):
        self._stopping.set()


def stat(pid):
    with open(f'/proc/{pid}/stat') as file:
        return file.read().rsplit(')', 1)[1].split()


def children_of_all():
    children = collections.defaultdict(list)
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            children[int(stat(pid)[1])].append(int(pid))
        except OSError:
            continue
    return children


def ticks_of(pid):
    """Returns the process (number and start time) and its ticks; None if it has ended."""
    try:
        fields = stat(pid)
    except OSError:
        return None
    return (pid, fields[19]), int(fields[11]) + int(fields[12])
