"""Limits of projects that placementd keeps: `placementctl limits sync` copies them from Keystone, and each write of
allocations is checked where it is decided. Nova's own quota is off, so nothing else limits the project."""

import collections
import json
import re
import tempfile

import checks
import parts
from fleet import Fleet
from report import CLAIM

from .quota_race import COUNT, LIMIT, LIMITED, RESOURCES, ROUNDS, UNLIMITED, endpoint_of_nova, register, set_limit

# Boots in the mode `report`, of which those above the limit are counted.
REPORTED = 25
# Another project with a limit in Keystone: it is copied too, as the login is for the whole system.
OTHER, OTHER_LIMIT = 'service', 7
LIMITS = '/placementd/v1/limits'
EXCEEDED = re.compile(r'^placement_limits_exceeded_total\{(.*)\} (\S+)$', re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')


def run(cloud, new_row):
    limits = Limits(cloud)
    try:
        for name in LIMITED:
            enforce(cloud, new_row(f'{name}, enforced'), limits, name)
        report(cloud, new_row('reported'), limits)
    finally:
        limits.remove()


def stored(name):
    """What placementd calls a limit of Nova; None if it does not have it."""
    if name == 'servers':
        return 'consumers'
    return name.removeprefix('class:') if name.startswith('class:') else None


class Limits:
    """The limits of Nova in Keystone, and their copy in placementd."""

    def __init__(self, cloud):
        self._cloud, self._client = cloud, cloud.client
        self.project, self._other = self._client.project('demo'), self._client.project(OTHER)
        endpoint = endpoint_of_nova(self._client)
        self._ids = register(self._client, endpoint)
        other = {'service_id': endpoint['service_id'], 'region_id': parts.REGION, 'project_id': self._other,
                 'resource_name': 'servers', 'resource_limit': OTHER_LIMIT}
        # 409: it exists, since the scenario is repeated.
        self._client.request('identity', 'POST', '/limits', {'limits': [other]}, accepted=(201, 409))

    def set(self, row, amounts):
        """Changes the limits of the project in Keystone, those without an amount to the highest, and copies all."""
        amounts = {name: amounts.get(name, UNLIMITED) for name in LIMITED}
        for name, amount in amounts.items():
            set_limit(self._client, self._ids[name], amount)
        plan = f'{tempfile.mkdtemp(dir=self._cloud.directory)}/limits.jsonl'
        for step in ('--plan', '--apply'):
            self._cloud.placement.ctl('limits', 'sync', step, plan)
        found = self._client.get('placement', LIMITS)
        copied = {'defaults': found['defaults'],
                  **{project: one['limits'] for project, one in found['projects'].items()}}
        expected = {'defaults': {stored(name): UNLIMITED for name in RESOURCES if stored(name)},
                    self.project: {stored(name): amount for name, amount in amounts.items()},
                    self._other: {'consumers': OTHER_LIMIT}}
        row.must(copied == expected, f'the copied limits are {copied}, not {expected}')

    def mode(self, mode):
        self._cloud.placement.ctl('limits', 'mode', mode)

    def used(self):
        """Returns what placementd counts for the project, by resource."""
        found = self._client.get('placement', f'{LIMITS}/usage?project={self.project}')['projects']
        return {resource: one['used'] for project in found for resource, one in project['resources'].items()}

    def remove(self):
        """Removes the copy, which would limit the next scenarios."""
        generation = self._client.get('placement', LIMITS)['generation']
        self._client.request('placement', 'PUT', LIMITS, {'generation': generation})


class Watch:
    """The highest usage that was seen while servers boot."""

    def __init__(self, limits):
        self._limits = limits
        self.highest = collections.Counter()
        self.count = 0

    def look(self):
        self.highest |= collections.Counter(self._limits.used())
        self.count += 1


def enforce(cloud, row, limits, name):
    """More boots at once than the limit of the project permits, again and again."""
    row.per_boot = False
    limits.set(row, {name: LIMIT})
    limits.mode('enforce')
    resource, watch, before = stored(name), Watch(limits), exceeded(cloud)
    active, without = [], []
    for number in range(ROUNDS):
        boots = one_round(cloud, row, watch, number)
        active.append(len(checks.active(boots)))
        without.append([boot for boot in boots if boot.status == 'ERROR'])
    row.note(f'{len(active)} times {COUNT} boots with a limit of {LIMIT}: {sum(count > LIMIT for count in active)} '
             f'times more were ACTIVE, {sum(count < LIMIT for count in active)} times fewer: {active}')
    row.must(max(active) <= LIMIT, f'{max(active)} servers are ACTIVE with a limit of {LIMIT}')
    most = watch.highest[resource]
    row.note(f'the usage of {resource} was read {watch.count} times: {most} at most')
    row.must(most <= LIMIT, f'{most} of {resource} are used with a limit of {LIMIT}')
    is_counted(cloud, row, before, resource, sum(map(len, without)))
    explained(cloud, row, limits, resource, without[-1])
    checks.nothing_left(cloud, row)


def one_round(cloud, row, watch, number):
    fleet = Fleet(cloud.client)
    with row.measured(cloud):
        boots = row.add(fleet.boot(COUNT, 'small', f'limits-{number}', during=watch.look, threads=COUNT))
    checks.without_host(row, boots)
    checks.consistent(cloud, row)
    fleet.delete_all()
    # Servers are gone before their allocations, which count in the next round.
    checks.consistent(cloud, row)
    return boots


def is_counted(cloud, row, before, resource, boots):
    """The refused writes are counted: Nova tries one host after the other for each boot without a host."""
    outcomes = exceeded(cloud) - before
    refused = outcomes.pop((resource, 'refused'), 0)
    row.note(f'{boots} boots found no host; {refused} writes were refused by the limit, '
             f'{row.requests.conflicts[CLAIM]} writes were answered 409')
    row.must(refused >= boots, f'{refused} refused writes are counted, and {boots} boots found no host')
    row.must(not outcomes, f'other exceeded limits are counted: {dict(outcomes)}')


def explained(cloud, row, limits, resource, boots):
    """`placementctl explain` names the limit by the id of a request."""
    message = f'Project {limits.project} is at its limit of {resource}: '
    named = 0
    for boot in boots:
        _, output, _ = cloud.tried(*cloud.placement.ctl_command(), 'explain', boot.request)
        named += message in output
    row.note(f'explain names the limit for {named} of {len(boots)} boots without a host')
    row.must(named, f'explain names the limit for none of {len(boots)} boots: "{message}…"')


def report(cloud, row, limits):
    """All boots are ACTIVE, and those above the limit are counted once for each limit."""
    limits.set(row, dict.fromkeys(LIMITED, LIMIT))
    limits.mode('report')
    before = exceeded(cloud)
    with row.measured(cloud):
        boots = row.add(Fleet(cloud.client).boot(REPORTED, 'small', 'limits-reported', threads=REPORTED))
    checks.all_active(row, boots)
    counted = dict(exceeded(cloud) - before)
    row.note(f'{len(checks.active(boots))} boots with a limit of {LIMIT}: the nodes count {counted}')
    expected = {(stored(name), 'reported'): REPORTED - LIMIT for name in LIMITED}
    row.must(counted == expected, f'{counted} exceeded limits are counted, not {expected}')
    over = json.loads(cloud.placement.ctl('limits', 'list', '--over', '-o', 'json'))
    over = {(one['project_id'], one['resource']): (one['used'], one['limit']) for one in over}
    expected = {(limits.project, stored(name)): (REPORTED, LIMIT) for name in LIMITED}
    row.must(over == expected, f'the usage is above the limits {over}, not {expected}')
    checks.finish(cloud, row)


def exceeded(cloud):
    """Returns how often all nodes together have counted an exceeded limit, by resource and outcome."""
    found = collections.Counter()
    for node in cloud.placement.nodes:
        metrics = cloud.run('curl', '--silent', '--show-error', '--fail', '--unix-socket',
                            f'{node.directory}/data/admin.sock', 'http://localhost/metrics')
        for labels, count in EXCEEDED.findall(metrics):
            labels = dict(LABEL.findall(labels))
            found[labels['resource'], labels['outcome']] += int(float(count))
    return found
