"""openstack-placement itself as the cluster under test: a failure here is a bug of the runner.

Serves the installed openstack-placement over HTTP on three loopback ports, with one process and one
SQLite file. It has the options of scripts/run-cluster that cluster.py uses, and the same output.
"""

import argparse
import json
import os
import shutil
import signal
import socketserver
import subprocess
import sys
import threading
import time
import tomllib
import urllib.error
import urllib.request
from wsgiref import simple_server

NODES = 3
PORTS_PER_NODE = 10
STARTED_WITHIN_SECONDS = 60


def main():
    options = parse()
    if options.stop:
        stop(options.dir)
    elif options.serve:
        serve(options.dir, options.base_port)
    else:
        start(options)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument('--dir', required=True)
    parser.add_argument('--base-port', type=int)
    parser.add_argument('--config', help='configuration file of placementd')
    parser.add_argument('--stop', action='store_true')
    parser.add_argument('--serve', action='store_true')
    # Accepted and ignored: the reference always runs this way.
    for name in ('--clean', '--detach', '--no-sample'):
        parser.add_argument(name, action='store_true')
    return parser.parse_args()


def start(options):
    shutil.rmtree(options.dir, ignore_errors=True)
    os.makedirs(options.dir)
    with open(options.config, 'rb') as file:
        settings = tomllib.load(file)
    with open(os.path.join(options.dir, 'placement.conf'), 'w') as file:
        file.write(translated(settings, options.dir))
    with open(os.path.join(options.dir, 'log'), 'w') as log:
        server = subprocess.Popen(
            [sys.executable, __file__, '--serve', '--dir', options.dir,
             '--base-port', str(options.base_port)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    with open(os.path.join(options.dir, 'pid'), 'w') as file:
        file.write(str(server.pid))
    urls = [f'http://127.0.0.1:{port}' for port in ports(options.base_port)]
    for url in urls:
        wait_for(url, server, options.dir)
    print(json.dumps({'nodes': [{'api': url} for url in urls]}))


def translated(settings, directory):
    """placementd's configuration, translated for the reference."""
    lines = ['[api]', f'auth_strategy = {settings["auth"]["strategy"]}',
             '[placement_database]', f'connection = sqlite:///{directory}/placement.db',
             'sync_on_startup = true']
    policy = settings['policy']
    lines += ['[oslo_policy]', f'enforce_new_defaults = {policy["enforce_new_defaults"]}']
    if 'file' in policy:
        lines.append(f'policy_file = {policy["file"]}')
    if 'cors' in settings:
        lines.append('[cors]')
        lines += [f'{name} = {",".join(values)}' for name, values in settings['cors'].items()]
    return '\n'.join(lines) + '\n'


def ports(base_port):
    return [base_port + node * PORTS_PER_NODE for node in range(NODES)]


def wait_for(url, server, directory):
    give_up = time.monotonic() + STARTED_WITHIN_SECONDS
    while time.monotonic() < give_up and server.poll() is None:
        try:
            urllib.request.urlopen(url).close()
            return
        except urllib.error.URLError:
            time.sleep(0.1)
    sys.exit(f'the reference does not answer at {url}; see {directory}/log')


def stop(directory):
    try:
        with open(os.path.join(directory, 'pid')) as file:
            os.kill(int(file.read()), signal.SIGTERM)
    except (FileNotFoundError, ProcessLookupError):
        pass


class Handler(simple_server.WSGIRequestHandler):

    def get_environ(self):
        """Removes the default content type text/plain, which wsgiref adds to requests without one."""
        environ = super().get_environ()
        if self.headers['content-type'] is None:
            del environ['CONTENT_TYPE']
        return environ


class Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True
    # With the default of 5, a client with concurrent requests would wait a second for a connection.
    request_queue_size = 64


def serve(directory, base_port):
    os.environ['OS_PLACEMENT_CONFIG_DIR'] = directory
    from placement import wsgi
    application = wsgi.init_application()
    for port in ports(base_port):
        server = simple_server.make_server(
            '127.0.0.1', port, application, Server, Handler)
        threading.Thread(target=server.serve_forever).start()


if __name__ == '__main__':
    main()
