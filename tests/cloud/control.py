"""Nova's services, configured as docs/deploy/README.md has it."""

import contextlib
import os
import time

import devices
import parts
import processes
import runbook
from client import INTERRUPTED
from processes import Failed

# nova-computes with many nodes, and nova-computes with one: Nova cannot live-migrate to a service
# with several nodes (it takes the first one for the target).
SERVICES = 8
SINGLES = 4
LEAST = SERVICES + SINGLES
# The availability zone of the latter.
SINGLE = 'single'
# The module of driver.py, which cannot be imported here: it runs in the environment of Nova.
DRIVERS = 'many_nodes_as_ironic_has'
API = (2, 4)
SCHEDULERS = ('scheduler-1', 'scheduler-2')
SETTINGS = """[DEFAULT]
my_ip = 127.0.0.1
state_path = {home}
use_stderr = true
update_resources_interval = 600
report_interval = 10
service_down_time = 60
sync_power_state_interval = -1
running_deleted_instance_action = noop
initial_cpu_allocation_ratio = 1.0
initial_ram_allocation_ratio = 1.0
initial_disk_allocation_ratio = 1.0
reserved_host_memory_mb = 0
reserved_host_disk_mb = 0
[vnc]
enabled = false
[quota]
instances = -1
cores = -1
ram = -1
server_group_members = -1
[oslo_concurrency]
lock_path = {home}/locks
[oslo_messaging_notifications]
driver = noop
[cache]
enabled = true
backend = dogpile.cache.memcached
memcache_servers = 127.0.0.1:{memcached}
[filter_scheduler]
# Nova's own filters, and the filter of Blazar, which passes all hosts until Blazar has some.
available_filters = nova.scheduler.filters.all_filters
available_filters = blazarnova.scheduler.filters.blazar_filter.BlazarFilter
enabled_filters = ComputeFilter, ComputeCapabilitiesFilter, ImagePropertiesFilter,
    ServerGroupAntiAffinityFilter, ServerGroupAffinityFilter, PciPassthroughFilter, BlazarFilter
pci_in_placement = true
[pci]
{aliases}[scheduler]
enable_isolated_aggregate_filtering = true
# Several workers would share a TLS connection to Placement after the fork, and break it
# (Nova 34.0.0).
workers = 1
[conductor]
workers = 1
[service_user]
send_service_user_token = true
{credentials}[glance]
{credentials}[neutron]
{credentials}[cinder]
{credentials}"""


