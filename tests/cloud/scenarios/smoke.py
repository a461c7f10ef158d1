"""Boots, a resize and deletions, while a part of Placement is killed."""

import checks
from fleet import Fleet

COUNT = 10


def run(cloud, new_row):
    row, client, fleet = new_row('first boots'), cloud.client, Fleet(cloud.client)
    with row.measured(cloud):
        boots = row.add(fleet.boot(COUNT, 'small', 'smoke'))
    if not checks.all_active(row, boots):
        return
    checks.consistent(cloud, row)
    row = new_row('boots during a failure')
    killed = []

    def kill_once():
        if not killed:
            killed.append(cloud.placement.kill())
            row.note(killed[0])

    with row.measured(cloud):
        checks.all_active(row, row.add(fleet.boot(COUNT, 'small', 'killed', kill_once)))
    server = boots[0].id
    client.act(server, 'resize', {'flavorRef': 'medium'})
    client.until(server, 'VERIFY_RESIZE')
    client.act(server, 'confirmResize')
    client.until(server, 'ACTIVE')
    checks.finish(cloud, row)
