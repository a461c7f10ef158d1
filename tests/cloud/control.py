"""Nova's services, configured as docs/deploy/README.md has it."""

import os
import time

import parts
import processes
import runbook
from processes import Failed

# nova-computes with many nodes, and nova-computes with one: Nova cannot live-migrate to a service with
# several nodes (it takes the first one for the target).
SERVICES = 8
SINGLES = 4
LEAST = SERVICES + SINGLES
# The availability zone of the latter.
SINGLE = 'single'
# The class in driver.py, which cannot be imported here: it runs in the environment of Nova.
DRIVER = 'many_nodes_as_ironic_has.Nodes'
API = (2, 4)
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
[oslo_concurrency]
lock_path = {home}/locks
[oslo_messaging_notifications]
driver = noop
[cache]
enabled = true
backend = dogpile.cache.memcached
memcache_servers = 127.0.0.1:{memcached}
[filter_scheduler]
# Nova's own, and that of Blazar, which passes all hosts until Blazar has some.
available_filters = nova.scheduler.filters.all_filters
available_filters = blazarnova.scheduler.filters.blazar_filter.BlazarFilter
enabled_filters = ComputeFilter, ComputeCapabilitiesFilter, ImagePropertiesFilter,
    ServerGroupAntiAffinityFilter, ServerGroupAffinityFilter, BlazarFilter
[scheduler]
# More workers share a TLS connection to Placement after the fork, and break it (Nova 34.0.0).
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
        common = SETTINGS.format(home=self._home, memcached=self._memcached, credentials=credentials)
        common += self._cloud.authtoken('nova') + placement_section(self._cloud, trusted)
        for name, cell in (('top', 'nova_cell0'), ('cell1', 'nova_cell1')):
            transport = f'[DEFAULT]\ntransport_url = {self._rabbit.url(name)}\n'
            databases = (f'[database]\nconnection = {self._database.url(cell)}\n'
                         f'[api_database]\nconnection = {self._database.url("nova_api")}\n')
            parts.write(f'{self._home}/{name}.conf', f'{common}{transport}{databases}')
        # Computes have no database.
        parts.write(f'{self._home}/compute.conf', f'{common}{transport}')
        paste = f'{os.environ["CLOUD_NOVA"]}/etc/nova/api-paste.ini'
        os.symlink(paste, f'{self._home}/api-paste.ini')

    def manage(self, *words, accepted=(0,)):
        """Runs nova-manage against cell1; returns its output."""
        return self._cloud.run(*self.manager(), *words, accepted=accepted)

    def manager(self, config='cell1'):
        """The command nova-manage with the configuration of a cell."""
        return parts.program('nova', 'nova-manage'), '--config-file', f'{self._home}/{config}.conf'

    def create(self):
        """Creates the schemas and the cells."""
        parts.at_once(lambda: self.manage('api_db', 'sync'),
                      lambda: self.manage('db', 'sync', '--local_cell'),
                      lambda: self._cloud.run(*self.manager('top'), 'db', 'sync', '--local_cell'))
        self.manage('cell_v2', 'map_cell0', '--database_connection', self._database.url('nova_cell0'))
        self.manage('cell_v2', 'create_cell', '--name', 'cell1', '--database_connection',
                    self._database.url('nova_cell1'), '--transport-url', self._rabbit.url('cell1'))

    def start(self, hosts):
        parts.uwsgi(self._cloud, 'nova-api', 'nova', 'nova.wsgi.osapi_compute:application', self.port, API,
                    OS_NOVA_CONFIG_DIR=self._home, OS_NOVA_CONFIG_FILES='api-paste.ini;top.conf')
        services = {'conductor-top': 'top', 'conductor-cell1': 'cell1', 'scheduler-1': 'top', 'scheduler-2': 'top'}
        for name, config in services.items():
            self._service(f'nova-{name}', name, program(name), config)
        shared = hosts - SINGLES
        ends = [shared * number // SERVICES for number in range(SERVICES + 1)] + list(range(shared + 1, hosts + 1))
        for number, (first, end) in enumerate(zip(ends, ends[1:]), 1):
            self.computes[f'compute-{number}'] = range(first, end)
            self.start_compute(f'compute-{number}')

    @property
    def singles(self):
        """The nova-computes with one node."""
        return list(self.computes)[SERVICES:]

    def start_compute(self, host):
        nodes = self.computes[host]
        environment = {'CLOUD_NODES_BEFORE': str(nodes.start), 'CLOUD_NODES': str(len(nodes))}
        command = parts.program('nova', 'python'), f'{parts.HERE}/driver.py'
        own = f'compute_driver = {DRIVER}\nstate_path = {self._home}/{host}\n'
        return self._service(f'nova-{host}', host, command, 'compute', own, **environment)

    def _service(self, log, host, command, config, own='', **environment):
        file = parts.write(f'{self._home}/{host}/own.conf', f'[DEFAULT]\nhost = {host}\n{own}')
        return self._cloud.start(log, *command, '--config-file', f'{self._home}/{config}.conf', '--config-file', file,
                                 env=os.environ | environment)

    def until_ready(self, client, hosts, seconds=900):
        """Waits until all nodes are reported and mapped."""
        started = time.monotonic()
        while len(self._nodes_in_cell()) < hosts:
            self._cloud.look_for_ended()
            if time.monotonic() - started > seconds:
                raise Failed(f'{len(self._nodes_in_cell())} of {hosts} nodes are reported after {seconds} s')
            time.sleep(1)
        self.manage('cell_v2', 'discover_hosts')
        while len(client.hypervisors()) < hosts or client.placement_inventories() < hosts:
            self._cloud.look_for_ended()
            if time.monotonic() - started > seconds:
                raise Failed(f'not all of {hosts} nodes have an inventory in Placement after {seconds} s')
            time.sleep(1)

    def _nodes_in_cell(self):
        return self._database.query('SELECT uuid FROM nova_cell1.compute_nodes WHERE deleted = 0')


def program(name):
    return (parts.program('nova', f'nova-{name.split("-")[0]}'),)


def placement_section(cloud, trusted):
    """Returns the `[placement]` section of docs/deploy/README.md with these addresses."""
    section = runbook.block('README.md', 'ini')
    values = {'https://keystone.example:5000/v3': cloud.keystone.url, 'NOVA_PASS': parts.SERVICE_PASSWORD}
    for written, own in values.items():
        if written not in section:
            raise Failed(f'docs/deploy/README.md has no {written} in [placement]')
        section = section.replace(written, own)
    return f'{section.rstrip()}\ncafile = {trusted}\n'
