"""The Placements: three nodes of placementd, also with Nova's scheduler of python/placementd_nova, or
openstack-placement, each behind haproxy."""

import collections.abc
import dataclasses
import os
import re
import signal
import time

import measure
import parts
import processes
import runbook
from processes import Failed
from services import three_nodes


# At most this long for a node to be ready, also on a busy machine.
READY_S = 300
# At most this long for the last request of a worker of haproxy.
WORKER_S = 90


class Haproxy:
    """HAProxy as docs/deploy/haproxy.md configures it, with TLS; only addresses differ."""

    def __init__(self, cloud, servers, check):
        self.port, = processes.free_ports(1)
        self.url = f'https://127.0.0.1:{self.port}/placement'
        self.certificate = f'{cloud.directory}/cloud.pem'
        self.log = cloud.log_of('haproxy')
        processes.run('openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj',
                      '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-out', self.certificate,
                      '-keyout', f'{cloud.directory}/cloud.key')
        # haproxy reads the key from the file of the certificate; clients trust that file without
        # the key.
        self.trusted = parts.write(f'{cloud.directory}/trusted.pem', open(self.certificate).read())
        with open(self.certificate, 'a') as both:
            both.write(open(f'{cloud.directory}/cloud.key').read())
        self._file = f'{cloud.directory}/haproxy.cfg'
        self._text = self._without_servers(cloud.directory, check)
        self._servers = ''.join(f'    server {name} {address}\n' for name, address in servers)
        parts.write(self._file, self._text + self._servers)
        self._process = cloud.start('haproxy', 'haproxy', '-W', '-db', '-f', self._file)
        self._process.until(lambda: processes.accepts(self.port))

    def _without_servers(self, directory, check):
        text = runbook.block('haproxy.md', 'haproxy')
        text = text.replace('10.0.0.10:443', f'127.0.0.1:{self.port}')
        text = text.replace('/etc/haproxy/cloud.pem', self.certificate)
        text = text.replace('GET /readyz', f'GET {check}')
        text = re.sub(r'\n    server .*', '', text).rstrip()
        return (f'global\n    log stdout format raw local0\n    stats socket {directory}/admin.sock level admin\n'
                f'defaults\n    log global\n{text}\n')

    def reload(self):
        self._process.send(signal.SIGUSR2)

    def use(self, lines=None):
        """Replaces the lines `retries` and `server`, by default by those of the start; reloads, and waits until
        the former worker has ended its last request."""
        text = re.sub(r'\n    retries .*', '', self._text) + lines if lines else self._text + self._servers
        parts.write(self._file, text)
        former = self._workers()
        self.reload()
        self._process.until(lambda: (now := self._workers()) and not now & former, WORKER_S)

    def _workers(self):
        return set(measure.children_of_all()[self._process.pid])


@dataclasses.dataclass
class Fault:
    """What happens again and again, at most so often. `steps` returns functions with the pause after each."""

    steps: collections.abc.Callable
    most: float = float('inf')


class Plain:
    """How Nova runs with a Placement: as it is installed."""

    # What all nova-computes have set.
    compute_settings = ''
    # Whether schedulers read limits.
    has_limits = False
    environment = {}

    def scheduler(self):
        return (parts.program('nova', 'nova-scheduler'),)


class WithClaims(Plain):
    """Nova's scheduler claims with `POST /placementd/v1/claims`; Nova does not check server groups again."""

    compute_settings = '[workarounds]\ndisable_group_policy_check_upcall = true\n'
    has_limits = True
    environment = {'PYTHONPATH': os.path.join(parts.HERE, '../../python/placementd_nova/src'),
                   'PYTHONDONTWRITEBYTECODE': '1'}

    def scheduler(self):
        return parts.program('nova', 'python'), '-m', 'placementd_nova.scheduler'


