#!/usr/bin/env python3
"""Generates the Grafana dashboards from the panels that are defined here.

usage: observability/dashboards.py [DIR]      DIR: output directory [default: dashboards next to this file]
"""
import json
import pathlib
import sys

JOB = 'job="$job"'
REQUESTS = "placement_http_request_duration_seconds"
SEARCHES = f'{JOB},route="/allocation_candidates"'
WRITES = f'{JOB},method=~"PUT|POST|DELETE"'


def rate(metric: str, by: str, labels: str = JOB) -> str:
    return f"sum by ({by}) (rate({metric}{{{labels}}}[$__rate_interval]))"


def quantile(share: float, metric: str, by: str = "", labels: str = JOB) -> str:
    return f"histogram_quantile({share}, {rate(f'{metric}_bucket', f'{by}, le' if by else 'le', labels)})"


def quantiles(metric: str, labels: str = JOB) -> list:
    return [(quantile(share, metric, labels=labels), name) for share, name in [(0.5, "median"), (0.95, "95 %"), (0.99, "99 %")]]


def each(metric: str, legend: str = "{{instance}}") -> list:
    return [(f"{metric}{{{JOB}}}", legend)]


BY_CLASS = "{{partition}} {{resource_class}}"


def of_class(metric: str) -> str:
    return f"max by (partition, resource_class) (placement_inventory_{metric}{{{JOB}}})"


