"""Many boots at once in a project with a limit, which Nova checks before a boot, and after it has claimed
(`recheck_quota`). With claims, Placement checks the limit in the step that claims, and Nova does not check again."""

import checks
import parts
from fleet import Fleet
from placements import Claims

LIMIT = 20
COUNT = 40
ROUNDS = 10
UNLIMITED = 1_000_000
# Nova counts servers in its own database, and all others with `GET /usages` of Placement.
LIMITED = ('servers', 'class:VCPU')
RESOURCES = (*LIMITED, 'class:MEMORY_MB', 'class:DISK_GB', 'server_metadata_items', 'server_injected_files',
             'server_injected_file_content_bytes', 'server_injected_file_path_bytes', 'server_key_pairs',
             'server_groups', 'server_group_members')
SETTINGS = """[quota]
driver = nova.quota.UnifiedLimitsDriver
recheck_quota = {recheck}
[oslo_limit]
endpoint_id = {endpoint}
{credentials}"""


def run(cloud, new_row):
    client = cloud.client
    endpoint = endpoint_of_nova(client)
    limits = register(client, endpoint)
    has_claims = cloud.placement.name == Claims.name
    for recheck in (False,) if has_claims else (True, False):
        settings = SETTINGS.format(recheck=recheck, endpoint=endpoint['id'], credentials=cloud.credentials('nova'))
        with cloud.nova.settings(settings):
            for name in LIMITED:
                row = new_row(f'{name}, {"with" if recheck else "without"} recheck')
                set_limit(client, limits[name], LIMIT)
                race(cloud, row, recheck, has_claims)
                set_limit(client, limits[name], UNLIMITED)


def endpoint_of_nova(client):
    service, = client.get('identity', '/services?type=compute')['services']
    endpoints = client.get('identity', f'/endpoints?service_id={service["id"]}&interface=public')['endpoints']
    return endpoints[0]


def register(client, endpoint):
    """Makes sure that Keystone has the limits of Nova, which limit nothing; returns the ids of those of the project
    `demo` by their names."""
    place = {'service_id': endpoint['service_id'], 'region_id': parts.REGION}
    defaults = [{**place, 'resource_name': name, 'default_limit': UNLIMITED} for name in RESOURCES]
    own = [{**place, 'project_id': client.project('demo'), 'resource_name': name, 'resource_limit': UNLIMITED}
           for name in LIMITED]
    # The first scenario with limits creates them.
    if not client.get('identity', f'/registered_limits?service_id={endpoint["service_id"]}')['registered_limits']:
        client.request('identity', 'POST', '/registered_limits', {'registered_limits': defaults})
        client.request('identity', 'POST', '/limits', {'limits': own})
    # A client of a project gets the limits of this project only.
    found = client.get('identity', f'/limits?service_id={endpoint["service_id"]}')['limits']
    for limit in found:
        set_limit(client, limit['id'], UNLIMITED)
    return {limit['resource_name']: limit['id'] for limit in found}


def set_limit(client, limit, amount):
    client.request('identity', 'PATCH', f'/limits/{limit}', {'limit': {'resource_limit': amount}})


def race(cloud, row, recheck, has_claims):
    active, undone, held = [], 0, 0
    for number in range(ROUNDS):
        counts = one_round(cloud, row, number)
        active.append(counts[0])
        undone += counts[1]
        held += counts[2]
    row.note(f'{len(active)} times {COUNT} boots with a limit of {LIMIT}: {sum(count > LIMIT for count in active)} '
             f'times more were ACTIVE, {sum(count < LIMIT for count in active)} times fewer: {active}')
    if has_claims:
        row.note(f'Placement refused {undone} boots')
        row.must(set(active) == {LIMIT}, f'with a limit of {LIMIT}, {active} servers are ACTIVE')
        row.must(not held, f'{held} servers in ERROR hold resources')
    elif recheck:
        row.note(f'the second check undid {undone} boots; {held} of these servers in ERROR hold resources until '
                 'they are deleted, as Nova leaves them')
        row.must(max(active) <= LIMIT, f'{max(active)} servers are ACTIVE with a limit of {LIMIT} and a recheck')
    else:
        row.must(min(active) >= LIMIT, f'{min(active)} servers are ACTIVE, but Nova may refuse only above {LIMIT}')
    checks.nothing_left(cloud, row)


def one_round(cloud, row, number):
    """Returns how many servers became ACTIVE, how many the second check undid or Placement refused, and how many
    of those hold resources."""
    client, fleet = cloud.client, Fleet(cloud.client)
    with row.measured(cloud):
        boots = row.add(fleet.boot(COUNT, 'small', f'quota-{number}', threads=COUNT))
    refused = [boot for boot in boots if boot.status == 'REFUSED' and ' 403 ' in boot.fault]
    undone = [boot for boot in boots if boot.status == 'ERROR' and 'over a limit' in boot.fault]
    active = checks.active(boots)
    others = [boot for boot in boots if boot not in refused + undone + active]
    row.must(not others, f'{len(others)} boots failed, but not by the limit, such as {others[:1]}')
    consumers = client.allocations()
    held = sum(boot.id in consumers for boot in undone)
    for boot in undone:
        client.delete(boot.id)
    for boot in undone:
        client.until(boot.id, None)
    checks.consistent(cloud, row)
    fleet.delete_all()
    # Servers are gone before their allocations, which count in the next round.
    checks.consistent(cloud, row)
    return len(active), len(undone), held