class Ours:
    """Three nodes of placementd with Keystone authentication."""

    name = 'placementd'
    shown = 'placementd, three nodes'
    nova = Plain()

    def __init__(self, cloud):
        self._cloud = cloud
        keystone = (f'[auth]\nstrategy = "keystone"\n[keystone]\nauth_url = "{cloud.keystone.url}"\n'
                    f'username = "placement"\npassword = "{parts.SERVICE_PASSWORD}"\nproject_name = "service"\n'
                    f'www_authenticate_uri = "{cloud.keystone.url}"\n')
        self.nodes = three_nodes(cloud.directory, keystone + runbook.block('haproxy.md', 'toml'))
        for node in self.nodes:
            os.chmod(f'{node.directory}/placementd.toml', 0o600)
            node.start()
            cloud.closes(node.stop)
        self.haproxy = Haproxy(cloud, [(f'node-{node.id}', node.api) for node in self.nodes], '/readyz')
        self.meter = measure.Meter(lambda: [node.pid for node in self.nodes])
        self.until_ready()

    def until_ready(self):
        for node in self.nodes:
            node.until_ready(READY_S)

    def ctl(self, *words, accepted=(0,)):
        """Runs placementctl against all nodes; returns its output."""
        return self._cloud.run(*self.ctl_command(), *words, accepted=accepted)

    def ctl_command(self):
        endpoints = ','.join(f'unix:{node.directory}/data/admin.sock' for node in self.nodes)
        return 'placementctl', '--endpoint', endpoints

    def leader(self, seconds=30):
        """Returns the node that leads, once one does."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for line in self.ctl('status', '-o', 'csv', accepted=(0, 1, 2, 3)).splitlines():
                fields = line.split(',')
                if 'leader' in fields:
                    return self.nodes[int(re.search(r'\d+', fields[0])[0]) - 1]
            time.sleep(0.2)
        raise Failed(f'no node leads after {seconds} s')

    def kill(self):
        """Kills the leader and starts it again at once; returns what was done."""
        node = self.leader()
        node.stop()
        node.start()
        return f'node {node.id}, the leader, was killed'

    def faults(self):
        """The faults of the scenario leader-loss."""
        return {'leader killed': Fault(lambda: [(self.kill, 0), (self.until_ready, 4)]),
                'leader hangs, then dies': Fault(self._hang),
                'rolling restarts': Fault(self._roll),
                'haproxy reloaded': Fault(lambda: [(self.haproxy.reload, 2)]),
                'no quorum for 10 s': Fault(self._without_quorum, most=1)}

    def _hang(self):
        node = self.leader()
        yield lambda: node.send(signal.SIGSTOP), 6
        yield node.stop, 1
        yield node.start, 0
        yield self.until_ready, 4

    def _roll(self):
        for node in self.nodes:
            yield node.stop_cleanly, 0
            yield node.start, 0
            yield node.until_ready, 1

    def _without_quorum(self):
        yield lambda: None, 5
        for node in self.nodes[:2]:
            yield node.stop, 0
        yield lambda: None, 10
        for node in self.nodes[:2]:
            yield node.start, 0


class Claims(Ours):
    """Three nodes of placementd, and a scheduler that sends claims."""

    name = 'placementd with claims'
    shown = 'placementd, three nodes, for nova-scheduler-placementd'
    nova = WithClaims()


class OpenStackPlacement:
    """openstack-placement under uwsgi, with a MariaDB of its own; created with an empty database, and not started."""

    _uwsgi = None

    def __init__(self, cloud):
        self._cloud = cloud
        self.database = cloud.mariadb('placement')
        self.database.create('placement')
        self.port, = processes.free_ports(1)
        self._home = f'{cloud.directory}/placement/etc'
        parts.write(f'{self._home}/placement.conf', '[api]\nauth_strategy = keystone\n[placement_database]\n'
                    f'connection = {self.database.url("placement")}\nmax_pool_size = 25\n'
                    f'{cloud.authtoken("placement")}')
        processes.run(parts.program('placement', 'placement-manage'), '--config-dir', self._home, 'db', 'sync',
                      env=os.environ | {'OS_PLACEMENT_CONFIG_DIR': self._home})

    def start(self):
        self._uwsgi = parts.uwsgi(
            self._cloud, 'placement', 'placement', None, self.port, (5, 25), '--manage-script-name', '--mount',
            '/placement=placement.wsgi.api:application', OS_PLACEMENT_CONFIG_DIR=self._home)
        self.until_ready()

    def stop(self):
        self._cloud.expects_end('placement').stop()

    def until_ready(self):
        self._uwsgi.until(lambda: processes.answers(f'http://127.0.0.1:{self.port}/placement/'), READY_S)

    def pids(self):
        return [service.pid for service in (self._uwsgi, self.database.process) if service]


class Upstream:
    """openstack-placement behind haproxy."""

    name = 'upstream'
    shown = 'openstack-placement, one uwsgi with 5 processes of 25 threads, MariaDB'
    nova = Plain()

    def __init__(self, cloud):
        self._service = OpenStackPlacement(cloud)
        self._service.start()
        self.haproxy = Haproxy(cloud, [('old', f'127.0.0.1:{self._service.port}')], '/placement/')
        self.meter = measure.Meter(self._service.pids)
        self.database, self.until_ready = self._service.database, self._service.until_ready

    def kill(self):
        """Kills the database and starts it again at once; returns what was done."""
        self.database.stop(signal.SIGKILL)
        self.database.start()
        return 'the database was killed'

    def faults(self):
        """The faults of the scenario leader-loss: those of one service and one database."""
        return {'database killed': Fault(lambda: [(self.kill, 4)]),
                'uwsgi restarted': Fault(lambda: [(self._service.stop, 0), (self._service.start, 4)]),
                'haproxy reloaded': Fault(lambda: [(self.haproxy.reload, 2)]),
                'no database for 10 s': Fault(self._without_database, most=1)}

    def _without_database(self):
        yield lambda: None, 5
        yield self.database.stop, 10
        yield self.database.start, 0


PLACEMENTS = {'ours': Ours, 'upstream': Upstream, 'claims': Claims}
# What --placement runs one after the other.
SEVERAL = {'both': ('ours', 'upstream'), 'all': ('ours', 'claims', 'upstream')}
