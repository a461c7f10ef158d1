"""The services of the drill: openstack-placement, the nodes, and the balancer in front of both."""

import os
import signal
import sys

import processes
from processes import Process


class Upstream:
    """openstack-placement under uwsgi, below /placement like the nodes."""

    _process = None

    def __init__(self, directory, database, name, port):
        self.url = f'http://127.0.0.1:{port}/placement'
        self.port = port
        self._log = f'{directory}/uwsgi-{name}.log'
        self._programs = os.path.dirname(sys.executable)
        config = f'{directory}/{name}'
        os.mkdir(config)
        with open(f'{config}/placement.conf', 'w') as file:
            file.write(f'[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = {database.url(name)}\n')
        self._environment = os.environ | {'OS_PLACEMENT_CONFIG_DIR': config}
        processes.run(f'{self._programs}/placement-manage', '--config-dir', config, 'db', 'sync', env=self._environment)

    def start(self):
        self._process = Process(
            self._log, f'{self._programs}/pyuwsgi', '--master', '--need-app', '--die-on-term', '--no-orphans',
            '--disable-logging', '--manage-script-name', '--mount', '/placement=placement.wsgi.api:application',
            '--processes', '4', '--threads', '5', '--buffer-size', '65535', '--add-header', 'Connection: close',
            '--virtualenv', sys.prefix, '--http-socket', f'127.0.0.1:{self.port}', env=self._environment)
        self._process.until(lambda: processes.answers(f'{self.url}/'))

    def stop(self):
        if self._process:
            self._process.stop()


class Node:
    """A node of placementd with the settings of docs/deploy/haproxy.md."""

    _process = None

    def __init__(self, directory, settings, id, ports, members):
        self.id = id
        self.api = f'127.0.0.1:{ports[0]}'
        self.directory = f'{directory}/node-{id}'
        self._log = f'{directory}/node-{id}.log'
        os.mkdir(self.directory)
        with open(f'{self.directory}/placementd.toml', 'w') as file:
            file.write(f'node_id = {id}\ndata_dir = "{self.directory}/data"\ninitial_members = {members}\n'
                       f'{settings}listen = "{self.api}"\n[peer]\nlisten = "127.0.0.1:{ports[1]}"\n')

    @property
    def pid(self):
        return self._process.pid

    def send(self, sent):
        self._process.send(sent)

    def start(self):
        self._process = Process(self._log, 'placementd', '--config', f'{self.directory}/placementd.toml')
        return self

    def until_ready(self, seconds=60):
        self._process.until(lambda: processes.answers(f'http://{self.api}/readyz'), seconds)

    def leave(self):
        """Stops it with SIGTERM, so that it still answers requests that balancers send."""
        self._process.send(signal.SIGTERM)

    def stop_cleanly(self):
        """Stops it with SIGTERM, and waits until it has ended."""
        self._process.stop()

    def stop(self):
        if self._process:
            self._process.stop(signal.SIGKILL)


def three_nodes(directory, settings):
    ports = processes.free_ports(6)
    members = [f'{id}=127.0.0.1:{ports[2 * id - 1]}' for id in (1, 2, 3)]
    return [Node(directory, settings, id, ports[2 * id - 2:2 * id], members) for id in (1, 2, 3)]


class Haproxy:
    """HAProxy with the configuration of the runbook."""

    def __init__(self, directory, text, port):
        file = f'{directory}/haproxy.cfg'
        with open(file, 'w') as config:
            config.write(text)
        self._process = Process(f'{directory}/haproxy.log', 'haproxy', '-db', '-f', file)
        self._process.until(lambda: processes.accepts(port))

    def stop(self):
        self._process.stop()
