"""Fixtures of the suite's files: an empty cluster, sample data, environment variables.

gabbi finds the classes by the names in the files. `profile` is the configuration that the nodes
need; run.py groups the files by it.
"""

import os
import uuid

from gabbi import fixture

import samples
from cases import Session
from empty import empty
from nodes import Rest

UUID_VARIABLES = (
    'RP_UUID', 'RP_NAME', 'RP_UUID1', 'RP_NAME1', 'RP_UUID2', 'RP_NAME2', 'PROJECT_ID',
    'ADMIN_PROJECT_ID', 'SERVICE_PROJECT_ID', 'PROJECT_ID_ALT', 'USER_ID', 'USER_ID_ALT',
    'INSTANCE_UUID', 'MIGRATION_UUID', 'CONSUMER_UUID', 'PARENT_PROVIDER_UUID',
    'ALT_PARENT_PROVIDER_UUID',
)


class APIFixture(fixture.GabbiFixture):
    """An empty cluster and new names."""

    profile = 'legacy'
    sample = None

    def start_fixture(self):
        for variable in UUID_VARIABLES:
            os.environ[variable] = str(uuid.uuid4())
        for suffix in ('', '1', '2'):
            os.environ[f'CUSTOM_RES_CLASS{suffix}'] = f'CUSTOM_IRON_NFV{suffix}'
        rest = Rest(Session.nodes)
        empty(rest)
        if self.sample:
            type(self).sample(rest)


class LegacyRBACPolicyFixture(APIFixture):
    """Upstream's default policy: new rules or deprecated ones."""


class SecureRBACPolicyFixture(APIFixture):
    profile = 'secure'


class OpenPolicyFixture(APIFixture):
    profile = 'open'


class CORSFixture(APIFixture):
    profile = 'cors'


class AllocationFixture(APIFixture):
    sample = samples.allocations


class SharedStorageFixture(APIFixture):
    sample = samples.shared_storage


class NUMAAggregateFixture(APIFixture):
    sample = samples.numa_aggregate


class NUMANetworkFixture(APIFixture):
    sample = samples.numa_network


class DeepNUMANetworkFixture(APIFixture):
    sample = samples.deep_numa_network


class NonSharedStorageFixture(APIFixture):
    sample = samples.non_shared_storage


class GranularFixture(APIFixture):
    sample = samples.granular


class NeutronQoSMultiSegmentFixture(APIFixture):
    sample = samples.neutron_qos_multisegment
