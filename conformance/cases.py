"""Sends each request of a gabbi test to a random node of the cluster."""

import json
import re
import urllib.parse

import httpx
from gabbi import case

from nodes import send_raw

# Consumers in paths and bodies are recorded for empty.py.
CONSUMER_PATH = re.compile(r'/allocations/([0-9a-fA-F-]{36})(?:$|[/?])')
CONSUMER_KEY = re.compile(r'[0-9a-fA-F-]{36}\Z')


class Session:
    """State shared by all tests of one cluster."""

    nodes = None
    # `None` if the cluster has no explanations.
    explained = None
    consumers = set()
    # Tests whose requests are invalid HTTP; only their status was checked.
    forbidden = []


class ClusterCase(case.HTTPTestCase):
    """A test whose requests go to `Session.nodes`."""

    def _parse_url(self, url):
        nodes = Session.nodes
        self.host, port = nodes.pick().rsplit(':', 1)
        self.port = int(port)
        full = super()._parse_url(url)
        parts = urllib.parse.urlsplit(full)
        # A location contains the answering node; a load balancer would send the next request to
        # any.
        if parts.netloc in nodes.netlocs:
            self.netloc = f'{self.host}:{self.port}'
            full = urllib.parse.urlunsplit(parts._replace(netloc=self.netloc))
        return full

    def _run_request(self, url, method, headers, body, **options):
        remember_consumers(url, body)
        super()._run_request(url, method, headers, body, **options)

    def _assert_response(self):
        if self.http.sent_raw and self.response['status'] == '400':
            wording = self.test_data['response_strings']
            # Without a content type gabbi does not decode the body.
            output = self.output if isinstance(self.output, str) else self.output.decode()
            if not all(text in output for text in wording):
                # RFC 9112, section 6.3: such a message is invalid and gets a 400. The API does not
                # define which layer answers, nor the text.
                self.test_data['response_strings'] = []
                Session.forbidden.append(
                    f'{self.shortDescription()}: answered 400 with {output!r}, not {wording}')
        super()._assert_response()


class ClusterHttp:
    """gabbi's HTTP client, with shared connections and support for invalid HTTP messages."""

    sent_raw = False

    def request(self, absolute_uri, method, body, headers, redirect, timeout):
        length = {name.lower(): value for name, value in headers.items()}.get('content-length')
        if length is not None and not length.isdigit():
            self.sent_raw = True
            status, reason, pairs, content = send_raw(absolute_uri, method, headers, body)
            answer = httpx.Headers(pairs)
        else:
            response = Session.nodes.client.request(
                method, absolute_uri, headers=headers, content=body, timeout=timeout,
                follow_redirects=redirect)
            status, reason, content = (
                response.status_code, response.reason_phrase, response.content)
            answer = response.headers
            if Session.explained and status == 200:
                Session.explained.check(method, absolute_uri, headers)
        # gabbi expects these among the headers.
        answer['status'] = str(status)
        answer['reason'] = reason
        return answer, content


def remember_consumers(url, body):
    """Records the consumers in a request: one may remain without allocations."""
    Session.consumers.update(CONSUMER_PATH.findall(urllib.parse.urlsplit(url).path))
    try:
        named = json.loads(body)
    except (ValueError, UnicodeDecodeError):
        return
    if isinstance(named, dict):
        allocations = named.get('allocations', named)
        if isinstance(allocations, dict):
            Session.consumers.update(filter(CONSUMER_KEY.match, allocations))
        Session.consumers.update(filter(CONSUMER_KEY.match, named))
