"""Runs a real Nova on placementd, on openstack-placement, or on one after the other, and measures both."""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import parts
import processes
import report
import scenarios
from client import COMPUTE, INTERRUPTED, Client
from control import LEAST, SINGLE, Nova
from databases import MariaDb
from parts import Keystone, Memcached, RabbitMq, StandIns
from placements import PLACEMENTS, SEVERAL, Upstream
from processes import Failed, Process, step

REAL = """Real: Nova (API, conductors, schedulers, computes), Keystone, MariaDB, RabbitMQ, memcached, haproxy, Placement
Stand-ins: Glance, Neutron, Cinder; the hypervisors are a subclass of Nova's fake driver."""


def main():
    options = parse()
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGINT, interrupt)
    # It is for this program, not for the services.
    os.environ.pop('PYTHONPATH', None)
    print(REAL, *versions(), sep='\n', flush=True)
    rows = []
    failed = False
    try:
        for name in SEVERAL.get(options.placement, (options.placement,)):
            failed |= not run(options, PLACEMENTS[name], rows)
            if INTERRUPTED.is_set():
                break
    except KeyboardInterrupt:
        failed = True
    finally:
        if rows:
            print(report.table(rows), flush=True)
    # Upstream is measured for comparison.
    broken = any(row.violations for row in rows if row.placement != Upstream.name)
    sys.exit(1 if failed or broken else 0)


def interrupt(*_):
    """Ends all threads, and closes everything on the stack."""
    INTERRUPTED.set()
    raise KeyboardInterrupt


def parse():
    # scripts/cloud describes the options.
    parser = argparse.ArgumentParser(prog='scripts/cloud')
    parser.add_argument('--placement', choices=(*PLACEMENTS, *SEVERAL), default='ours')
    parser.add_argument('--hosts', type=int, default=100)
    parser.add_argument('--only', metavar='NAME,…')
    parser.add_argument('--keep', action='store_true')
    parser.add_argument('--debug', action='store_true')
    options = parser.parse_args()
    names = (options.only or ','.join(scenarios.ALL)).split(',')
    options.scenarios = [] if names == ['none'] else names
    for name in options.scenarios:
        if name not in scenarios.ALL:
            parser.error(f'there is no scenario {name}; there are {", ".join(scenarios.ALL)}')
    if not LEAST <= options.hosts <= 5000:
        parser.error(f'--hosts must be between {LEAST}, one per nova-compute, and 5000')
    return options


def versions():
    """Lines with the version of each part."""
    packages = {'nova': 'nova', 'keystone': 'keystone', 'placement': 'openstack-placement', 'blazar': 'blazar'}
    for service, name in packages.items():
        yield processes.shell(f'{parts.program(service, "pip")} freeze | grep "^{name}=="').strip()
    for command in ('placementd --version', 'mariadbd --version', 'haproxy -v | sed -n 1p', 'memcached --version',
                    "dpkg-query -W -f '${Package} ${Version}' rabbitmq-server || true"):
        yield processes.shell(command).strip()


def run(options, placement, rows):
    """Runs the scenarios on one Placement; returns whether the cloud itself worked."""
    directory = tempfile.mkdtemp(prefix='placement-cloud-')
    os.chmod(directory, 0o711)
    kept = False
    try:
        with contextlib.ExitStack() as stack:
            cloud = Cloud(directory, stack, options.hosts)
            try:
                cloud.form(placement)
                for name in options.scenarios:
                    scenarios.run(name, cloud, rows)
                    cloud.look_for_ended()
                if options.keep:
                    cloud.wait_to_be_stopped()
            except Failed as failure:
                print(f'FAILED: {failure}', file=sys.stderr)
                cloud.show_logs()
                kept = True
        return not kept
    finally:
        if kept or any(row.violations for row in rows):
            keep_logs(directory)
        else:
            shutil.rmtree(directory, ignore_errors=True)


def keep_logs(directory):
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
    print(f'The logs of all services are in {directory}', file=sys.stderr)


