"""Boots while parts of Placement are killed, hang, restart or are away."""

import time

import checks
from fleet import Fleet

COUNT = 200


def run(cloud, new_row):
    for name, fault in cloud.placement.faults().items():
        row, fleet = new_row(name), Fleet(cloud.client)
        injector = Injector(fault)
        try:
            with row.measured(cloud):
                boots = row.add(fleet.boot(COUNT, 'small', name.split()[0], injector.tick))
        finally:
            injector.finish()
        row.note(f'{name}: {injector.times} times')
        row.must(injector.times, f'the boots ended before the first fault: {name}')
        cloud.placement.until_ready()
        checks.all_active(row, boots)
        checks.finish(cloud, row)


class Injector:
    """Runs the steps of a fault again and again. A step is a function and the pause after it in seconds."""

    def __init__(self, fault):
        self._fault = fault
        self._steps = iter(())
        self._next = 0.0
        self.times = 0

    def tick(self):
        if time.monotonic() < self._next:
            return
        step = next(self._steps, None)
        if step is None:
            if self.times >= self._fault.most:
                return
            self.times += 1
            self._steps = iter(self._fault.steps())
            step = next(self._steps)
        function, pause_s = step
        function()
        self._next = time.monotonic() + pause_s

    def finish(self):
        """Completes what has begun."""
        for function, _ in self._steps:
            function()
