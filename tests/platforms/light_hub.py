"""JupyterHub's configuration for test_hub.py: the options of a recipe, and a spawner that asks light_node.py."""

import json
import os
import shutil
from pathlib import Path
from urllib.parse import quote

from jupyterhub.spawner import Spawner
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from traitlets import Bool, Unicode


class KubeSpawner(Spawner):
    """It has the name, and those of its options, that the values use."""

    delete_pvc = Bool(True, config=True)
    working_dir = Unicode(config=True)

    async def ask(self, method, **body):
        url = f"{os.environ['NODE']}/{quote(self.user.name)}"
        request = HTTPRequest(url, method=method, body=json.dumps(body) if body else None)
        return await AsyncHTTPClient().fetch(request, raise_error=False)

    async def start(self):
        return "127.0.0.1", json.loads((await self.ask("PUT", **self.get_env())).body)["port"]

    async def poll(self):
        try:
            return None if (await self.ask("GET")).code == 200 else 0
        except OSError:
            return 1  # the node is gone

    async def stop(self, now=False):
        await self.ask("DELETE")

    async def delete_forever(self):
        if self.delete_pvc:
            shutil.rmtree(Path(os.environ["HOMES"], self.user.name))


c = get_config()  # noqa: F821
for section, options in json.loads(os.environ["OPTIONS"]).items():
    c[section].update(options)
c.JupyterHub.spawner_class = KubeSpawner
