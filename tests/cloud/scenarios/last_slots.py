"""More servers than fit: all places are used, and those without one hold nothing and can be explained."""

import collections

import checks
from fleet import Fleet

FLAVOR, VCPUS = 'large', 8
# Requested servers per server that fits.
FACTOR = 4 / 3


def run(cloud, new_row):
    row, client, fleet = new_row(), cloud.client, Fleet(cloud.client)
    fit = room(client)
    wanted = round(fit * FACTOR)
    with row.measured(cloud):
        boots = row.add(fleet.boot(wanted, FLAVOR, 'slot'))
    active = [boot for boot in boots if boot.status == 'ACTIVE']
    without = [boot for boot in boots if boot.status == 'ERROR' and 'No valid host' in boot.fault]
    row.note(f'{fit} of {wanted} fit; {len(active)} ACTIVE, {len(without)} without a valid host')
    row.must(len(active) == fit, f'{len(active)} servers are ACTIVE, and {fit} fit')
    others = [boot for boot in boots if boot not in active and boot not in without]
    row.must(not others, f'{len(others)} servers are neither ACTIVE nor without a valid host, such as {others[:1]}')
    checks.consistent(cloud, row)
    if hasattr(cloud.placement, 'ctl'):
        explain(cloud, row, without)
    fleet.delete_all()
    checks.nothing_left(cloud, row)


def room(client):
    """How many servers of the flavor fit on empty hosts."""
    inventories = (client.get('placement', f'/resource_providers/{provider["uuid"]}/inventories')['inventories']
                   for provider in client.providers())
    return sum(inventory['VCPU']['total'] // VCPUS for inventory in inventories)


def explain(cloud, row, boots):
    """`placementctl explain` names the cause by the id of the request for each server."""
    causes, unexplained = collections.Counter(), []
    for boot in boots:
        status, output, errors = cloud.tried(*cloud.placement.ctl_command(), 'explain', boot.request)
        first = output.splitlines()[0] if output.strip() else ''
        causes[first.replace(boot.request, 'req-…')] += 1
        if status or not first:
            unexplained.append(f'{boot.request}: {status} {errors.strip()}')
    for cause, count in causes.most_common(4):
        row.note(f'explain, {count} times: {cause}')
    row.must(not unexplained, f'{len(unexplained)} refusals are not explained, such as {unexplained[:2]}')
