"""The scenarios, in the order in which they run. Each is a module whose `run(cloud, new_row)` makes one
row of figures or several."""

from fleet import Fleet
from placements import Ours
from processes import Failed
from report import Row

from . import (boots, cell_down, groups, heal, last_slots, leader_loss, moves, moving, nested, quota_race, reservation,
               smoke)

ALL = {'smoke': smoke, 'boots': boots, 'last-slots': last_slots, 'leader-loss': leader_loss, 'moves': moves,
       'groups': groups, 'nested': nested, 'quota-race': quota_race, 'heal': heal,
       'reservation': reservation, 'cell-down': cell_down, 'moving': moving}
# Scenarios that begin and end on placementd.
OURS = ('moving',)


def run(name, cloud, rows, repeats=1):
    """Runs a scenario, and adds its rows. Runs it again if the database of Nova crashed."""
    if name in OURS and cloud.placement.name != Ours.name:
        return

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
        if cloud.restarts_crashed_database() and repeats:
            cloud.nova.until_ready(cloud.client, cloud.hosts)
            Fleet(cloud.client).delete_all()
            rows[:] = (row for row in rows if row not in rows_of_this)
            rows_of_this.clear()
            return run(name, cloud, rows, repeats - 1)
        (rows_of_this[-1] if rows_of_this else new_row()).must(False, str(failure))
        # The next scenario begins with an empty cloud.
        Fleet(cloud.client).delete_all()
    except KeyboardInterrupt:
        rows_of_this[-1].must(False, 'interrupted')
        raise
    finally:
        if rows_of_this:
            rows_of_this[-1].show()
