"""Nova's own scheduler on databases of its own, with a Placement in this process."""

from __future__ import annotations

import atexit
import os
import shutil
import sqlite3
import tempfile
import unittest
import uuid
from typing import Any

# Before other modules of Nova: it prepares threads.
from nova.cmd import scheduler as _scheduler  # noqa: F401

import nova.conf
from nova import config, context, objects, rpc
from nova.compute import vm_states
from nova.db import migration
from nova.scheduler import utils
import oslo_messaging as messaging
from oslo_utils import importutils
from placement import Placement, Provider, serve

from placementd_nova.scheduler import MANAGER

CONF = nova.conf.CONF
PROJECT, USER = "project", "user"
MEMORY_MB, DISK_GB = 256, 1
SETTINGS = """[DEFAULT]
transport_url = fake:/
state_path = {directory}
host = scheduler
# Hosts report once.
service_down_time = 86400
[database]
connection = sqlite:///{directory}/main.db
[api_database]
connection = sqlite:///{directory}/api.db
[placement]
auth_type = admin_token
token = admin
endpoint = {placement}
endpoint_override = {placement}
[oslo_limit]
auth_type = none
endpoint = {url}/identity/v3
endpoint_override = {url}/identity/v3
endpoint_id = nova
[oslo_messaging_notifications]
driver = noop
[filter_scheduler]
# Then the hosts with the most VCPUs come first.
shuffle_best_same_weighed_hosts = false
"""


class World:
    """What all tests of a process share: configuration, schemas, and the server."""

    _one: World | None = None
    #: Address of a Placement service that is not the one of this process.
    placement: str | None = None

    def __init__(self) -> None:
        self.server = serve()
        url = f"http://127.0.0.1:{self.server.server_port}"
        self.directory = tempfile.mkdtemp(prefix="placementd-nova-")
        settings = os.path.join(self.directory, "nova.conf")
        with open(settings, "w") as file:
            placement = self.placement or url
            file.write(SETTINGS.format(directory=self.directory, url=url, placement=placement))
        config.parse_args(["nova-scheduler", "--config-file", settings])
        objects.register_all()
        rpc.init(CONF)
        for database in ("api", "main"):
            migration.db_sync(database=database)
        self.context = context.RequestContext(USER, PROJECT, is_admin=True)
        self.cell = objects.CellMapping(
            self.context, uuid=str(uuid.UUID(int=1)), name="cell1", transport_url="fake:/",
            database_connection=CONF.database.connection, disabled=False)
        self.cell.create()

    @classmethod
    def get(cls) -> World:
        if cls._one is None:
            cls._one = World()
            atexit.register(shutil.rmtree, cls._one.directory, ignore_errors=True)
        return cls._one

    def clear(self) -> None:
        """Removes what a test has created."""
        for name in ("api", "main"):
            with sqlite3.connect(f"{self.directory}/{name}.db") as database:
                tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                for (table,) in tables.fetchall():
                    if table not in ("alembic_version", "cell_mappings"):
                        database.execute(f"DELETE FROM {table}")


