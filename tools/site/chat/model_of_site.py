"""The model in a notebook of JupyterLite: what the chat's page has kept in the browser, or fetched by its script.

JupyterLite's Python finds this module beside `packed_products`. `bring` runs as a task of the kernel's loop, so that
buttons work while it waits.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import js  # type: ignore[import-not-found]
import packed_products  # type: ignore[import-not-found]
import pyodide_js  # type: ignore[import-not-found]
from pyodide.ffi import JsException  # type: ignore[import-not-found]

from lesson_utils.maths import pretrained

PATH = "/tmp/model.gguf"
# The kernel's script lies in the folder extensions/ of JupyterLite, beside which stands the chat's page.
CHAT = js.location.href.partition("/extensions/")[0] + "/../chat/"
NO_SIMD = "This browser is too old for the model: it has no SIMD in WebAssembly. A newer one has it."
NO_MODEL = "This site was built without the model, so the notebook shows its stored results."
NO_ANSWER = "This site does not answer. Check your connection, and press the button again."
NO_MEMORY = "This tab has too little memory for the model. Close other tabs, and press the button again."
NOT_KEPT = (
    " Your browser could not keep it, so the next visit will fetch it again. The usual reason is a private window, or "
    "a full disk."
)

brought: pretrained.Pretrained | None = None


async def bring(tell: Callable[[str], None]) -> str:
    """Load the model into `brought`, with its matrices packed; return what is to be said in the end.

    Args:
        tell: called with a sentence whenever there is something new.

    Raises:
        RuntimeError: something is in the way; the message is a sentence.
    """
    global brought
    if not packed_products.install():
        raise RuntimeError(NO_SIMD)
    await _find_script()

    def hear(news: Any) -> None:
        note = getattr(news, "note", None)
        tell(note or f"{news.bytes / 1e6:.0f} of {news.of / 1e6:.0f} MB of the model are here.")

    try:
        found = await js.modelBytes(CHAT, hear)
        tell("The model is being unpacked …")
        await asyncio.sleep(0)
        pyodide_js.FS.writeFile(PATH, js.Uint8Array.new(found.content), canOwn=True)
        real = pretrained.load(PATH, progress=False, packed=True)
    except JsException as error:
        raise RuntimeError(NO_MEMORY if error.name == "RangeError" else error.message) from None
    except MemoryError:
        raise RuntimeError(NO_MEMORY) from None
    packed_products.settle(real.model)
    pyodide_js.FS.unlink(PATH)
    brought = real
    return "The model is here." + ("" if found.keeps else NOT_KEPT)


async def _find_script() -> None:
    """Load the script of the chat's page, which fetches the model's file and keeps it, once."""
    if hasattr(js, "modelBytes"):
        return
    try:
        answer = await js.fetch(CHAT + "model.json")
        if answer.status == 404:
            raise RuntimeError(NO_MODEL)
        js.importScripts(CHAT + "model.js")
    except JsException:
        raise RuntimeError(NO_ANSWER) from None
