"""More servers than fit: all places are used, and those without one hold nothing and can be explained. With
claims, no server is refused a place that another request has taken."""

import checks
from fleet import Fleet
from placements import Claims
from report import CLAIM, CLAIMS

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
    if cloud.placement.name == Claims.name:
        claims(row, active, without)
    checks.consistent(cloud, row)
    checks.explained(cloud, row, without)
    fleet.delete_all()
    checks.nothing_left(cloud, row)


def room(client):
    """How many servers of the flavor fit on empty hosts."""
    return sum(client.inventories(provider)['VCPU']['total'] // VCPUS for provider in client.providers())


def claims(row, active, without):
    """All servers are claimed with claims, and only those without a place can be refused."""
    sent, refused = len(row.requests.by_route[CLAIMS]), row.requests.conflicts[CLAIMS]
    row.note(f'{sent} claims for {len(active)} servers, {refused} of them refused')
    row.must(CLAIM not in row.requests.by_route, 'nova-scheduler claims without POST /placementd/v1/claims')
    row.must(sent - refused == len(active), f'{sent - refused} claims are accepted for {len(active)} servers')
    row.must(refused <= len(without), f'{refused} claims are refused, but only {len(without)} servers have no host')