class Cloud(unittest.TestCase):
    """Hosts with VCPUs. Those that are added first have the most memory and are preferred."""

    def setUp(self) -> None:
        self.world = World.get()
        self.world.clear()
        self.context = self.world.context
        self.placement = self.world.server.placement = Placement()
        self.settings(quota={"driver": "nova.quota.DbQuotaDriver"})
        self.manager = importutils.import_object(MANAGER)

    def settings(self, **groups: dict[str, Any]) -> None:
        """Overrides settings for this test."""
        for group, options in groups.items():
            for name, value in options.items():
                CONF.set_override(name, value, None if group == "DEFAULT" else group)
                self.addCleanup(CONF.clear_override, name, None if group == "DEFAULT" else group)

    def host(self, name: str, vcpus: int = 8, cards: int = 0) -> str:
        """Adds a host, with cards that have a VGPU each; returns the UUID of its provider."""
        found = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        number = len(self.placement.providers)
        nova_service = objects.Service(
            self.context, host=name, binary="nova-compute", topic="compute", report_count=1,
            disabled=False, last_seen_up=None)
        nova_service.create()
        memory = 1_000_000 - 10_000 * number
        objects.ComputeNode(
            self.context, uuid=found, service_id=nova_service.id, host=name,
            hypervisor_hostname=name, vcpus=vcpus, vcpus_used=0, memory_mb=memory, memory_mb_used=0,
            free_ram_mb=memory, local_gb=10_000, local_gb_used=0, free_disk_gb=10_000,
            hypervisor_type="fake", hypervisor_version=1, cpu_info="", running_vms=0,
            current_workload=0, disk_available_least=10_000, supported_hv_specs=[],
            cpu_allocation_ratio=1.0, ram_allocation_ratio=1.0, disk_allocation_ratio=1.0, mapped=1,
        ).create()
        objects.HostMapping(self.context, host=name, cell_mapping=self.world.cell).create()
        self.placement.providers[found] = Provider(
            {"VCPU": vcpus, "MEMORY_MB": memory, "DISK_GB": 10_000})
        for card in range(cards):
            child = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}-{card}"))
            self.placement.providers[child] = Provider({"VGPU": 1}, parent=found)
        return found

    def flavor(self, vcpus: int = 1, **specs: str) -> objects.Flavor:
        return objects.Flavor(
            self.context, flavorid=f"flavor-{vcpus}", name=f"flavor-{vcpus}", vcpus=vcpus,
            memory_mb=MEMORY_MB, root_gb=DISK_GB, ephemeral_gb=0, swap=0, extra_specs=specs)

    def group(self, policy: str, *members: str, **rules: int) -> objects.InstanceGroup:
        group = objects.InstanceGroup(
            self.context, uuid=str(uuid.uuid4()), name=policy, project_id=PROJECT, user_id=USER,
            policy=policy, rules=rules, members=list(members))
        group.create()
        return group

    def new(self, count: int = 1) -> list[str]:
        """New instances, which have no cell yet."""
        created = [str(uuid.uuid4()) for _ in range(count)]
        for instance in created:
            objects.InstanceMapping(
                self.context, instance_uuid=instance, project_id=PROJECT, user_id=USER,
                cell_mapping=None).create()
        return created

    def existing(self, host: str, vcpus: int = 1, vm_state: str = vm_states.ACTIVE) -> str:
        """An instance in the cell, which holds nothing yet."""
        instance, = self.new()
        flavor = self.flavor(vcpus)
        node = objects.ComputeNode.get_by_host_and_nodename(self.context, host, host)
        objects.Instance(
            self.context, uuid=instance, project_id=PROJECT, user_id=USER, host=host, node=host,
            compute_id=node.id, vm_state=vm_state, flavor=flavor, old_flavor=None, new_flavor=None,
            vcpus=vcpus, memory_mb=MEMORY_MB, root_gb=DISK_GB, ephemeral_gb=0).create()
        mapping = objects.InstanceMapping.get_by_instance_uuid(self.context, instance)
        mapping.cell_mapping = self.world.cell
        mapping.save()
        return instance

    def spec(
        self, instances: list[str], flavor: objects.Flavor | None = None,
        group: objects.InstanceGroup | None = None, **more: Any,
    ) -> objects.RequestSpec:
        spec = objects.RequestSpec.from_components(
            self.context, instances[0], {}, flavor or self.flavor(), None, None, {}, None, None,
            project_id=PROJECT, user_id=USER)
        spec.image = objects.ImageMeta.from_dict({})
        spec.num_instances = len(instances)
        spec.is_bfv = False
        if group:
            # The conductor does the same.
            spec.instance_group = objects.InstanceGroup.get_by_uuid(self.context, group.uuid)
            spec.instance_group.hosts = []
            utils.setup_instance_group(self.context, spec)
        for name, value in more.items():
            setattr(spec, name, value)
        return spec

    def schedule(
        self, instances: list[str], *, return_alternates: bool = True, **spec: Any
    ) -> list[list[objects.Selection]]:
        """Sends a request to the manager, as the conductor does."""
        try:
            return self.manager.select_destinations(
                self.context, spec_obj=self.spec(instances, **spec), instance_uuids=instances,
                return_objects=True, return_alternates=return_alternates)
        except messaging.ExpectedException as expected:
            raise expected.exc_info[1] from None

    def hosts(self, selections: list[list[objects.Selection]]) -> list[str]:
        return [alternatives[0].service_host for alternatives in selections]

    def claims(self) -> list[Any]:
        """The bodies of the claims that were sent."""
        return [body for method, path, body in self.placement.asked
                if (method, path) == ("POST", "/placementd/v1/claims")]

    def sent(self, method: str, path: str) -> int:
        """The number of requests whose path begins with this."""
        return sum(
            asked == method and its.startswith(path) for asked, its, _ in self.placement.asked)

    def held(self, instance: str) -> set[str]:
        """The providers on which an instance holds something."""
        consumer = self.placement.consumers.get(instance)
        return set(consumer.allocations) if consumer else set()
