"""A backend that gives registration tokens, and misbehaves as the path says.

token_server.py [CERTIFICATE KEY]: listens on a port of loopback, with TLS when given a certificate, and writes the port
to descriptor 3 (what the environment says). Ends by itself after two minutes.
"""

import http.server
import json
import os
import ssl
import sys
import threading

TOKEN = "aGVhZGVy.Y2xhaW1z.c2lnbmF0dXJl"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass  # the client has seen enough

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/json":
            self.answer(200, json.dumps({"token": TOKEN, "user": query}).encode())
        elif path == "/bare":
            self.answer(200, b"\n" + TOKEN.encode() + b"\r\n")
        elif path == "/user":
            # The user that arrived comes back as a part of the token.
            self.answer(200, ("aGVhZGVy." + query.removeprefix("user=").replace("%3D", "_") + ".c2ln").encode())
        elif path == "/huge":
            self.answer(200, b"a" * 70_000)
        elif path == "/endless":
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b"a" * 10_000)
            except OSError:
                self.close_connection = True
        elif path == "/garbage":
            self.answer(200, bytes(range(256)))
        elif path == "/page":
            self.answer(200, b"<html>Please log in</html>")
        elif path == "/other-json":
            self.answer(200, b'{"jwt": 5, "token": null}')
        elif path == "/empty":
            self.answer(204)
        elif path == "/redirect":
            self.answer(302, headers=[("Location", "/json?secret=canary")])
        elif path == "/silent":
            threading.Event().wait(30)
        elif path == "/half":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"aGVh")
            self.close_connection = True
        elif path == "/nonsense":
            self.wfile.write(b"this is not HTTP\r\n\r\n")
            self.close_connection = True
        elif path.startswith("/status/"):
            self.answer(int(path.removeprefix("/status/")), b"canary in the body")
        else:
            self.answer(404)

    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_json = self.headers["Content-Type"] == "application/json"
        is_right = is_json and sorted(question) == ["applicationKey", "userId"]
        token = "aGVhZGVy." + question["userId"] + "." + question["applicationKey"]
        self.answer(200 if is_right else 400, token.encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
if len(sys.argv) == 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
timer = threading.Timer(120, os._exit, [0])
timer.daemon = True
timer.start()
os.write(int(os.environ["SINCHCTL_READY_FD"]), f"{server.server_port}\n".encode())
server.serve_forever()
