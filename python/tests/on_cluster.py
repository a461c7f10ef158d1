"""Claims through each node of a cluster, and follows the claims, while nodes are killed.

usage: on_cluster.py URL...
Claims until standard input ends. Then waits until the stream of changes has had each claim once,
and prints the number of claims. tests/tests/clients.rs runs it.
"""

import faulthandler
import itertools
import os
import sys
import threading
import traceback
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from keystoneauth1 import session, token_endpoint

from placementd_client import PlacementAdapter

# Longer than a node takes to restart on a busy machine, in seconds.
PATIENCE = 120.0
# The program fails if it takes longer, in seconds.
LIMIT = 400


def adapter(url: str) -> PlacementAdapter:
    auth = token_endpoint.Token(url, "admin")
    return PlacementAdapter(
        session.Session(auth=auth, timeout=30),
        default_microversion="1.39",
        patience=PATIENCE,
        repeat_unknown=True,
    )


def create_host(placement: PlacementAdapter) -> str:
    """A provider with room for all claims."""
    host = placement.post("/resource_providers", json={"name": "host"}).json()
    offer = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 1_000_000}}}
    placement.put(f"/resource_providers/{host['uuid']}/inventories", json=offer)
    return host["uuid"]


def claim(url: str, others: list[str], host: str, is_over: threading.Event) -> list[str]:
    """Claims through a node and reads each claim through another one."""
    writer = adapter(url)
    readers = itertools.cycle([adapter(other) for other in others])
    claimed = []
    while not is_over.is_set():
        consumer = str(uuid.uuid4())
        body = {
            "allocations": {host: {"resources": {"VCPU": 1}}},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        writer.put(f"/allocations/{consumer}", json=body)
        claimed.append(consumer)
        reader = next(readers)
        reader.remember(writer.min_index)
        answer = reader.get(f"/allocations/{consumer}")
        assert answer.headers["Placement-Effective-Consistency"] == "session", answer.headers
        assert answer.json()["consumer_generation"] == 1, answer.text
    return claimed


def follow(placement: PlacementAdapter, after: str, expected: list[set[str]]) -> Counter[str]:
    """The number of times that the stream has had each consumer, once it has had all.

    The consumers are the member of the list, which is empty until they are known.
    """
    seen: Counter[str] = Counter()
    for line in placement.events(after, kind="allocation"):
        if "snapshot" in line:
            seen.clear()
        changes = [line] if "value" in line else line.get("changes", [])
        seen.update(change["key"]["consumer"] for change in changes)
        if expected and expected[0] <= seen.keys():
            return seen


def main(*urls: str) -> None:
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    first = adapter(urls[0])
    host = create_host(first)
    is_over = threading.Event()
    expected: list[set[str]] = []
    with ThreadPoolExecutor() as threads:
        following = threads.submit(follow, adapter(urls[-1]), first.min_index, expected)
        claims = [
            threads.submit(claim, url, [other for other in urls if other != url], host, is_over)
            for url in urls
        ]
        sys.stdin.read()
        is_over.set()
        try:
            claimed = {consumer for each in claims for consumer in each.result()}
        except BaseException:
            # The other thread would never end.
            traceback.print_exc()
            os._exit(1)
        expected.append(claimed)
        seen = following.result()
    assert seen == Counter(claimed), seen - Counter(claimed)
    # This adapter has not seen the latest claims of the others.
    linearizable = {"Placement-Consistency": "linearizable"}
    used = first.get(f"/resource_providers/{host}/usages", headers=linearizable).json()["usages"]
    assert used == {"VCPU": len(claimed)}, used
    print(len(claimed))


if __name__ == "__main__":
    main(*sys.argv[1:])
