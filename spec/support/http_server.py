#!/usr/bin/env python3
"""An HTTP/1.1 server for specs of the client: prints its port, then answers until it is killed.

Every request is echoed as lines of the answer: method, target, the number of the connection, headers, body.
A path that begins with /~ does something else, see below. Each request leaves a line in the log file (argv[1]).
"""
import http.server
import json
import socket
import sys
import threading
import time

lock = threading.Lock()
connections = 0
together = 0
most = 0
log = open(sys.argv[1], "w", buffering=1)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        global connections
        with lock:
            connections += 1
            self.number = connections
        super().setup()

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"", headers=()):
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def raw(self, data):
        self.wfile.write(data)
        self.close_connection = True

    def echo(self):
        size = self.headers.get("Content-Length")
        body = self.rfile.read(int(size)) if size else b""
        lines = ["%s %s" % (self.command, self.path), "connection %d" % self.number]
        lines += ["header %s: %s" % kv for kv in self.headers.items()]
        lines += ["body %s" % (body.hex() if size else "none"), ""]
        return "\n".join(lines).encode("latin-1")

    def json_echo(self):
        size = self.headers.get("Content-Length")
        body = self.rfile.read(int(size)) if size else None
        fields = {k.lower(): v for k, v in self.headers.items()}
        return json.dumps({"name": "a b", "line": "%s %s" % (self.command, self.path), "headers": fields,
                           "body": body.decode("latin-1") if body is not None else None}).encode()

    def special(self, word, arg):
        if word == "status":
            arg = arg.partition("/")[0]
            self.answer(int(arg), b"" if arg == "204" else b"status %s" % arg.encode(),
                        (("Retry-After", "7"),) if arg == "409" else ())
        elif word == "redirect":
            self.answer(302, b"elsewhere", (("Location", "/elsewhere"),))
        elif word == "slow":
            time.sleep(float(arg.partition("/")[0]))
            self.answer(200, b"late")
        elif word == "big":
            self.answer(200, b"x" * int(arg))
        elif word == "endless":
            self.send_response_only(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while True:
                self.wfile.write(b"400\r\n" + b"y" * 1024 + b"\r\n")
        elif word == "garbage":
            self.raw(b"\x00\x01this is no HTTP\r\n\r\n")
        elif word == "drop":
            self.close_connection = True
        elif word == "cut":
            self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
        elif word == "last":  # closes the connection without having said so
            self.answer(200, b"last")
            self.close_connection = True
        elif word == "json":  # a worker's answer: /~json/STATUS/PATH
            self.answer(int(arg.partition("/")[0]), self.json_echo(), (("Content-Type", "application/json"),))
        elif word == "error":  # a worker's error: /~error/STATUS/PATH
            status = int(arg.partition("/")[0])
            body = json.dumps({"error_code": status, "message": "No \u00e4 here: " + self.path}).encode()
            self.answer(status, body, (("Content-Type", "application/json"), ("Retry-After", "3")))
        elif word == "together":  # answers when `arg` requests are here
            self.together(int(arg))

    def together(self, n):
        global together, most
        with lock:
            together += 1
            most = max(most, together)
        until = time.time() + 30
        while most < n and time.time() < until:
            time.sleep(0.01)
        with lock:
            together -= 1
        self.answer(200, b"%d" % most)

    def handle_any(self):
        log.write("%s %s\n" % (self.command, self.path))
        if self.path.startswith("/~"):
            word, _, arg = self.path[2:].partition("/")
            try:
                self.special(word, arg)
            except OSError:
                self.close_connection = True
        else:
            body = self.echo()
            self.answer(200, body, (("Content-Type", "text/x-echo; a=b"),))

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = handle_any


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 200

    def handle_error(self, request, client_address):
        pass


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
