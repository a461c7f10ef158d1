"""Runs schemathesis against a node, with the OpenAPI document of that node."""

import argparse
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import requests

from ports import free_ports
from sample import Sample

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

TOKEN = {'X-Auth-Token': 'admin', 'X-Roles': 'admin,service'}
CHECKS = ['not_a_server_error', 'status_code_conformance', 'content_type_conformance',
          'response_headers_conformance', 'response_schema_conformance']
# Cases with independent random versions, bodies and parameters; and cases in which everything
# matches the newest version.
PASSES = {'versions at random': 'fuzzing', 'newest version': 'coverage,fuzzing'}


def main():
    options = parse()
    started = time.monotonic()
    print(f'seed {options.seed}: scripts/schemathesis --seed {options.seed} repeats these cases',
          flush=True)
    with Node(options.cluster) as api:
        Sample(api, TOKEN).build()
        document = requests.get(f'{api}/openapi.json', timeout=30).json()
        with tempfile.NamedTemporaryFile('r') as succeeded:
            os.environ['PLACEMENT_SUCCEEDED'] = succeeded.name
            failed = [name for name in PASSES if not run(api, name, document, options)]
            known = operations(document)
            refused = known - set(succeeded.read().splitlines())
    # A server that rejects everything would also match the document. With few cases, some
    # operations get no valid request.
    print(f'operations without a successful request: {", ".join(sorted(refused)) or "none"}')
    if len(refused) > len(known) / 4 and not options.rest:
        failed.append('no success')
        print(f'FAILED: {len(refused)} of {len(known)} operations never succeeded')
    print(f'{time.monotonic() - started:.0f} s')
    sys.exit(1 if failed else 0)


def operations(document):
    """All operations, as method and path."""
    return {f'{method.upper()} {path}' for path, item in document['paths'].items()
            for method, operation in item.items() if 'responses' in operation}


def parse():
    # scripts/schemathesis describes the options.
    parser = argparse.ArgumentParser(prog='scripts/schemathesis')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--cases', type=int, default=30)
    parser.add_argument('--cluster', default=os.path.join(ROOT, 'scripts', 'run-cluster'))
    parser.add_argument('rest', nargs='*')
    return parser.parse_args()


def run(api, name, document, options):
    """Runs one pass. Returns True if it found nothing."""
    print(f'==== {name}', flush=True)
    headers = dict(TOKEN)
    if name == 'newest version':
        headers['OpenStack-API-Version'] = f'placement {document["info"]["version"]}'
        document = newest(document)
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'openapi.json')
        with open(path, 'w') as file:
            json.dump(document, file)
        command = [
            os.path.join(os.path.dirname(sys.executable), 'schemathesis'),
            '--config-file', os.path.join(HERE, 'schemathesis.toml'),
            'run', path, '--url', api,
            '--checks', ','.join(CHECKS), '--phases', PASSES[name],
            '--seed', str(options.seed), '--max-examples', str(options.cases),
            '--generation-database', 'none', '--suppress-health-check', 'all',
            '--request-timeout', '60', '--continue-on-failure', '--warnings', 'off', '--no-color']
        for header, value in headers.items():
            command += ['--header', f'{header}: {value}']
        environment = dict(os.environ, PLACEMENT_API=api, PYTHONPATH=HERE,
                           PYTHONDONTWRITEBYTECODE='1')
        result = subprocess.run(command + options.rest, env=environment, cwd=directory,
                                check=False)
    return result.returncode == 0


def newest(document):
    """The document with bodies and parameters of the newest version only: the last of several shapes.
    Responses are unchanged."""
    document = copy.deepcopy(document)
    for item in document['paths'].values():
        for operation in item.values():
            if not isinstance(operation, dict):
                continue
            places = [content for content in
                      operation.get('requestBody', {}).get('content', {}).values()]
            places += [parameter for parameter in operation.get('parameters', ())
                       if 'schema' in parameter]
            for place in places:
                shapes = place['schema'].get('anyOf', [])
                if shapes and all('title' in shape for shape in shapes):
                    place['schema'] = shapes[-1]
    return document


class Node:
    """A running node; a context manager that returns the address of its API."""

    def __init__(self, command):
        self._command = command

    def __enter__(self):
        self._directory = tempfile.mkdtemp(prefix='placement-schemathesis-')
        self._data = os.path.join(self._directory, 'cluster')
        try:
            port = free_ports(20)
            output = subprocess.run(
                [self._command, '--nodes', '1', '--clean', '--detach', '--no-sample',
                 '--dir', self._data, '--base-port', str(port)],
                check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True).stdout
            return json.loads(output)['nodes'][0]['api']
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        subprocess.run([self._command, '--stop', '--dir', self._data], check=False,
                       stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        shutil.rmtree(self._directory, ignore_errors=True)


if __name__ == '__main__':
    main()
