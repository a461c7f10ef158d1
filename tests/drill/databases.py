"""The databases under openstack-placement, started by the drill and reached through a Unix socket.
"""

import glob
import os
import signal
import subprocess

import processes
from processes import Process


class MariaDb:
    """MariaDB with its default settings."""

    dump, load, dialect = 'mysqldump', 'mysql', 'mysql'

    def __init__(self, directory):
        self._home = os.path.join(directory, 'mariadb')
        options = processes.unprivileged(self._home)
        processes.run('mariadb-install-db', '--no-defaults', '--auth-root-authentication-method=normal',
                      '--skip-test-db', f'--datadir={self._home}/data', **options)
        self._socket = f'{self._home}/socket'
        # The runbook's commands look for it in $HOME.
        with open(os.path.join(directory, '.my.cnf'), 'w') as file:
            file.write(f'[client]\nsocket={self._socket}\nuser=root\n')
        self.environment = {'HOME': directory}
        self.log = f'{directory}/mariadbd.log'
        self._options = options
        self.start()

    def start(self):
        self.process = Process(
            self.log, '/usr/sbin/mariadbd', '--no-defaults', '--skip-networking',
            '--max-connections=1024', f'--datadir={self._home}/data', f'--socket={self._socket}', **self._options)
        self.process.until(lambda: processes.accepts(self._socket))

    def create(self, name):
        processes.shell(f'mariadb -e "CREATE DATABASE {name} CHARACTER SET utf8"', env=os.environ | self.environment)

    def query(self, statement):
        """Returns the rows of a statement as text."""
        command = ['mariadb', '--skip-column-names', '--batch', '-e', statement]
        return subprocess.run(command, env=os.environ | self.environment, text=True, check=True,
                              stdout=subprocess.PIPE).stdout.splitlines()

    def url(self, name):
        return f'mysql+pymysql://root@localhost/{name}?unix_socket={self._socket}&charset=utf8'

    def stop(self, sent=signal.SIGTERM):
        self.process.stop(sent)


class PostgreSql:
    """PostgreSQL with its default settings."""

    dump, load, dialect = 'pg_dump', 'psql', 'postgresql'

    def __init__(self, directory):
        self._home = os.path.join(directory, 'postgresql')
        options = processes.unprivileged(self._home)
        # Debian keeps the server's programs off the PATH; the newest version sorts last.
        programs = sorted(glob.glob('/usr/lib/postgresql/*/bin'), key=lambda path: int(path.split('/')[-2]))[-1]
        processes.run(f'{programs}/initdb', '--username=placement', '--auth=trust', '--encoding=UTF8',
                      '--locale=C.UTF-8', f'--pgdata={self._home}/data', **options)
        self.environment = {'PGHOST': self._home, 'PGUSER': 'placement'}
        self.process = Process(
            f'{directory}/postgres.log', f'{programs}/postgres', '-D', f'{self._home}/data', '-k', self._home,
            '-c', 'listen_addresses=', '-c', 'max_connections=200', **options)
        self.process.until(lambda: subprocess.run(
            [f'{programs}/pg_isready', '-q'], env=os.environ | self.environment, check=False).returncode == 0)

    def create(self, name):
        processes.shell(f'createdb {name}', env=os.environ | self.environment)

    def url(self, name):
        return f'postgresql+psycopg2://placement@/{name}?host={self._home}'

    def stop(self):
        # SIGINT is a fast shutdown: the server does not wait for its clients.
        self.process.stop(signal.SIGINT)
