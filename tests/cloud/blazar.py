"""Blazar, configured as its installation guide has it, with both kinds of reservations of instances."""

import datetime
import time

import parts
import processes
from client import Client
from processes import Failed

FREEPOOL = 'freepool'
SETTINGS = """[DEFAULT]
host = 127.0.0.1
use_stderr = true
os_auth_host = 127.0.0.1
os_auth_port = {keystone}
# Blazar joins these two with slashes; the path of Keystone's URL is /v3.
os_auth_prefix = v3
os_auth_version =
os_admin_username = blazar
os_admin_password = {password}
os_admin_project_name = service
os_region_name = {region}
cafile = {trusted}
transport_url = {transport}
# The API waits for Nova within a request.
rpc_response_timeout = 110
[manager]
plugins = physical.host.plugin, virtual.instance.plugin, flavor.instance.plugin
minutes_before_end_lease = 0
[database]
connection = {database}
[oslo_messaging_notifications]
driver = noop
"""
# At most this long for a lease to begin or to end; Blazar itself waits ten minutes for Nova to
# delete servers.
PATIENCE_S = 900


class Blazar:
    """Its manager and its API, with a database of their own."""

    def __init__(self, cloud):
        self._cloud = cloud
        self._home = f'{cloud.directory}/blazar'
        self._port, = processes.free_ports(1)
        cloud.database.create('blazar')
        text = SETTINGS.format(keystone=cloud.keystone.port, password=parts.SERVICE_PASSWORD, region=parts.REGION,
                               trusted=cloud.placement.haproxy.trusted, transport=cloud.rabbit.url('blazar'),
                               database=cloud.database.url('blazar'))
        self._config = parts.write(f'{self._home}/blazar.conf', text + cloud.authtoken('blazar'))
        cloud.run(parts.program('blazar', 'blazar-db-manage'), '--config-file', self._config, 'upgrade', 'head')
        self._register(cloud.client)
        # The catalog of older sessions does not have Blazar.
        self._admin = self.client('demo', 'admin', parts.ADMIN_PASSWORD)

    def _register(self, admin):
        user = admin.create('user', name='blazar', password=parts.SERVICE_PASSWORD, domain_id='default')
        admin.grant(admin.project('service'), user, 'admin')
        admin.register('reservation', f'http://127.0.0.1:{self._port}/v1')

    def client(self, project, user, password):
        return Client(self._cloud.keystone.url, self._cloud.placement.haproxy.trusted, project, user, password)

    def start(self):
        manager = self._cloud.start('blazar-manager', parts.program('blazar', 'blazar-manager'), '--config-file',
                                    self._config)
        parts.uwsgi(self._cloud, 'blazar-api', 'blazar', 'blazar.wsgi.api:application', self._port, (1, 4),
                    OS_BLAZAR_CONFIG_DIR=self._home).until(lambda: processes.accepts(self._port))
        manager.until(lambda: self._admin.ask('reservation', 'GET', '/os-hosts').status_code == 200, 300)

    def stop(self):
        for name in ('blazar-api', 'blazar-manager'):
            self._cloud.expects_end(name).stop()

    def add_host(self, node):
        """Gives a node to Blazar; returns its id there."""
        return self._admin.request('reservation', 'POST', '/os-hosts', {'name': node}).json()['host']['id']

    def remove_host(self, id):
        self._admin.request('reservation', 'DELETE', f'/os-hosts/{id}')


class Lease:
    """A lease of a user with one reservation of instances."""

    def __init__(self, user, name, **reservation):
        """Asks for a lease from now on; `refusal` is then None or Blazar's answer."""
        self._user = user
        self.name = name
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
        answer = user.ask('reservation', 'POST', '/leases', {
            'name': name, 'start_date': 'now', 'end_date': minute(end), 'events': [],
            'reservations': [{'affinity': None, **reservation}]})
        self.refusal = None
        if answer.status_code != 201:
            self.refusal = f'{answer.status_code} {answer.text}'
            return
        lease = answer.json()['lease']
        self.id = lease['id']
        # It is also the name of the flavor and of the aggregate.
        self.reservation = lease['reservations'][0]['id']
        self.resource_class = f'CUSTOM_RESERVATION_{self.reservation.replace("-", "_").upper()}'

    def until(self, status, seconds=PATIENCE_S):
        """Waits until the lease has this status, `None` until it is gone. Blazar looks for what is due every
        ten seconds."""
        started = time.monotonic()
        while (now := self._status()) != status:
            if now in (None, 'ERROR') or time.monotonic() - started > seconds:
                raise Failed(f'the lease is {now}, not {status}, after {time.monotonic() - started:.0f} s')
            time.sleep(1)

    def _status(self):
        answer = self._user.request('reservation', 'GET', f'/leases/{self.id}', accepted=(200, 404))
        return answer.json()['lease']['status'] if answer.status_code == 200 else None

    def end_soon(self):
        """Sets the end to the next full minute."""
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=1)
        self._user.request('reservation', 'PUT', f'/leases/{self.id}', {'end_date': minute(end)})

    def delete(self):
        """Deletes the lease, and waits until it is gone: the API answers 500 if that takes longer than
        `rpc_response_timeout`, and the manager goes on."""
        self._user.request('reservation', 'DELETE', f'/leases/{self.id}', accepted=(200, 204, 500))
        self.until(None)


def minute(date):
    """Blazar's dates have no seconds."""
    return f'{date:%Y-%m-%d %H:%M}'