class Nova:
    """API, two conductors, two schedulers, and computes with many nodes each."""

    def __init__(self, cloud, database, rabbit, memcached):
        self._cloud = cloud
        self._database = database
        self._rabbit = rabbit
        self.port, = processes.free_ports(1)
        self.url = f'http://127.0.0.1:{self.port}/v2.1'
        self._home = f'{cloud.directory}/nova'
        self._memcached = memcached
        self.computes = {}
        for name in ('nova_api', 'nova_cell0', 'nova_cell1'):
            database.create(name)

    def configure(self, trusted):
        """Writes the configuration, with the certificate that clients of Placement trust."""
        credentials = self._cloud.credentials('nova')
        self._common = SETTINGS.format(home=self._home, memcached=self._memcached, credentials=credentials,
                                       aliases=devices.ALIASES)
        self._common += self._cloud.authtoken('nova') + placement_section(self._cloud, trusted)
        self.configure_cell('top', self._database.url('nova_cell0'))
        self.configure_cell('cell1', self._database.url('nova_cell1'))
        paste = f'{os.environ["CLOUD_NOVA"]}/etc/nova/api-paste.ini'
        os.symlink(paste, f'{self._home}/api-paste.ini')

    def configure_cell(self, name, connection):
        """Writes the configuration of the services of a cell with this database."""
        transport = f'[DEFAULT]\ntransport_url = {self._rabbit.url(name)}\n'
        databases = (f'[database]\nconnection = {connection}\n'
                     f'[api_database]\nconnection = {self._database.url("nova_api")}\n')
        parts.write(f'{self._home}/{name}.conf', f'{self._common}{transport}{databases}')
        # Computes have no database.
        parts.write(f'{self._home}/compute-{name}.conf', f'{self._common}{transport}')

    def manage(self, *words, accepted=(0,)):
        """Runs nova-manage against cell1; returns its output."""
        return self._cloud.run(*self.manager(), *words, accepted=accepted)

    def manager(self, config='cell1'):
        """The command nova-manage with the configuration of a cell."""
        return parts.program('nova', 'nova-manage'), '--config-file', f'{self._home}/{config}.conf'

    def create(self):
        """Creates the schemas and the cells."""
        parts.at_once(lambda: self.manage('api_db', 'sync'),
                      lambda: self.create_schema('top'),
                      lambda: self.create_schema('cell1'))
        self.manage('cell_v2', 'map_cell0', '--database_connection', self._database.url('nova_cell0'))
        self.create_cell('cell1', self._database.url('nova_cell1'))

    def create_schema(self, cell):
        self._cloud.run(*self.manager(cell), 'db', 'sync', '--local_cell')

    def create_cell(self, name, connection):
        """Makes a cell known; returns its UUID."""
        return self.manage('cell_v2', 'create_cell', '--verbose', '--name', name, '--database_connection', connection,
                           '--transport-url', self._rabbit.url(name)).split()[-1]

    def start(self, hosts):
        self.start_api()
        self.start_conductor('top')
        self.start_conductor('cell1')
        self.start_schedulers()
        shared = hosts - SINGLES
        ends = [shared * number // SERVICES for number in range(SERVICES + 1)] + list(range(shared + 1, hosts + 1))
        for number, (first, end) in enumerate(zip(ends, ends[1:]), 1):
            self.computes[f'compute-{number}'] = range(first, end)
            self.start_compute(f'compute-{number}')

    def start_api(self, own=''):
        """Starts the API, with more settings."""
        parts.write(f'{self._home}/api.conf', own)
        return parts.uwsgi(
            self._cloud, 'nova-api', 'nova', 'nova.wsgi.osapi_compute:application', self.port, API,
            OS_NOVA_CONFIG_DIR=self._home, OS_NOVA_CONFIG_FILES='api-paste.ini;top.conf;api.conf')

    def start_conductor(self, cell, own=''):
        name = f'conductor-{cell}'
        self._service(f'nova-{name}', name, program('conductor'), cell, own)

    def start_schedulers(self, own=''):
        for name in SCHEDULERS:
            nova = self._cloud.placement.nova
            self._service(f'nova-{name}', name, nova.scheduler(), 'top', own, **nova.environment)

    def restart(self, own=''):
        """Restarts what keeps a list of the cells: the API, which gets more settings, and the schedulers."""
        for name in ('api', *SCHEDULERS):
            self._cloud.expects_end(f'nova-{name}').stop()
        self.start_api(own)
        self.start_schedulers()

    @contextlib.contextmanager
    def settings(self, own):
        """The API, the conductor that schedules boots, and schedulers that read limits have more settings."""
        self._restart_top(own)
        try:
            yield
        finally:
            if not INTERRUPTED.is_set():
                self._restart_top('')

    def _restart_top(self, own):
        has_limits = self._cloud.placement.nova.has_limits
        for name in ('api', 'conductor-top', *(SCHEDULERS if has_limits else ())):
            self._cloud.expects_end(f'nova-{name}').stop()
        api = self.start_api(own)
        self.start_conductor('top', own)
        if has_limits:
            self.start_schedulers(own)
        api.until(lambda: processes.answers(f'http://127.0.0.1:{self.port}/'), 300)

    @property
    def singles(self):
        """The nova-computes with one node."""
        return list(self.computes)[SERVICES:]

    def start_compute(self, host, cell='cell1', nodes=None, driver='Nodes', own=''):
        """Starts a nova-compute with these nodes, by default with those of its first start. The driver is
        a class of driver.py."""
        nodes = nodes or self.computes[host]
        environment = {'CLOUD_NODES_BEFORE': str(nodes.start), 'CLOUD_NODES': str(len(nodes))}
        command = parts.program('nova', 'python'), f'{parts.HERE}/driver.py'
        own = f'compute_driver = {DRIVERS}.{driver}\nstate_path = {self._home}/{host}\n{own}'
        own += self._cloud.placement.nova.compute_settings
        return self._service(f'nova-{host}', host, command, f'compute-{cell}', own, **environment)

    def _service(self, log, host, command, config, own='', **environment):
        file = parts.write(f'{self._home}/{host}/own.conf', f'[DEFAULT]\nhost = {host}\n{own}')
        return self._cloud.start(log, *command, '--config-file', f'{self._home}/{config}.conf', '--config-file', file,
                                 env=os.environ | environment)

    def remove_compute(self, client, host):
        """Stops a nova-compute without servers, and deletes its service, if it has one yet, and its nodes."""
        self._cloud.expects_end(f'nova-{host}').stop()
        for service in client.services():
            if service['host'] == host:
                client.request('compute', 'DELETE', f'/os-services/{service["id"]}')

    def until_ready(self, client, hosts, seconds=900):
        """Waits until all nodes are reported, mapped and up."""
        started = time.monotonic()
        while len(self._nodes_in_cell()) < hosts:
            self._cloud.look_for_ended()
            if time.monotonic() - started > seconds:
                raise Failed(f'{len(self._nodes_in_cell())} of {hosts} nodes are reported after {seconds} s')
            time.sleep(1)
        self.manage('cell_v2', 'discover_hosts')
        while min(sum(host['state'] == 'up' for host in client.hypervisors()), client.placement_inventories()) < hosts:
            self._cloud.look_for_ended()
            if time.monotonic() - started > seconds:
                raise Failed(f'not all of {hosts} nodes are up with an inventory in Placement after {seconds} s')
            time.sleep(1)

    def query(self, statement):
        """Returns the rows of the database of cell1."""
        return [row.split('\t') for row in self._database.query(f'USE nova_cell1; {statement}')]

    def _nodes_in_cell(self):
        return self._database.query('SELECT uuid FROM nova_cell1.compute_nodes WHERE deleted = 0')


def program(name):
    return (parts.program('nova', f'nova-{name}'),)


def placement_section(cloud, trusted):
    """Returns the `[placement]` section of docs/deploy/README.md with these addresses."""
    section = runbook.block('README.md', 'ini')
    values = {'https://keystone.example:5000/v3': cloud.keystone.url, 'NOVA_PASS': parts.SERVICE_PASSWORD}
    for written, own in values.items():
        if written not in section:
            raise Failed(f'docs/deploy/README.md has no {written} in [placement]')
        section = section.replace(written, own)
    return f'{section.rstrip()}\ncafile = {trusted}\n'
