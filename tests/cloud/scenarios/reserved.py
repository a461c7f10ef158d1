"""Room that is reserved for one project: other projects do not get it, and the project gets exactly what it has
reserved."""

import datetime
import signal
import time

import checks
import tokens
from control import SINGLE
from fleet import Fleet
from processes import Failed

from .reservation import boot, refused

# nova-computes with reserved room.
HOSTS = 2
# Requested servers more than fit.
EXCESS = 2
# Servers that are deleted, and booted again.
AGAIN = 2
# At most this long for a nova-compute to start.
STARTED_S = 120
ORDINARY = 'not-reserved'


def run(cloud, new_row):
    row, reserved = new_row(), tokens.Reservation(cloud)
    row.per_boot = False
    try:
        reserved.begin(nodes(cloud, cloud.nova.singles[:HOSTS]))
        restart(cloud)
        reserved.is_intact(row)
        fill(cloud, row, reserved)
        use(cloud, row, reserved)
        reserved.is_intact(row)
    finally:
        Fleet(cloud.client).delete_all()
        # Servers are gone before their allocations.
        checks.consistent(cloud, row, apart=reserved.consumers)
        reserved.end()
        # nova-compute fails boots as long as a deleted provider is in its cache, up to 300 s
        # ([compute] resource_provider_association_refresh).
        restart(cloud)
    checks.nothing_left(cloud, row)


def nodes(cloud, hosts):
    """Returns the names of the nodes of these nova-computes, by UUID."""
    return {node['id']: node['hypervisor_hostname'] for node in cloud.client.hypervisors()
            if node['service']['host'] in hosts}


def restart(cloud):
    """Kills the nova-computes with reserved room, which have no servers, and waits until they report again: by then
    they have compared their providers and consumers with Nova's."""
    hosts = cloud.nova.singles[:HOSTS]
    for host in hosts:
        cloud.expects_end(f'nova-{host}').stop(signal.SIGKILL)
        cloud.nova.start_compute(host)
    # The last report of a killed service may be written a moment later; the first one of the new
    # service takes longer.
    since = f'{datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=2):%Y-%m-%dT%H:%M:%S}'
    until = time.monotonic() + STARTED_S
    while late := [service['host'] for service in cloud.client.services()
                   if service['host'] in hosts and service['updated_at'] <= since]:
        cloud.look_for_ended()
        if time.monotonic() > until:
            raise Failed(f'{late} do not report {STARTED_S} s after their start')
        time.sleep(1)


def fill(cloud, row, reserved):
    """Servers of another project use up the zone. They do not get the reserved room, although all tokens are free."""
    client = cloud.client
    client.flavor(ORDINARY, tokens.VCPUS, tokens.MEMORY_MB, tokens.DISK_GB)
    fit = sum(tokens.fit(client, root) for root in nodes(cloud, cloud.nova.singles)) - reserved.servers
    with row.measured(cloud):
        boots = row.add(Fleet(client).boot(fit + EXCESS, ORDINARY, ORDINARY, availability_zone=SINGLE))
    active, without = checks.active(boots), checks.without_host(row, boots)
    row.note(f'{len(active)} of {len(boots)} servers of another project are ACTIVE, {reserved.servers} tokens are free')
    row.must(len(active) == fit, f'{len(active)} servers of another project are ACTIVE, and {fit} fit')
    row.must(reserved.used() == 0, f'{reserved.used()} tokens are used by another project')
    checks.consistent(cloud, row, apart=reserved.consumers)
    checks.explained(cloud, row, without)


def use(cloud, row, reserved):
    """The project boots one server more than it has tokens, deletes some, and boots as many again."""
    client, name, count = cloud.client, reserved.name, reserved.servers
    _, other = tokens.member(cloud, f'not-{name}')
    answer = other.ask('compute', 'GET', f'/flavors/{name}')
    row.must(answer.status_code == 404, f'another project sees the flavor: {answer.status_code} {answer.text[:300]}')
    with row.measured(cloud):
        boots = row.add(boot(client, reserved.user, 'reserved', name, count + 1))
    active = checks.active(boots)
    without = [one for one in boots if one not in active]
    row.note(f'{len(active)} of {len(boots)} servers of the project are ACTIVE with {count} tokens')
    refused(row, client, without)
    checks.explained(cloud, row, without)
    reserved.has_tokens(row, active)
    if not row.must(len(active) == count, f'{len(active)} servers of the project are ACTIVE with {count} tokens'):
        return

    deleted = active[:AGAIN]
    for one in deleted:
        client.delete(one.id)
    for one in deleted:
        client.until(one.id, None)
    reserved.until_used(count - len(deleted))
    with row.measured(cloud):
        again = row.add(boot(client, reserved.user, 'reserved-again', name, len(deleted)))
    checks.all_active(row, again)
    reserved.has_tokens(row, again)
    checks.consistent(cloud, row, apart=reserved.consumers | {one.id for one in boots + again})
    # Nova's own audit takes the consumers of reservations for orphans.
    status, output, errors = checks.audited(cloud)
    row.must(status == 0, f'placementctl consumers audit ended with {status}: {output[-300:]} {errors[-300:]}')