class Cloud:
    """The services of one cloud; everything that they start is on the stack."""

    def __init__(self, directory, stack, hosts):
        self.directory = directory
        self.hosts = hosts
        self._stack = stack
        self._services = {}
        stack.callback(self._stop_all)

    def form(self, placement):
        started = time.monotonic()
        with step('MariaDB, RabbitMQ, memcached, stand-ins'):
            self.database = self.closing(MariaDb(self.directory))
            self.rabbit, memcached = RabbitMq(self), Memcached(self)
            self._memcached = memcached.port
            stand_ins = StandIns(self)
            self.rabbit.until_ready()
        with step('schemas of Keystone and Nova'):
            self.keystone = Keystone(self, self.database)
            self.nova = Nova(self, self.database, self.rabbit, memcached.port)
            self._trusted = f'{self.directory}/trusted.pem'
            self.nova.configure(self._trusted)
            parts.at_once(self.keystone.create, self.nova.create)
        with step('Keystone'):
            self.keystone.start()
            admin = Client(self.keystone.url, True, 'admin')
            self._create_users(admin)
        with step(placement.shown):
            self.placement = placement(self)
            self.meter = self.placement.meter
            self._stack.callback(self.meter.stop)
            self._create_endpoints(admin, stand_ins)
        self.client = Client(self.keystone.url, self._trusted)
        with step(f'Nova with {self.hosts} compute nodes'):
            self.nova.start(self.hosts)
            self.nova.until_ready(self.client, self.hosts)
            for name, vcpus in (('small', 1), ('medium', 2), ('large', 8)):
                self.client.flavor(name, vcpus)
            self.client.zone(SINGLE, self.nova.singles)
        print(f'The cloud is up after {time.monotonic() - started:.0f} s', flush=True)

    def _create_users(self, admin):
        projects = {name: admin.create('project', name=name, domain_id='default') for name in ('service', 'demo')}
        for name in ('nova', 'placement'):
            user = admin.create('user', name=name, password=parts.SERVICE_PASSWORD, domain_id='default')
            for role in ('admin', 'service'):
                admin.grant(projects['service'], user, role)
        user, = admin.get('identity', '/users?name=admin')['users']
        for role in ('admin', 'member'):
            admin.grant(projects['demo'], user['id'], role)

    def _create_endpoints(self, admin, stand_ins):
        for type, url in (('compute', self.nova.url), ('placement', self.placement.haproxy.url),
                          ('image', f'{stand_ins.url}/image'), ('network', f'{stand_ins.url}/network'),
                          ('block-storage', f'{stand_ins.url}/volume/v3')):
            admin.register(type, url)

    def start(self, name, *command, **options):
        """Starts a service in a session of its own; it is stopped at the end."""
        process = self._services[name] = Process(self.log_of(name), *command, start_new_session=True, **options)
        return process

    def expects_end(self, name):
        """Takes a service out of those that must run."""
        return self._services.pop(name)

    def kill(self, name):
        """Kills a service with the processes that it started."""
        process = self.expects_end(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.stop(signal.SIGKILL)

    def log_of(self, name):
        return f'{self.directory}/{name}.log'

    def closes(self, function):
        self._stack.callback(function)

    def closing(self, service):
        self._stack.callback(service.stop)
        return service

    def mariadb(self, name):
        """Starts a MariaDB in a directory of its own."""
        home = f'{self.directory}/{name}'
        os.mkdir(home)
        os.chmod(home, 0o711)
        return self.closing(MariaDb(home))

    def run(self, *command, accepted=(0,)):
        """Runs a program to its end; returns its output."""
        status, output, errors = self.tried(*command)
        if status not in accepted:
            raise Failed(f'{" ".join(command)}\nended with {status}\n{output}{errors}')
        return output

    def tried(self, *command):
        """Runs a program to its end; returns its exit status, output and standard error."""
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
            env=os.environ | self.environment(), preexec_fn=processes.end_with_parent)
        return done.returncode, done.stdout, done.stderr

    def environment(self):
        """What `openstack` needs."""
        if not hasattr(self, 'keystone'):
            return {}
        return {'OS_AUTH_URL': self.keystone.url, 'OS_USERNAME': 'admin', 'OS_PASSWORD': parts.ADMIN_PASSWORD,
                'OS_PROJECT_NAME': 'demo', 'OS_USER_DOMAIN_ID': 'default', 'OS_PROJECT_DOMAIN_ID': 'default',
                'OS_REGION_NAME': parts.REGION, 'OS_CACERT': self._trusted, 'OS_IDENTITY_API_VERSION': '3',
                'OS_COMPUTE_API_VERSION': COMPUTE,
                'PATH': f'{os.path.dirname(sys.executable)}:{os.environ["PATH"]}'}

    def credentials(self, user):
        """Lines of a section of keystoneauth."""
        return (f'auth_type = password\nauth_url = {self.keystone.url}\nusername = {user}\n'
                f'password = {parts.SERVICE_PASSWORD}\nproject_name = service\nuser_domain_name = Default\n'
                f'project_domain_name = Default\nregion_name = {parts.REGION}\n')

    def authtoken(self, user):
        """The section of keystonemiddleware."""
        return (f'[keystone_authtoken]\n{self.credentials(user)}www_authenticate_uri = {self.keystone.url}\n'
                f'memcached_servers = 127.0.0.1:{self._memcached}\nservice_token_roles_required = true\n')

    def restart_crashed_database(self):
        """Starts the database of Nova and Keystone again if it crashed, as systemd does; returns whether it did."""
        status = self.database.process.ended()
        if status is None:
            return False
        print(f'mariadbd ended with {status}; its log is {self.database.log}', flush=True)
        self.database.start()
        self.nova.until_ready(self.client, self.hosts)
        return True

    def look_for_ended(self):
        """Fails if a service has ended by itself."""
        for name, process in self._services.items():
            if process.ended() is not None:
                raise Failed(f'{name} ended with {process.ended()}; its log is {self.log_of(name)}')

    def show_logs(self):
        """Prints the last lines of services that ended, and of those that log errors."""
        for name, process in self._services.items():
            with open(self.log_of(name), errors='replace') as log:
                lines = log.read().splitlines()
            found = lines[-12:] if process.ended() is not None else [
                line for line in lines if ' ERROR ' in line or ' CRITICAL ' in line][-6:]
            if found:
                print(f'--- {self.log_of(name)}', *found, sep='\n', file=sys.stderr)

    def wait_to_be_stopped(self):
        exports = '\n'.join(f'export {name}={value}' for name, value in self.environment().items())
        print(f'The cloud runs in {self.directory}. To use it:\n\n{exports}\n'
              'openstack server create --image nothing --flavor small --no-network one\nopenstack server list\n\n'
              f'To stop it: Ctrl-C here, or `kill {os.getpid()}`.', flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(1)

    def _stop_all(self):
        for sent in (signal.SIGTERM, signal.SIGKILL):
            for process in self._services.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, sent)
            until = time.monotonic() + 5
            while time.monotonic() < until and any(process.ended() is None for process in self._services.values()):
                time.sleep(0.1)


if __name__ == '__main__':
    main()
