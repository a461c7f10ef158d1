"""Lost and orphaned allocations, and the commands that find and repair them."""

import uuid

import checks
from fleet import Fleet

COUNT = 6
LOST = 3
# Exit codes of nova-manage: it repaired something; there was nothing to repair; it found orphans;
# it deleted them.
HEALED, NOTHING_TO_HEAL, FOUND, DELETED = 0, 4, 3, 4


def run(cloud, new_row):
    row, client, fleet = new_row(), cloud.client, Fleet(cloud.client)
    boots = row.add(fleet.boot(COUNT, 'small', 'heal'))
    if not checks.all_active(row, boots):
        return
    for boot in boots[:LOST]:
        client.request('placement', 'DELETE', f'/allocations/{boot.id}')
    row.must(len(checks.differences(client)) == LOST, f'{LOST} allocations are deleted, and Placement shows others')
    ends(cloud, row, HEALED, 'heal_allocations')
    checks.consistent(cloud, row)
    ends(cloud, row, NOTHING_TO_HEAL, 'heal_allocations')
    orphan = str(uuid.uuid4())
    claim(client, orphan)
    ends(cloud, row, FOUND, 'audit')
    if hasattr(cloud.placement, 'ctl'):
        status, output, errors = checks.audited(cloud)
        row.must(status == FOUND and orphan in output, f'placementctl consumers audit: {status} {output} {errors}')
    ends(cloud, row, DELETED, 'audit', '--delete')
    checks.consistent(cloud, row)
    ends(cloud, row, 0, 'sync_aggregates')
    checks.audits(cloud, row)
    fleet.delete_all()
    checks.nothing_left(cloud, row)


def claim(client, consumer):
    """Claims resources for a consumer that Nova does not know."""
    provider = client.providers()[0]['uuid']
    project = client.project('demo')
    client.request('placement', 'PUT', f'/allocations/{consumer}', {
        'allocations': {provider: {'resources': {'VCPU': 1}}}, 'project_id': project, 'user_id': project,
        'consumer_generation': None, 'consumer_type': 'INSTANCE'})


def ends(cloud, row, expected, *words):
    status, output, errors = cloud.tried(*cloud.nova.manager(), 'placement', *words)
    row.must(status == expected, f'nova-manage placement {" ".join(words)} ended with {status}, not {expected}: '
             f'{output[-300:]} {errors[-300:]}')
