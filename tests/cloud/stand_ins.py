"""Stand-ins for Glance, Neutron and Cinder, with what Nova asks them for servers without ports and volumes.

    python stand_ins.py PORT

Each service has a prefix: /image, /network, /volume. Tokens are not checked. Images have no bytes.
Prints each request that has no answer here.
"""

import http.server
import json
import re
import sys
import threading
import uuid

IMAGE = '1fa6e000-0000-4000-8000-000000000000'
CREATED = '2026-11-01T12:00:00Z'


class Images:
    """Glance's images; snapshots of shelved servers come and go."""

    def __init__(self):
        self._lock = threading.Lock()
        self._images = {}
        self.create({'id': IMAGE, 'name': 'nothing', 'visibility': 'public'})

    def create(self, given):
        id = given.get('id') or str(uuid.uuid4())
        image = {'id': id, 'status': 'active', 'container_format': 'bare', 'disk_format': 'raw', 'size': 1,
                 'min_ram': 0, 'min_disk': 0, 'visibility': 'private', 'protected': False, 'owner': None,
                 'checksum': None, 'tags': [], 'created_at': CREATED, 'updated_at': CREATED,
                 'self': f'/v2/images/{id}', 'file': f'/v2/images/{id}/file', 'schema': '/v2/schemas/image'}
        with self._lock:
            self._images[id] = image | given
        return 201, self._images[id]

    def show(self, id):
        with self._lock:
            return (200, self._images[id]) if id in self._images else (404, {})

    def list(self):
        with self._lock:
            return 200, {'images': list(self._images.values()), 'schema': '/v2/schemas/images'}

    def patch(self, id, changes):
        with self._lock:
            if id not in self._images:
                return 404, {}
            for change in changes:
                name = change['path'].removeprefix('/')
                if change['op'] == 'remove':
                    self._images[id].pop(name, None)
                else:
                    self._images[id][name] = change['value']
            return 200, self._images[id]

    def delete(self, id):
        with self._lock:
            return (204, None) if self._images.pop(id, None) else (404, {})


IMAGES = Images()


def empty(name):
    return lambda *_: (200, {name: []})


def schema(*_):
    """The properties that each image has; all others are texts."""
    return 200, {'name': 'image', 'properties': {name: {} for name in IMAGES.show(IMAGE)[1]},
                 'additionalProperties': {'type': 'string'}}


def versions(prefix, path, id, newest=''):
    """Returns a version document for discovery, with one version below this path."""
    def answer(handler, *_):
        links = [{'rel': 'self', 'href': f'http://{handler.headers["Host"]}{prefix}/{path}/'}]
        version = {'id': id, 'status': 'CURRENT', 'version': newest, 'min_version': newest, 'links': links}
        return 200, {'versions': [version]}
    return answer


ROUTES = [(method, re.compile(f'{path}/?$'), answer) for method, path, answer in (
    ('GET', '/image', versions('/image', 'v2', 'v2.16')),
    ('GET', '/image/v2/schemas/image', schema),
    ('GET', '/image/v2/images', lambda *_: IMAGES.list()),
    ('POST', '/image/v2/images', lambda _, body: IMAGES.create(body)),
    ('GET', '/image/v2/images/([^/]+)', lambda _, body, id: IMAGES.show(id)),
    ('PATCH', '/image/v2/images/([^/]+)', lambda _, body, id: IMAGES.patch(id, body)),
    ('DELETE', '/image/v2/images/([^/]+)', lambda _, body, id: IMAGES.delete(id)),
    ('PUT', '/image/v2/images/[^/]+/file', lambda *_: (204, None)),
    ('GET', '/network', versions('/network', 'v2.0', 'v2.0')),
    ('GET', '/network/v2.0/ports', empty('ports')),
    ('GET', '/network/v2.0/networks', empty('networks')),
    ('GET', '/network/v2.0/extensions', empty('extensions')),
    ('GET', '/network/v2.0/security-groups', empty('security_groups')),
    ('GET', '/network/v2.0/floatingips', empty('floatingips')),
    ('GET', '/volume', versions('/volume', 'v3', 'v3.0', '3.71')),
    ('GET', '/volume/v3/[^/]+/volumes(?:/detail)?', empty('volumes')),
    ('GET', '/volume/v3/[^/]+/attachments(?:/detail)?', empty('attachments')),
)]


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers from the table of routes."""

    protocol_version = 'HTTP/1.1'

    def _answer(self):
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        is_json = 'json' in self.headers.get('Content-Type', '')
        status, answer = self._route(json.loads(body) if body and is_json else None)
        text = b'' if answer is None else json.dumps(answer).encode()
        self.send_response(status)
        if status != 204:
            self.send_header('Content-Type', 'application/json')
            self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _route(self, body):
        path = self.path.split('?')[0]
        for method, pattern, answer in ROUTES:
            match = pattern.match(path)
            if match and method == self.command:
                return answer(self, body, *match.groups())
        print(f'no answer to {self.command} {self.path}', flush=True)
        return 404, {'error': 'the stand-in has no answer'}

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

    def log_message(self, *_):
        """Only requests without an answer are printed."""


if __name__ == '__main__':
    http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
