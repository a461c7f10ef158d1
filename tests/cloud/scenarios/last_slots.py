"""More servers than fit: all places are used, and those without one hold nothing and can be explained."""

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
    active, without = checks.active(boots), checks.without_host(row, boots)
    row.note(f'{fit} of {wanted} fit; {len(active)} ACTIVE, {len(without)} without a valid host')
    row.must(len(active) == fit, f'{len(active)} servers are ACTIVE, and {fit} fit')
    checks.consistent(cloud, row)
    checks.explained(cloud, row, without)
    fleet.delete_all()
    checks.nothing_left(cloud, row)


def room(client):
    """How many servers of the flavor fit on empty hosts."""
    return sum(client.inventories(provider)['VCPU']['total'] // VCPUS for provider in client.providers())
