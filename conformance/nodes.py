"""The nodes under test, and the random choice of one for each request."""

import random
import re
import socket
import urllib.parse

import httpx


class Nodes:
    """The endpoints of one running cluster.

    `urls` have the form `http://host:port`; `choice` selects the node of each request.
    """

    def __init__(self, urls, choice: random.Random):
        self.netlocs = [urllib.parse.urlsplit(url).netloc for url in urls]
        self._choice = choice
        # One client for all requests, which reuses connections like a real client.
        self.client = httpx.Client(timeout=60)

    def pick(self):
        """The `host:port` of the node for the next request."""
        return self._choice.choice(self.netlocs)

    def direct(self, url):
        """The same URL on another random node, if it belongs to the cluster."""
        parts = urllib.parse.urlsplit(url)
        if parts.netloc not in self.netlocs:
            return url
        return urllib.parse.urlunsplit(parts._replace(netloc=self.pick()))

    def close(self):
        self.client.close()


class RefusedRequest(Exception):
    """The API answered a fixture with an unexpected status."""


class Rest:
    """API client of the fixtures: an operator's token, JSON, one microversion per call."""

    HEADERS = {
        'x-auth-token': 'admin',
        'x-roles': 'admin,service',
        'accept': 'application/json',
    }

    def __init__(self, nodes: Nodes):
        self._nodes = nodes

    def call(self, method, path, body=None, version='1.39', expect=(200, 201, 204)):
        """Returns the decoded JSON, or None; raises RefusedRequest unless the status is expected."""
        headers = self.HEADERS | {'openstack-api-version': f'placement {version}'}
        url = f'http://{self._nodes.pick()}{path}'
        response = self._nodes.client.request(method, url, headers=headers, json=body)
        if response.status_code not in expect:
            raise RefusedRequest(f'{method} {url} {body}: {response.status_code} {response.text}')
        return response.json() if response.content else None

    def get(self, path, **options):
        return self.call('GET', path, **options)

    def put(self, path, body=None, **options):
        return self.call('PUT', path, body, **options)

    def post(self, path, body, **options):
        return self.call('POST', path, body, **options)

    def delete(self, path, **options):
        return self.call('DELETE', path, **options)


def send_raw(url, method, headers, body):
    """Sends a request without validation, which a client library would reject.

    Returns (status, reason, headers as a list of pairs, content).
    """
    parts = urllib.parse.urlsplit(url)
    target = parts.path + (f'?{parts.query}' if parts.query else '')
    lines = [f'{method} {target} HTTP/1.1', f'host: {parts.netloc}', 'connection: close']
    lines += [f'{name}: {value}' for name, value in headers.items()]
    request = '\r\n'.join(lines).encode() + b'\r\n\r\n' + body
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        answer = b''.join(iter(lambda: connection.recv(65536), b''))
    head, _, content = answer.partition(b'\r\n\r\n')
    status_line, *header_lines = head.decode('latin-1').split('\r\n')
    _, status, reason = re.match(r'(\S+) (\d+) ?(.*)', status_line).groups()
    pairs = [tuple(part.strip() for part in line.split(':', 1)) for line in header_lines]
    return int(status), reason, pairs, content
