#!/usr/bin/env python3
"""tcp_proxy.py LISTEN_PORT TARGET_PORT CONTROL_PORT: a TCP proxy on 127.0.0.1 that breaks on demand.

Commands, one a line on the control port, answered by "ok" or "error TEXT" once they are in force:
  pass          forward (the start); connections of which bytes were swallowed are reset
  cut           reset all connections, refuse new ones (nothing listens any more)
  reset         reset all connections once; new ones are served as before
  strand        half-open for good: connections of now are swallowed from now on and never reset; new ones are served
  blackhole     half-open: accept, read and swallow, in both directions
  hold          accept, read nothing: what was sent waits and arrives after `pass`
  latency MS    each piece waits that long, in both directions; 0: none
  slice BYTES   forward at most so many bytes at a time; 0: no limit
  rate BYTES    bytes a second and direction; 0: no limit
  count         "ok N": connections now
Used by spec/support/tcp_proxy.lua.
"""
import asyncio
import socket
import struct
import sys

LINGER_RESET = struct.pack('ii', 1, 0)


class Proxy:
    def __init__(self, port, target):
        self.port, self.target = port, target
        self.mode, self.latency, self.slice, self.rate = 'pass', 0.0, 0, 0
        self.server, self.pairs = None, set()
        self.changed = asyncio.Event()

    async def listen(self):
        if self.server is None:
            self.server = await asyncio.start_server(self.accept, '127.0.0.1', self.port, reuse_address=True)

    def unlisten(self):
        if self.server is not None:
            self.server.close()
            self.server = None

    async def accept(self, reader, writer):
        pair = Pair(self, reader, writer)
        self.pairs.add(pair)
        try:
            await pair.run()
        finally:
            pair.reset()
            self.pairs.discard(pair)

    async def set_mode(self, mode):
        self.mode = mode
        if mode == 'cut':
            self.unlisten()
        else:
            await self.listen()
        for pair in list(self.pairs):
            if mode == 'cut' or (mode == 'pass' and pair.swallowed and not pair.stranded):
                pair.reset()
        self.changed.set()
        self.changed = asyncio.Event()

    async def command(self, line):
        words = line.split()
        if words in (['pass'], ['cut'], ['blackhole'], ['hold']):
            await self.set_mode(words[0])
        elif words == ['reset']:
            for pair in list(self.pairs):
                pair.reset()
        elif words == ['strand']:
            for pair in list(self.pairs):
                pair.stranded = True
        elif words == ['count']:
            return f'ok {len(self.pairs)}'
        elif len(words) == 2 and words[0] in ('latency', 'slice', 'rate') and words[1].isdigit():
            n = int(words[1])
            setattr(self, words[0], n / 1000 if words[0] == 'latency' else n)
        else:
            return f'error unknown command: {line.strip()}'
        return 'ok'

    async def control(self, reader, writer):
        while line := await reader.readline():
            try:
                answer = await self.command(line.decode())
            except OSError as e:
                answer = f'error {e}'
            writer.write((answer + '\n').encode())
            await writer.drain()
        writer.close()


class Pair:
    def __init__(self, proxy, reader, writer):
        self.proxy, self.reader, self.writer = proxy, reader, writer
        self.other_writer, self.tasks, self.swallowed, self.stranded = None, [], False, False

    async def run(self):
        while self.proxy.mode == 'hold':
            await self.proxy.changed.wait()
        if self.proxy.mode == 'blackhole':  # the target never hears of it
            self.tasks = [asyncio.ensure_future(self.pump(self.reader, None))]
        else:
            try:
                reader, self.other_writer = await asyncio.open_connection('127.0.0.1', self.proxy.target)
            except OSError:
                return
            self.tasks = [asyncio.ensure_future(self.pump(self.reader, self.other_writer)),
                          asyncio.ensure_future(self.pump(reader, self.writer))]
        try:
            await asyncio.gather(*self.tasks)
        except (OSError, asyncio.CancelledError):
            pass

    async def pump(self, reader, writer):
        """Reads pieces at the rate that is set; forward() writes them, each when its time has come."""
        proxy, clock = self.proxy, asyncio.get_running_loop().time
        pieces = asyncio.Queue(4096)
        forward = asyncio.ensure_future(self.forward(pieces, writer))
        self.tasks.append(forward)
        data = b'-'
        while data:
            while proxy.mode == 'hold':
                await proxy.changed.wait()
            size = proxy.slice or 65536
            if proxy.rate:
                size = min(size, max(1, proxy.rate // 20))
            data = await reader.read(size)
            if proxy.rate:
                await asyncio.sleep(len(data) / proxy.rate)
            await pieces.put((clock() + proxy.latency, data))
        await forward

    async def forward(self, pieces, writer):
        proxy, clock = self.proxy, asyncio.get_running_loop().time
        while True:
            due, data = await pieces.get()
            if due > clock():
                await asyncio.sleep(due - clock())
            while proxy.mode == 'hold':
                await proxy.changed.wait()
            if not data:
                break
            if proxy.mode == 'blackhole' or self.stranded or writer is None:
                self.swallowed = True
                continue
            try:
                writer.write(data)
                await writer.drain()
            except OSError:
                self.reset()
                return
        if writer is not None and proxy.mode == 'pass' and not self.stranded:
            writer.write_eof()

    def reset(self):
        for writer in (self.writer, self.other_writer):
            if writer is None or writer.transport.is_closing():
                continue
            sock = writer.get_extra_info('socket')
            try:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
            except OSError:
                pass
            writer.transport.abort()
        for task in self.tasks:
            task.cancel()


async def main():
    port, target, control = (int(a) for a in sys.argv[1:4])
    proxy = Proxy(port, target)
    await proxy.listen()
    server = await asyncio.start_server(proxy.control, '127.0.0.1', control)
    async with server:
        await server.serve_forever()


asyncio.run(main())
