"""Many boots at once, then deletions."""

import checks
from fleet import Fleet

COUNT = 200


def run(cloud, new_row):
    row, fleet = new_row(), Fleet(cloud.client)
    with row.measured(cloud):
        boots = row.add(fleet.boot(COUNT, 'small', 'boot'))
    checks.all_active(row, boots)
    checks.finish(cloud, row)