# Rows of panels: title, unit, expressions with their legends. A panel whose title ends in "!" shows
# a single number.
FLEET = [
    ("Health", [
        ("Ready nodes!", "none", [(f"sum(placement_ready{{{JOB}}})", "")]),
        ("Voters!", "none", [(f"max(placement_raft_voters{{{JOB}}})", "")]),
        ("Voters that can be lost!", "none", [(f"max(placement_raft_can_lose{{{JOB}}})", "")]),
        ("Firing alerts!", "none", [('count(ALERTS{alertname=~"Placement.*",alertstate="firing"}) or vector(0)', "")]),
        ("Ready", "bool", each("placement_ready")),
        ("Leader", "bool", each("placement_raft_leads")),
        ("Drained", "bool", each("placement_drained")),
        ("Version", "none", [(f"count by (version) (placement_build_info{{{JOB}}})", "{{version}}")]),
    ]),
    ("Limits and expiry", [
        ("Free disk space", "bytes", each("placement_disk_free_bytes")),
        ("Time since the last backup", "s", [(f"time() - (placement_backup_last_timestamp_seconds{{{JOB}}} > 0)", "{{instance}}")]),
        ("Certificates expire in", "s", [(f"placement_certificate_end_timestamp_seconds{{{JOB}}} - time()", "{{instance}} {{listener}}")]),
        ("File descriptors", "percentunit", [(f"process_open_fds{{{JOB}}} / process_max_fds{{{JOB}}}", "{{instance}}")]),
    ]),
    ("Processes", [
        ("CPU cores in use", "none", [(rate("process_cpu_seconds_total", "instance"), "{{instance}}")]),
        ("Memory", "bytes", each("process_resident_memory_bytes")),
        ("Uptime", "s", [(f"time() - process_start_time_seconds{{{JOB}}}", "{{instance}}")]),
    ]),
    ("Contents", [
        ("Providers", "none", [(f"max by (partition) (placement_partition_providers{{{JOB}}})", "{{partition}}")]),
        ("Consumers", "none", [(f"max by (partition) (placement_partition_consumers{{{JOB}}})", "{{partition}}")]),
    ]),
]
RAFT_AND_DISKS = [
    ("Raft group", [
        ("Leader", "none", [(f"max by (peer) (placement_raft_leader{{{JOB}}})", "node {{peer}}")]),
        ("Leader changes per hour", "none", [(f"increase(placement_raft_leader_changes_total{{{JOB}}}[1h])", "{{instance}}")]),
        ("Reachable peers", "bool", each("placement_peer_up", "{{instance}} to {{peer}}")),
        ("Round trips", "s", each("placement_peer_round_trip_seconds", "{{instance}} to {{peer}}")),
        ("Sent to other nodes", "Bps", [(rate("placement_peer_sent_bytes_total", "instance, peer"), "{{instance}} to {{peer}}")]),
        ("Clock ahead of other voters", "s", each("placement_clock_ahead_seconds")),
    ]),
    ("The log", [
        ("Entries applied", "ops", [(rate("placement_log_entries_applied_total", "instance"), "{{instance}}")]),
        ("Entries that a node is behind", "none", each("placement_raft_follower_lag", "node {{node}}")),
        ("Time to acknowledge entries", "s", each("placement_raft_follower_acknowledgement_seconds", "node {{node}}")),
        ("Age of the state", "s", each("placement_staleness_seconds")),
        ("Entries kept", "none", [(f"placement_raft_last_log_index{{{JOB}}} - placement_raft_purged_index{{{JOB}}}", "{{instance}}")]),
        ("Time to sync, 99 %", "s", [(quantile(0.99, "placement_log_sync_duration_seconds", "instance"), "{{instance}}")]),
        ("Time to apply, 99 %", "s", [(quantile(0.99, "placement_apply_duration_seconds", "instance"), "{{instance}}")]),
    ]),
    ("Disks", [
        ("Duration of the current disk call", "s", each("placement_disk_wait_seconds")),
        ("Used by the data directory", "bytes", each("placement_disk_used_bytes")),
        ("SST files", "bytes", each("placement_rocksdb_sst_bytes", "{{instance}} {{db}}")),
        ("Pending compaction", "bytes", each("placement_rocksdb_pending_compaction_bytes", "{{instance}} {{db}}")),
        ("Failed flushes, compactions and snapshots", "none", [
            (f"placement_rocksdb_background_errors_total{{{JOB}}}", "{{instance}} {{db}}"),
            (f"placement_raft_snapshots_failed_total{{{JOB}}}", "{{instance}} snapshots"),
        ]),
        ("Entries missing in the archived log", "none", [(f"placement_raft_applied_index{{{JOB}}} - (placement_backup_log_index{{{JOB}}} > 0)", "{{instance}}")]),
    ]),
]
CAPACITY = [
    ("Resource classes", [
        ("Allocated", "percentunit", [(f'{of_class("used")} / ({of_class("capacity")} > 0)', BY_CLASS)]),
        ("Days remaining at last week's rate", "d", [(f'clamp_max({of_class("free")} / clamp_min(-86400 * deriv(({of_class("free")})[7d:1h]), 1e-9), 3650)', BY_CLASS)]),
        ("Free", "none", [(of_class("free"), BY_CLASS)]),
        ("Largest free amount of one provider", "none", [(of_class("largest_free"), BY_CLASS)]),
    ]),
    ("Units", [
        ("Total", "none", [(of_class("units"), BY_CLASS)]),
        ("Reserved", "none", [(of_class("reserved"), BY_CLASS)]),
        ("Capacity with overcommit", "none", [(of_class("capacity"), BY_CLASS)]),
        ("Used", "none", [(of_class("used"), BY_CLASS)]),
    ]),
    ("Room", [
        ("How often named queries fit", "none", [(f"max by (partition, name) (placement_fits{{{JOB}}})", "{{partition}} {{name}}")]),
        ("Hosts by what their loss would mean", "none", [(f"max by (partition, outcome) (placement_refuge_trees{{{JOB}}})", "{{partition}} {{outcome}}")]),
        ("Holds", "none", [
            (f"max by (partition) (placement_holds{{{JOB}}})", "{{partition}}"),
            (f"max by (partition) (placement_holds_overdue{{{JOB}}})", "{{partition}} overdue"),
        ]),
    ]),
    ("Demand", [
        ("Consumers by type", "none", [(f"max by (partition, type) (placement_consumers{{{JOB}}})", "{{partition}} {{type}}")]),
        ("Providers", "none", [(f"max by (partition) (placement_partition_providers{{{JOB}}})", "{{partition}}")]),
        ("Searches by result", "reqps", [(rate("placement_searches_total", "result"), "{{result}}")]),
        ("Empty searches by reason", "reqps", [(rate("placement_searches_empty_total", "reason"), "{{reason}}")]),
    ]),
]
API = [
    ("Requests", [
        ("Requests by route", "reqps", [(rate(f"{REQUESTS}_count", "method, route"), "{{method}} {{route}}")]),
        ("Requests by status", "reqps", [(rate(f"{REQUESTS}_count", "status"), "{{status}}")]),
        ("Requests by node", "reqps", [(rate(f"{REQUESTS}_count", "instance"), "{{instance}}")]),
        ("Requests by partition", "reqps", [(rate("placement_partition_requests_total", "partition"), "{{partition}}")]),
        ("Open connections", "none", each("placement_http_connections")),
        ("Requests in flight", "none", each("placement_http_in_flight")),
        ("Streams of changes", "none", each("placement_event_streams")),
    ]),
    ("Latency", [
        ("All requests", "s", quantiles(REQUESTS)),
        ("Searches", "s", quantiles(REQUESTS, SEARCHES)),
        ("Writes", "s", quantiles(REQUESTS, WRITES)),
        ("95 % by route", "s", [(quantile(0.95, REQUESTS, "route"), "{{route}}")]),
    ]),
    ("Rejected requests", [
        ("503 by code", "reqps", [(rate("placement_unavailable_total", "code"), "{{code}}")]),
        ("409 by code", "reqps", [(rate("placement_write_refusals_total", "code"), "{{code}}")]),
        ("429 by limit", "reqps", [(rate("placement_http_callers_refused_total", "limit"), "{{limit}}")]),
    ]),
    ("Searches for hosts", [
        ("Searches by result", "reqps", [(rate("placement_searches_total", "result"), "{{result}}")]),
        ("Empty searches by reason", "reqps", [(rate("placement_searches_empty_total", "reason"), "{{reason}}")]),
        ("Waiting searches", "none", each("placement_searches_waiting")),
        ("Claims by outcome", "reqps", [(rate("placement_claims_total", "outcome"), "{{outcome}}")]),
    ]),
    ("Reads and Keystone", [
        ("Linearizable reads", "reqps", [(rate("placement_reads_linearized_total", "instance"), "{{instance}}")]),
        ("Read index requests to the leader", "reqps", [(rate("placement_read_rounds_total", "instance"), "{{instance}}")]),
        ("Token validations by result", "reqps", [(rate("placement_keystone_requests_total", "result"), "{{result}}")]),
        ("Waiting token validations", "none", each("placement_keystone_waiting")),
    ]),
]
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH, HEIGHT, NUMBERS = 24, 7, 4


