"""The scenarios, in the order in which they run. Each is a module whose `run(cloud, new_row)` makes one
row of figures or several."""

from fleet import Fleet
from placements import Ours
from processes import Failed
from report import Row

from . import (boots, cell_down, emptying, groups, heal, last_slots, leader_loss, limits, moves, moving, multi_create,
               nested, quota_race, reservation, reserved, smoke)

ALL = {'smoke': smoke, 'boots': boots, 'multi-create': multi_create, 'last-slots': last_slots,
       'leader-loss': leader_loss, 'moves': moves, 'emptying': emptying,
       'groups': groups, 'nested': nested, 'quota-race': quota_race, 'limits': limits,
       'heal': heal, 'reservation': reservation, 'reserved': reserved, 'cell-down': cell_down, 'moving': moving}
# Scenarios for placementd with Nova's own scheduler.
OURS = ('limits', 'moving')
# Scenarios for placementd, with Nova's scheduler and with claims.
PLACEMENTD = ('emptying', 'reserved')


def run(name, cloud, rows):
    """Runs a scenario, and adds its rows. Runs it once more if the database of Nova crashed."""
    if name in OURS and cloud.placement.name != Ours.name:
        return
    if name in PLACEMENTD and not isinstance(cloud.placement, Ours):
        return
    first = len(rows)
    if attempt(name, cloud, rows):
        print(f'{name} is repeated', flush=True)
        del rows[first:]
        attempt(name, cloud, rows)


def attempt(name, cloud, rows):
    """Runs a scenario, and adds its rows; returns whether the database of Nova crashed."""

    def new_row(part=None):
        if rows_of_this:
            rows_of_this[-1].show()
        row = Row(f'{name}: {part}' if part else name, cloud.placement.name)
        rows_of_this.append(row)
        rows.append(row)
        return row

    rows_of_this = []
    try:
        ALL[name].run(cloud, new_row)
    except Failed as failure:
        (rows_of_this[-1] if rows_of_this else new_row()).must(False, str(failure))
        crashed = cloud.restart_crashed_database()
        # The next scenario begins with an empty cloud.
        Fleet(cloud.client).delete_all()
        return crashed
    except KeyboardInterrupt:
        rows_of_this[-1].must(False, 'interrupted')
        raise
    finally:
        rows_of_this[-1].show()
    return False
