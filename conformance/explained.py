"""Requests the explanation of each candidate search of the suite and checks its consistency."""

import json
import urllib.parse

SHARES = 'MISC_SHARES_VIA_AGGREGATE'
HEADERS = {'x-auth-token': 'admin', 'x-roles': 'admin,service', 'accept': 'application/json'}


class Explained:
    """Checks the searches of one cluster; nothing must be written concurrently."""

    def __init__(self, client):
        self._client = client
        self.looked_at = 0

    def check(self, method, url, headers):
        """Raises AssertionError if the explanation of a request contradicts its answer."""
        parts = urllib.parse.urlsplit(url)
        base, found, _ = parts.path.partition('/allocation_candidates')
        if method != 'GET' or not found:
            return
        version = {name.lower(): value for name, value in headers.items()}.get(
            'openstack-api-version', 'placement 1.0')
        limits = ('limit=',)
        query = '&'.join(pair for pair in parts.query.split('&') if not pair.startswith(limits))
        root = f'{parts.scheme}://{parts.netloc}{base}'
        status, explained = self._get(f'{root}/placementd/v1/explain?{query}', version)
        assert status == 200, explained
        gone = sum(stage['gone'] for stage in explained['funnel'])
        assert explained['undecided'] == 0, explained
        assert explained['trees'] == gone + explained['with_candidates'], explained
        status, answer = self._get(f'{root}/allocation_candidates?{query}', version)
        # An unknown name is an error of the search, and the first cause in the explanation.
        if status == 200:
            self._agree(root, explained['with_candidates'], answer)
        else:
            assert explained['unknown'] and explained['with_candidates'] == 0, explained
        for relaxation in explained['relaxations']:
            asked = f'{root}/allocation_candidates?{relaxation["query"]}'
            status, answer = self._get(asked, version)
            assert status == 200, (relaxation, answer)
            self._agree(root, relaxation['trees'], answer)
        self.looked_at += 1

    def _agree(self, root, trees, answer):
        """Checks that an answer has this many trees, without counting shared providers."""
        requests = [request['allocations'] for request in answer['allocation_requests']]
        used = [[one['resource_provider']['uuid'] for one in request]
                if isinstance(request, list) else list(request) for request in requests]
        assert bool(used) == bool(trees), (trees, answer)
        anchors, only_shared = set(), False
        for providers in used:
            roots = {self._root(root, uuid) for uuid in providers} - {None}
            anchors |= roots
            # This candidate belongs to each tree that shares it, but is returned once.
            only_shared |= not roots
        agrees = trees >= len(anchors) if only_shared else trees == len(anchors)
        assert agrees, (trees, anchors, answer)

    def _root(self, root, uuid):
        """The root of a provider's tree; None for a sharing provider."""
        provider = self._get(f'{root}/resource_providers/{uuid}', 'placement 1.39')[1]
        traits = self._get(f'{root}/resource_providers/{uuid}/traits', 'placement 1.39')[1]
        return None if SHARES in traits['traits'] else provider['root_provider_uuid']

    def _get(self, url, version):
        headers = HEADERS | {'openstack-api-version': version}
        answer = self._client.get(url, headers=headers)
        return answer.status_code, json.loads(answer.content)
