#!/usr/bin/env python3
"""Writes the dashboards for Grafana: what they show stands here, and what Grafana needs besides is added.

usage: observability/dashboards.py [DIR]      DIR: where they go [default: dashboards next to this file]
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
    return [(quantile(share, metric, labels=labels), name) for share, name in [(0.5, "half"), (0.95, "95 %"), (0.99, "99 %")]]


def each(metric: str, legend: str = "{{instance}}") -> list:
    return [(f"{metric}{{{JOB}}}", legend)]


# Rows of panels: title, unit, expressions with their legends. A title that ends in "!" is one number.
FLEET = [
    ("Is it well?", [
        ("Ready nodes!", "none", [(f"sum(placement_ready{{{JOB}}})", "")]),
        ("Voters!", "none", [(f"max(placement_raft_voters{{{JOB}}})", "")]),
        ("Voters that may be lost!", "none", [(f"max(placement_raft_can_lose{{{JOB}}})", "")]),
        ("Alerts that fire!", "none", [('count(ALERTS{alertname=~"Placement.*",alertstate="firing"}) or vector(0)', "")]),
        ("Ready", "bool", each("placement_ready")),
        ("Leader", "bool", each("placement_raft_leads")),
        ("Drained", "bool", each("placement_drained")),
        ("Version", "none", [(f"count by (version) (placement_build_info{{{JOB}}})", "{{version}}")]),
    ]),
    ("Raft", [
        ("Entries applied", "ops", [(rate("placement_log_entries_applied_total", "instance"), "{{instance}}")]),
        ("Entries that a node lacks", "none", each("placement_raft_follower_lag", "node {{node}}")),
        ("Changes of the leader in an hour", "none", [(f"increase(placement_raft_leader_changes_total{{{JOB}}}[1h])", "{{instance}}")]),
        ("Round trips", "s", each("placement_peer_round_trip_seconds", "{{instance}} to {{peer}}")),
    ]),
    ("Disks", [
        ("Log syncs, 99 %", "s", [(quantile(0.99, "placement_log_sync_duration_seconds", "instance"), "{{instance}}")]),
        ("Current call to the disk", "s", each("placement_disk_wait_seconds")),
        ("Free", "bytes", each("placement_disk_free_bytes")),
        ("Used by the data directory", "bytes", each("placement_disk_used_bytes")),
        ("Time since the last backup", "s", [(f"time() - (placement_backup_last_timestamp_seconds{{{JOB}}} > 0)", "{{instance}}")]),
        ("Certificates end in", "s", [(f"placement_certificate_end_timestamp_seconds{{{JOB}}} - time()", "{{instance}} {{listener}}")]),
    ]),
    ("Processes", [
        ("Processors in use", "none", [(rate("process_cpu_seconds_total", "instance"), "{{instance}}")]),
        ("Memory", "bytes", each("process_resident_memory_bytes")),
        ("File descriptors", "none", each("process_open_fds")),
        ("Running for", "s", [(f"time() - process_start_time_seconds{{{JOB}}}", "{{instance}}")]),
    ]),
    ("What they hold", [
        ("Providers", "none", [(f"max by (partition) (placement_partition_providers{{{JOB}}})", "{{partition}}")]),
        ("Consumers", "none", [(f"max by (partition) (placement_partition_consumers{{{JOB}}})", "{{partition}}")]),
    ]),
]
API = [
    ("Requests", [
        ("Requests by route", "reqps", [(rate(f"{REQUESTS}_count", "method, route"), "{{method}} {{route}}")]),
        ("Requests by status", "reqps", [(rate(f"{REQUESTS}_count", "status"), "{{status}}")]),
        ("Requests by node", "reqps", [(rate(f"{REQUESTS}_count", "instance"), "{{instance}}")]),
        ("Requests by partition", "reqps", [(rate("placement_partition_requests_total", "partition"), "{{partition}}")]),
        ("Open connections", "none", each("placement_http_connections")),
    ]),
    ("Time to answer", [
        ("All requests", "s", quantiles(REQUESTS)),
        ("Searches", "s", quantiles(REQUESTS, SEARCHES)),
        ("Writes", "s", quantiles(REQUESTS, WRITES)),
        ("95 % by route", "s", [(quantile(0.95, REQUESTS, "route"), "{{route}}")]),
    ]),
    ("Refused", [
        ("503 by code", "reqps", [(rate("placement_unavailable_total", "code"), "{{code}}")]),
        ("409 by code", "reqps", [(rate("placement_write_refusals_total", "code"), "{{code}}")]),
        ("429 by limit", "reqps", [(rate("placement_http_callers_refused_total", "limit"), "{{limit}}")]),
    ]),
    ("Searches for hosts", [
        ("Searches by result", "reqps", [(rate("placement_searches_total", "result"), "{{result}}")]),
        ("Empty searches by reason", "reqps", [(rate("placement_searches_empty_total", "reason"), "{{reason}}")]),
    ]),
    ("Reads and Keystone", [
        ("Linearizable reads", "reqps", [(rate("placement_reads_linearized_total", "instance"), "{{instance}}")]),
        ("Questions to the leader", "reqps", [(rate("placement_read_rounds_total", "instance"), "{{instance}}")]),
        ("Tokens by Keystone's answer", "reqps", [(rate("placement_keystone_requests_total", "result"), "{{result}}")]),
        ("Tokens that wait for Keystone", "none", each("placement_keystone_waiting")),
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


def dashboard(name: str, rows: list) -> dict:
    return {
        "uid": f"placementd-{name.lower()}",
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
    for name, rows in [("Fleet", FLEET), ("API", API)]:
        text = json.dumps(dashboard(name, rows), indent=1, ensure_ascii=False)
        (to / f"{name.lower()}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
