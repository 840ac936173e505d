#!/usr/bin/env python3
"""rest_storm.py OPERATIONS SECONDS SEED DIR URL...: creates, updates and deletes of connectors through all workers at
once, evenly over the seconds; a client of its own for each connector, so that its last accepted request is known.

An answer 409 is tried again after Retry-After (1 s when there is none). Prints one JSON object: "exist" (name ->
"marker" of the last accepted config), "deleted" (names), "answers" (how often each status), "wrong" (texts of answers
that must not be), "seconds". Used by spec/kafka and spec/fault/cluster_spec.lua."""
import json
import random
import sys
import threading
import time
import urllib.error
import urllib.request

GIVE_UP = 120
lock = threading.Lock()
answers, wrong, exist, deleted = {}, [], {}, set()


def call(method, url, body):
    request = urllib.request.Request(url, method=method, headers={'Content-Type': 'application/json'},
                                     data=None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=100) as r:
            return r.status, r.read().decode(), r.headers
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode(), e.headers
    except OSError as e:
        return 0, str(e), {}


def until_accepted(method, url, body):
    """True when it was accepted. A 409 of a rebalance may have done its work all the same."""
    stop, again = time.monotonic() + GIVE_UP, False
    while True:
        status, text, headers = call(method, url, body)
        with lock:
            answers[str(status)] = answers.get(str(status), 0) + 1
        if status in (200, 201, 204) or (again and (status == 404 or 'already exists' in text)):
            return True
        if status != 409 or time.monotonic() > stop:
            with lock:
                wrong.append(f'{method} {url}: {status} {text}')
            return False
        again = True
        time.sleep(float(headers.get('Retry-After') or 1))


def client(name, operations, urls, directory, rng):
    there = False
    for i, at in enumerate(operations):
        time.sleep(max(0, begin + at - time.monotonic()))
        url = rng.choice(urls)
        marker = f'{name}-{i}'
        config = {'connector.class': 'FileStreamSource', 'file': f'{directory}/{marker}.txt', 'topic': 'storm-' + name,
                  'marker': marker}
        if there and rng.random() < 0.4:
            if until_accepted('DELETE', f'{url}/connectors/{name}', None):
                there = False
                with lock:
                    exist.pop(name, None)
                    deleted.add(name)
            continue
        if not there and rng.random() < 0.5:
            done = until_accepted('POST', f'{url}/connectors', {'name': name, 'config': config})
        else:
            done = until_accepted('PUT', f'{url}/connectors/{name}/config', config)
        if done:
            there = True
            with lock:
                deleted.discard(name)
                exist[name] = marker


count, seconds, seed = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
main_rng = random.Random(seed)
names = [f's{i:02d}' for i in range(max(1, count // 5))]
plan = {n: [] for n in names}
for i in range(count):
    plan[names[i % len(names)]].append(i * seconds / count)
begin = time.monotonic()
threads = [threading.Thread(target=client, args=(n, plan[n], sys.argv[5:], sys.argv[4], random.Random(main_rng.random())))
           for n in names]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(json.dumps({'exist': exist, 'deleted': sorted(deleted), 'answers': answers, 'wrong': wrong,
                  'seconds': round(time.monotonic() - begin, 1)}))
