"""A university's login (OpenID Connect) for test_hub.py: it knows who is there by a cookie."""

import json
from contextlib import contextmanager
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlencode, urlsplit


class University(BaseHTTPRequestHandler):
    def do_GET(self):
        where, asked = urlsplit(self.path), parse_qs(urlsplit(self.path).query)
        if where.path == "/me":
            return self.answer({"preferred_username": self.headers["Authorization"].removeprefix("Bearer ")})
        (place,), (state,) = asked["redirect_uri"], asked["state"]
        self.send_response(302)
        who = SimpleCookie(self.headers["Cookie"])["university"].value
        self.send_header("Location", f"{place}?{urlencode({'code': who, 'state': state})}")
        self.end_headers()

    def do_POST(self):
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.answer({"access_token": form["code"][0], "token_type": "bearer"})

    def answer(self, found):
        text = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *words):
        pass


@contextmanager
def opened():
    """Yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), University)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
