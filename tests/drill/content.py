"""Writes a cloud straight into the database of openstack-placement: its API would take an hour."""

import datetime
import itertools

import sqlalchemy

CREATED = datetime.datetime(2026, 11, 1, 12, 30)
CLASSES = {'VCPU': 4096, 'MEMORY_MB': 4194304, 'DISK_GB': 65536}
TRAITS_OF_A_HOST = 30


def host(nth):
    """Returns the UUID of a host; the first host is 0."""
    return f'a0000000-0000-4000-8000-{nth:012}'


def fill(url, hosts, consumers):
    """Adds hosts with inventories, traits and an aggregate, and instances on them; the schema
    exists."""
    engine = sqlalchemy.create_engine(url)
    tables = sqlalchemy.MetaData()
    tables.reflect(engine)
    with engine.begin() as connection:
        rows = Rows(connection, tables.tables)
        add_hosts(rows, hosts)
        add_instances(rows, hosts, consumers)
    engine.dispose()


class Rows:
    """Inserts and reads rows within an open transaction."""

    def __init__(self, connection, tables):
        self._connection = connection
        self._tables = tables

    def add(self, table, rows):
        rows = ({'created_at': CREATED, **row} for row in rows)
        while piece := list(itertools.islice(rows, 10_000)):
            self._connection.execute(self._tables[table].insert(), piece)

    def ids(self, table, column):
        """Maps a column that identifies each row elsewhere to the row's id, in the order of the
        ids."""
        table = self._tables[table]
        found = sqlalchemy.select(table.c[column], table.c.id).order_by(table.c.id)
        return dict(self._connection.execute(found).all())

    def make_roots(self):
        providers = self._tables['resource_providers']
        self._connection.execute(providers.update().values(root_provider_id=providers.c.id))


def add_hosts(rows, hosts):
    rows.add('resource_providers', ({'uuid': host(nth), 'name': f'cmp-{nth}', 'generation': 3} for nth in range(hosts)))
    rows.make_roots()
    rows.add('placement_aggregates', [{'uuid': 'a6600000-0000-4000-8000-000000000001'}])
    aggregate, = rows.ids('placement_aggregates', 'uuid').values()
    providers = rows.ids('resource_providers', 'uuid').values()
    classes = rows.ids('resource_classes', 'name')
    traits = list(rows.ids('traits', 'name').values())[:TRAITS_OF_A_HOST]
    rows.add('inventories', (
        {'resource_provider_id': provider, 'resource_class_id': classes[name], 'total': total, 'reserved': 0,
         'min_unit': 1, 'max_unit': total, 'step_size': 1, 'allocation_ratio': 1.5}
        for provider in providers for name, total in CLASSES.items()))
    rows.add('resource_provider_traits', (
        {'resource_provider_id': provider, 'trait_id': trait} for provider in providers for trait in traits))
    rows.add('resource_provider_aggregates', (
        {'resource_provider_id': provider, 'aggregate_id': aggregate} for provider in providers))


def add_instances(rows, hosts, consumers):
    rows.add('projects', ({'external_id': f'project-{nth}'} for nth in range(50)))
    rows.add('users', ({'external_id': f'user-{nth}'} for nth in range(50)))
    rows.add('consumer_types', [{'name': 'INSTANCE'}])
    projects, users = (list(rows.ids(table, 'external_id').values()) for table in ('projects', 'users'))
    kind, = rows.ids('consumer_types', 'name').values()
    uuids = [f'c0000000-0000-4000-8000-{nth:012}' for nth in range(consumers)]
    rows.add('consumers', (
        {'uuid': uuid, 'project_id': projects[nth % 50], 'user_id': users[nth % 50], 'generation': 1,
         'consumer_type_id': kind} for nth, uuid in enumerate(uuids)))
    providers = list(rows.ids('resource_providers', 'uuid').values())
    classes = rows.ids('resource_classes', 'name')
    rows.add('allocations', (
        {'resource_provider_id': providers[nth % hosts], 'resource_class_id': classes[name], 'consumer_id': uuid,
         'used': used}
        for nth, uuid in enumerate(uuids) for name, used in (('VCPU', 2), ('MEMORY_MB', 4096), ('DISK_GB', 20))))