def panel(number: int, at: tuple, title: str, unit: str, shown: list) -> dict:
    is_number = title.endswith("!")
    targets = [
        {"datasource": SOURCE, "expr": expr, "legendFormat": legend, "refId": chr(ord("A") + nth)}
        for nth, (expr, legend) in enumerate(shown)
    ]
    return {
        "id": number,
        "type": "stat" if is_number else "timeseries",
        "title": title.rstrip("!"),
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "gridPos": dict(zip("xywh", at)),
        "targets": targets,
    }


def panels(rows: list) -> list:
    made, y = [], 0
    for title, row in rows:
        made.append({"id": len(made) + 1, "type": "row", "title": title, "collapsed": False,
                     "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1}})
        y += 1
        x = 0
        for name, unit, shown in row:
            width, height = (WIDTH // 4, NUMBERS) if name.endswith("!") else (WIDTH // 2, HEIGHT)
            made.append(panel(len(made) + 1, (x, y, width, height), name, unit, shown))
            x += width
            if x == WIDTH:
                x, y = 0, y + height
        y += HEIGHT if x else 0
    return made


def file_name(name: str) -> str:
    return name.lower().replace(" ", "-")


def dashboard(name: str, rows: list) -> dict:
    return {
        "uid": f"placementd-{file_name(name)}",
        "title": f"placementd: {name}",
        "tags": ["placementd"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus"},
            {"name": "job", "type": "query", "datasource": SOURCE, "refresh": 2,
             "query": {"query": "label_values(placement_ready, job)", "refId": "job"}},
        ]},
        "panels": panels(rows),
    }


def main() -> None:
    to = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "dashboards"
    to.mkdir(parents=True, exist_ok=True)
    for name, rows in [("Fleet", FLEET), ("API", API), ("Raft and disks", RAFT_AND_DISKS), ("Capacity", CAPACITY)]:
        text = json.dumps(dashboard(name, rows), indent=1, ensure_ascii=False)
        (to / f"{file_name(name)}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
