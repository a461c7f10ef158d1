"""Keeps a mirror of a cluster from its events; compares it with the API once standard input has a
token."""
import collections, http.client, itertools, json, os, sys, threading, time, urllib.request
nodes, token, goal, mirror, seen = itertools.cycle(sys.argv[1:]), None, [], {}, collections.Counter()

def ask(path, **more):
    headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"} | more
    return urllib.request.urlopen(urllib.request.Request(f"http://{next(nodes)}{path}", headers=headers), timeout=30)

def take(line):
    global token, mirror
    if "snapshot" in line:  # A new snapshot replaces an interrupted one.
        token = mirror.clear()
    rows = [line | {"after": line["value"]}] if "value" in line else line.get("changes", [])
    for row in rows:
        key, before, after = json.dumps([row["kind"], row["key"]], sort_keys=True), row.get("before"), row["after"]
        if row["kind"] == "class" and before and after:  # This renames rows without an event.
            old, new = (f'"{value["name"]}"' for value in (before, after))
            renamed = lambda at, value: (at.replace(f'_class": {old}', f'_class": {new}'), value.replace(f"{old}:", f"{new}:"))
            mirror = dict(renamed(*item) for item in mirror.items())
            seen["renamed"] += 1
        assert json.loads(mirror.get(key, "null")) == before, (line, mirror.get(key))
        mirror.update({key: json.dumps(after)}) if after else mirror.pop(key, None)
        seen["changes"] += "before" in row
    token = line.get("index") or line.get("progress") or line.get("snapshot_end") or line.get("next") or token

def compare():
    get = lambda path: json.load(ask(path, **{"Placement-Min-Index": token}))
    of = collections.defaultdict(lambda: collections.defaultdict(dict))
    for item in mirror.items():
        (kind, key), value = map(json.loads, item)
        of[key.pop("resource_provider", None)][kind][next(iter(key.values()), None)] = value
    there, consumers, classes = (of[None][kind] for kind in ("provider", "consumer", "class"))
    assert classes.keys() == {one["name"] for one in get("/resource_classes")["resource_classes"]}, classes
    found = get("/resource_providers")["resource_providers"]
    found = {one["uuid"]: {name: one[name] for name in there.get(one["uuid"], ())} for one in found}
    assert found == there, (found, there)
    for uuid in there:
        has, used = of[uuid], collections.Counter()
        held = {holder: one | {"consumer_generation": consumers[holder]["consumer_generation"]}
                for holder, one in has["allocation"].items() if not used.update(one["resources"])}
        expected = {"inventories": has["inventory"], "allocations": held, "usages": {name: used[name] for name in has["inventory"]}}
        expected |= {what + "s": sorted(has[what].get(None, {}).get(what + "s", [])) for what in ("trait", "aggregate")}
        for what, value in expected.items():
            answer = get(f"/resource_providers/{uuid}/{what}")[what]
            assert (sorted(answer) if isinstance(answer, list) else answer) == value, (uuid, what, answer, value)
        seen.update(providers=1, allocations=len(held))
    print(json.dumps(seen))

reached = lambda: goal and token and int(token.split(".")[1]) >= int(goal[0].split(".")[1])
limit = lambda: (goal.append(sys.stdin.readline()), time.sleep(60), reached() or os._exit(1))
threading.Thread(target=limit, daemon=True).start()
while not reached():
    try:
        stream = ask("/placementd/v1/events?or_snapshot=true" + (f"&after={token}" if token else ""))
        seen["streams"] += 1
        while not reached() and (line := stream.readline()).endswith(b"\n"):
            take(json.loads(line))
    except (OSError, http.client.HTTPException):
        time.sleep(0.1)
compare()
