"""The services around Nova: database, messages, tokens, cache, stand-ins."""

import base64
import concurrent.futures
import hashlib
import json
import os
import sys

import processes

HERE = os.path.dirname(os.path.abspath(__file__))
ADMIN_PASSWORD = 'the-first-admin'
SERVICE_PASSWORD = 'of-a-service'
REGION = 'RegionOne'
VHOSTS = ('top', 'cell1', 'cell2', 'blazar')


def program(service, name):
    """Returns a program of the environment that scripts/cloud made for a service."""
    return os.path.join(os.environ[f'CLOUD_{service.upper()}'], 'bin', name)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as file:
        file.write(text)
    return path


def at_once(*tasks):
    """Runs functions in parallel; fails with the first failure. They must not start services, which end
    with the thread that started them."""
    with concurrent.futures.ThreadPoolExecutor(len(tasks)) as pool:
        for future in [pool.submit(task) for task in tasks]:
            future.result()


class RabbitMq:
    """RabbitMQ with a node name server of its own, both on loopback."""

    def __init__(self, cloud):
        home = f'{cloud.directory}/rabbitmq'
        options = processes.unprivileged(home)
        self.port, distribution, names = processes.free_ports(3)
        salt = os.urandom(4)
        hashed = base64.b64encode(salt + hashlib.sha256(salt + b'nova').digest()).decode()
        everything = {'configure': '.*', 'write': '.*', 'read': '.*'}
        definitions = {
            'users': [{'name': 'nova', 'password_hash': hashed, 'tags': '',
                       'hashing_algorithm': 'rabbit_password_hashing_sha256'}],
            'vhosts': [{'name': name} for name in VHOSTS],
            'permissions': [{'user': 'nova', 'vhost': name, **everything} for name in VHOSTS],
        }
        write(f'{home}/definitions.json', json.dumps(definitions))
        write(f'{home}/rabbitmq.conf', f'listeners.tcp.1 = 127.0.0.1:{self.port}\n'
              f'load_definitions = {home}/definitions.json\n'
              'disk_free_limit.absolute = 50MB\nlog.console = true\nlog.file = false\n')
        write(f'{home}/enabled_plugins', '[].\n')
        environment = os.environ | {
            'HOME': home, 'ERL_EPMD_PORT': str(names), 'ERL_EPMD_ADDRESS': '127.0.0.1',
            'RABBITMQ_NODENAME': 'cloud@localhost', 'RABBITMQ_DIST_PORT': str(distribution),
            'RABBITMQ_CONFIG_FILE': f'{home}/rabbitmq.conf', 'RABBITMQ_MNESIA_BASE': f'{home}/data',
            'RABBITMQ_LOG_BASE': f'{home}/log', 'RABBITMQ_ENABLED_PLUGINS_FILE': f'{home}/enabled_plugins',
            # The script then becomes the server, instead of starting it.
            'RUNNING_UNDER_SYSTEMD': 'true'}
        cloud.start('epmd', 'epmd', '-port', str(names), env=environment, **options)
        self.process = cloud.start('rabbitmq', '/usr/lib/rabbitmq/bin/rabbitmq-server', env=environment, **options)

    def until_ready(self):
        self.process.until(lambda: processes.accepts(self.port), 300)

    def url(self, vhost):
        return f'rabbit://nova:nova@127.0.0.1:{self.port}/{vhost}'


class Memcached:
    """The cache of validated tokens."""

    def __init__(self, cloud):
        self.port, = processes.free_ports(1)
        options = processes.unprivileged(f'{cloud.directory}/memcached')
        cloud.start('memcached', 'memcached', '-l', '127.0.0.1', '-p', str(self.port), '-U', '0', **options)


class StandIns:
    """Glance, Neutron and Cinder."""

    def __init__(self, cloud):
        self.port, = processes.free_ports(1)
        self._process = cloud.start('stand-ins', sys.executable, f'{HERE}/stand_ins.py', str(self.port))
        self.url = f'http://127.0.0.1:{self.port}'


class Keystone:
    """Keystone under uwsgi, with Fernet tokens."""

    def __init__(self, cloud, database):
        self._cloud = cloud
        self.port, = processes.free_ports(1)
        self.url = f'http://127.0.0.1:{self.port}/v3'
        self._home = f'{cloud.directory}/keystone'
        database.create('keystone')
        repositories = ''.join(f'[{section}]\nkey_repository = {self._home}/{section}\n'
                               for section in ('fernet_tokens', 'fernet_receipts', 'credential'))
        write(f'{self._home}/keystone.conf', f'[database]\nconnection = {database.url("keystone")}\n{repositories}'
              '[token]\nprovider = fernet\nexpiration = 86400\n')

    def create(self):
        """Creates its schema, keys and first user."""
        self._manage('db_sync')
        user = processes.shell('id -un').strip()
        group = processes.shell('id -gn').strip()
        self._manage('fernet_setup', '--keystone-user', user, '--keystone-group', group)
        urls = [word for interface in ('admin', 'internal', 'public')
                for word in (f'--bootstrap-{interface}-url', self.url)]
        self._manage('bootstrap', '--bootstrap-password', ADMIN_PASSWORD, '--bootstrap-region-id', REGION, *urls)

    def _manage(self, *words):
        processes.run(program('keystone', 'keystone-manage'), '--config-file', f'{self._home}/keystone.conf', *words)

    def start(self):
        uwsgi(self._cloud, 'keystone', 'keystone', 'keystone.wsgi.api:application', self.port, (2, 2),
              OS_KEYSTONE_CONFIG_DIR=self._home).until(lambda: processes.answers(self.url), 300)


def uwsgi(cloud, name, service, module, port, size, *more, **environment):
    """Starts a WSGI application with this many processes and threads."""
    count, threads = size
    return cloud.start(
        name, program(service, 'pyuwsgi'), '--http-socket', f'127.0.0.1:{port}', '--master', '--need-app',
        '--die-on-term', '--no-orphans', '--lazy-apps', '--disable-logging', '--buffer-size', '65535',
        '--processes', str(count), '--threads', str(threads), '--socket-timeout', '60',
        # Otherwise uwsgi closes connections without notice.
        '--add-header', 'Connection: close', '--virtualenv', os.environ[f'CLOUD_{service.upper()}'],
        *(more or ('--module', module)), env=os.environ | environment)
