"""A node for test_hub.py: the servers of all students in one process. Started as `python light_node.py PORT HOMES`.

Each has the real login of a JupyterLab's server (HubOAuth). Behind it, it reads and writes the files of one home.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from jupyterhub.services.auth import HubOAuth, HubOAuthCallbackHandler, HubOAuthenticated
from tornado import httpserver, netutil, web

PORT, HOMES = int(sys.argv[1]), Path(sys.argv[2])
SERVERS = {}


class Callback(HubOAuthCallbackHandler):
    def initialize(self, auth, home):
        self.hub_auth = auth


class Files(HubOAuthenticated, web.RequestHandler):
    def initialize(self, auth, home):
        self.hub_auth, self.home = auth, home

    @web.authenticated
    def get(self, file):
        assert self.xsrf_token  # it sets the cookie with which a page saves
        files = {path.name: path.read_text() for path in self.home.iterdir()}
        self.write({"visitor": self.current_user["name"], "home": self.home.name, "files": files})

    @web.authenticated
    def put(self, file):
        (self.home / file).write_bytes(self.request.body)


class Control(web.RequestHandler):
    """For the hub: start, look, stop."""

    def put(self, name):
        given = json.loads(self.request.body)
        auth = HubOAuth(
            api_token=given["JUPYTERHUB_API_TOKEN"],
            api_url=given["JUPYTERHUB_API_URL"],
            base_url=given["JUPYTERHUB_SERVICE_PREFIX"],
            oauth_client_id=given["JUPYTERHUB_CLIENT_ID"],
            access_scopes=json.loads(given["JUPYTERHUB_OAUTH_ACCESS_SCOPES"]),
        )
        home = HOMES / name
        home.mkdir(exist_ok=True)
        own = {"auth": auth, "home": home}
        handlers = [(f"{auth.base_url}oauth_callback", Callback, own), (f"{auth.base_url}(.*)", Files, own)]
        server = httpserver.HTTPServer(web.Application(handlers, cookie_secret=os.urandom(32)))
        (socket,) = netutil.bind_sockets(0, "127.0.0.1")
        server.add_sockets([socket])
        SERVERS[name] = server
        self.write({"port": socket.getsockname()[1]})

    def get(self, name):
        self.set_status(200 if name in SERVERS else 404)

    def delete(self, name):
        if name in SERVERS:
            SERVERS.pop(name).stop()


async def main():
    web.Application([("/(.+)", Control)]).listen(PORT, "127.0.0.1")
    await asyncio.Event().wait()


asyncio.run(main())
