"""Keeps a mirror of a cluster from its events, and compares it with the API once standard input has a token."""
import collections, http.client, itertools, json, os, sys, threading, time
nodes, token, goal, mirror, seen = itertools.cycle(sys.argv[1:]), None, [], {}, collections.Counter()

def ask(path, **more):
    connection = http.client.HTTPConnection(next(nodes), timeout=30)
    connection.request("GET", path, headers={"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"} | more)
    return connection.getresponse()

def take(line):
    global token
    if "snapshot" in line:  # One that breaks off begins again.
        token = mirror.clear()
    rows = [line | {"after": line["value"]}] if "value" in line else line.get("changes", [])
    for row in rows:
        key = row["kind"], *sorted(row["key"].items())
        assert mirror.get(key) == row.get("before"), (line, mirror.get(key))
        mirror[key] = row["after"]
        seen["changes"] += "before" in row
    token = line.get("index") or line.get("progress") or line.get("snapshot_end") or line.get("next") or token

def compare():
    get = lambda path: json.load(ask(path, **{"Placement-Min-Index": token}))
    of = collections.defaultdict(lambda: collections.defaultdict(dict))
    for (kind, *key), value in mirror.items():
        key = dict(key)
        if value and (provider := key.get("resource_provider")):
            of[provider][kind][key.get("resource_class") or key.get("consumer")] = value
        elif value:
            of[kind][next(iter(key.values()))] = value
    there, consumers = of["provider"], of["consumer"]
    for one in (found := get("/resource_providers")["resource_providers"]):
        assert one.items() > there[one["uuid"]].items(), (one, there)
    assert len(found) == len(there), (found, there)
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
        if stream.status != 200:
            raise OSError(stream.read())
        seen["streams"] += 1
        while not reached() and (line := stream.readline()).endswith(b"\n"):
            take(json.loads(line))
    except (OSError, http.client.HTTPException):
        time.sleep(0.1)
compare()
