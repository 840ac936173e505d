#!/usr/bin/env python3
"""line_writer.py LINES_A_SECOND FILE=PREFIX...: appends numbered lines "PREFIX-<n> created" to each file in turn, so
many a second in all, until SIGTERM. A file's last line says how many there are. Used by spec/support/cluster.lua."""
import signal
import sys
import time

STEP = 0.05
going = True


def stop(*_):
    global going
    going = False


signal.signal(signal.SIGTERM, stop)
rate = float(sys.argv[1])
files = []
for argument in sys.argv[2:]:
    path, _, prefix = argument.rpartition('=')
    files.append([open(path, 'ab', buffering=0), prefix, 0])
start, written = time.monotonic(), 0
while going:
    due = int((time.monotonic() - start) * rate)
    batches = {}
    while written < due:
        f = files[written % len(files)]
        f[2] += 1
        batches.setdefault(f[1], [f[0], []])[1].append(f'{f[1]}-{f[2]} created\n')
        written += 1
    for file, lines in batches.values():
        file.write(''.join(lines).encode())
    time.sleep(STEP)
