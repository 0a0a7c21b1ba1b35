"""JupyterLite: the notebooks in the browser, with nothing installed, behind any server that hands out files.

Python itself is Pyodide: its core comes from npm, the wheels that were compiled for it from where Pyodide publishes
them. All that is downloaded is compared with a hash and kept for the next time. A page asks no other host for anything.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from tools import start
from tools.site import fetch

if TYPE_CHECKING:
    from pyodide_lock import PyodideLockSpec

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
CONFIGURATION = ROOT / "docs" / "lite"

# Later versions of these and of jupyterlite-core belong together. They were not tried: Pyodide 314's wheels are nowhere
# but on Pyodide's own host, which the machines that test this site don't reach.
PYODIDE = "0.27.7"
PYODIDE_INTEGRITY = "sha512-RUSVJlhQdfWfgO9hVHCiXoG+nVZQRS5D9FzgpLJ/VcgGBLSAKoPL8kTiOikxbHQm1kRISeWUBdulEgO26qpSRA=="
PYODIDE_WHEELS = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE}/full/"
WABT = "1.0.39"  # it assembles fast_products.wat
WABT_INTEGRITY = "sha512-ba+dRL/75VQQY7RkU/CgriGbkoWAfS8TDyUlJfJhJ8KhtXgMl5dhNvoPNUcQ9IWRhW8u41glMSuZeTvsYq2rRg=="
BOOK_CELLS = HERE / "book_cells.py"  # for the book's pages
FAST_PRODUCTS = (HERE / "fast_products.py", HERE / "fast_products.wat")
FOR_THE_MODEL = ("packed_products.py", "packed_products.wat", "model_of_site.py")  # the chat's; notebook 09 needs them
CORE = ("pyodide.js", "pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")

# What Pyodide does not have, or in another form; the widgets are the last that fit this JupyterLab.
WHEELS = {
    "comm==0.2.3": "c615d91d75f7f04f095b30d1c1711babd43bdc6419c1be9886a85f2f4e489417",
    "ipywidgets==8.1.7": "764f2602d25471c213919b8a1997df04bef869251db4ca8efba1b76b1bd9f7bb",
    "tqdm==4.70.1": "c293e525e6fef9c20e8728fd4612df02a0aa31bb5fe91ecd93e123b1b7bffa73",
}
# Parts of the page. They are not installed: the JupyterLab of the same environment would load them, too.
EXTENSIONS = {
    "jupyterlite-pyodide-kernel==0.6.1": "d16f2e44dedd60d7a5578cd901a4de1ac34d30c80671abba7ec1ac70a65e2972",
    "jupyterlab_widgets==3.0.15": "d59023d7d7ef71400d51e6fee9a88867f6e65e10a4201605d2d7f3e8f012a31c",
}
# For who imports them. Matplotlib needs fontTools for PDF only, and pytz no more; the kernel asks for ssl, in vain.
ON_DEMAND = ("fonttools", "pytz", "ssl")
WIDGETS = PurePosixPath("extensions/@jupyter-widgets/jupyterlab-manager/static/[0-9]*.*.js")
KERNEL = "extensions/@jupyterlite/pyodide-kernel-extension/static"
ICON = "icon.svg"  # the book's; without one, a browser asks the host for a favicon.ico, which is not the course's


def build(folder: Path) -> None:
    """Write the whole site into `folder`, replacing what was there; say how large it is, or raise fetch.Failed."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        build_pages(folder, Path(name, "project"))
    wheels = folder / "static" / "pyodide"
    shutil.copy(HERE / "early.js", folder / KERNEL)
    unpack_core(wheels)
    add_wheels(wheels, folder / KERNEL / "pypi")
    pack(wheels)
    files = [file for file in folder.rglob("*") if file.is_file()]
    megabytes = sum(file.stat().st_size for file in files) / 1e6
    print(f"JupyterLite: {len(files)} files, {megabytes:.1f} MB, in {time.perf_counter() - started:.0f} s")


def build_pages(folder: Path, project: Path) -> None:
    """Build JupyterLab with its configuration and the notebooks without outputs, without Python."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(CONFIGURATION, project)
    notebooks = project / "notebooks"
    notebooks.mkdir()
    for file in (ROOT / "notebooks").glob("*.ipynb"):
        (notebooks / file.name).write_text(start.without_outputs(file), encoding="utf-8", newline="\n")
    extensions = [shutil.copy(fetch.from_pypi(name, digest), project) for name, digest in EXTENSIONS.items()]
    command = [
        *(sys.executable, "-m", "jupyterlite_core", "build", "--apps=lab", "--no-sourcemaps"),
        *("--no-unused-shared-packages", "--ignore-sys-prefix"),
        *(f"--lite-dir={project}", f"--output-dir={folder.resolve()}", f"--contents={notebooks}"),
        *(f"--LiteBuildConfig.federated_extensions={extension}" for extension in extensions),
    ]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    if done.returncode:
        raise fetch.Failed(f"jupyter lite build failed:\n{(done.stdout + done.stderr)[-3000:]}")
    shutil.copy(ROOT / "docs" / "_static" / ICON, folder / "lab")
    add_help(folder / "lab" / "index.html")


def add_help(file: Path) -> None:
    """Put into JupyterLite's page what says how far it is, keeps the learner's place, and hands out the work.

    It stands in the page itself, so that it is there from the first second.
    """
    page = file.read_text(encoding="utf-8")
    markup, packing, script = (
        (HERE / name).read_text(encoding="utf-8") for name in ("lite_page.html", "zip.js", "lite_page.js")
    )
    body = '<body class="jp-ThemedContainer" data-notebook="lab">'
    name, links = configured()["appName"], "".join(map(_prefetch, sorted(file.parents[1].glob(str(WIDGETS)))))
    for old, new in (
        (body, f"{body}\n{links}{markup}<script>\n{packing}{script}</script>"),
        ("<title>JupyterLite</title>", f'<title>{name}</title>\n    <link rel="icon" href="{ICON}" />'),
        ("<html>", '<html lang="en">'),
    ):
        if page.count(old) != 1:
            raise fetch.Failed(f"JupyterLite's page has no {old}, where the course's own part would go.")
        page = page.replace(old, new)
    file.write_text(page, encoding="utf-8")


def _prefetch(script: Path) -> str:
    """Return the link that fetches a script of the widgets before the first one is shown, when one may be offline.

    Its address must be the one that webpack asks for.
    """
    digest = script.name.split(".")[1]
    return f'<link rel="prefetch" as="script" href="../{WIDGETS.parent}/{script.name}?v={digest}">\n'


def unpack_core(folder: Path) -> None:
    """Put Pyodide and its list of wheels into `folder`, without the wheels."""
    folder.mkdir(parents=True)
    with tarfile.open(fetch.from_npm("pyodide", PYODIDE, PYODIDE_INTEGRITY)) as archive:
        for name in CORE:
            member = archive.getmember(f"package/{name}")
            member.name = name
            archive.extract(member, folder, filter="data")


def add_wheels(folder: Path, of_kernel: Path) -> None:
    """Put all wheels that a page needs beside Pyodide, and no others into its list."""
    from pyodide_lock import PyodideLockSpec
    from pyodide_lock.utils import add_wheels_to_spec

    for file in of_kernel.glob("*.whl"):
        if not file.name.startswith("widgetsnbextension-3"):  # there are two; this one is for ipywidgets 7
            shutil.copy(file, folder)
    for requirement, digest in (WHEELS | EXTENSIONS).items():
        if not requirement.startswith("jupyterlite"):
            shutil.copy(fetch.from_pypi(requirement, digest), folder)
    own = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={folder}", str(ROOT)]
    fetch.run(own, "pip could not make a wheel of lesson_utils", fetch.Failed)

    lock = PyodideLockSpec.from_json(folder / "pyodide-lock.json")
    names = {file.name for file in folder.glob("*.whl")}
    lock = add_wheels_to_spec(lock, [folder / name for name in sorted(names)])
    needed = with_needs(first_loaded(), lock)
    for name in needed:
        package = lock.packages[name]
        if package.file_name not in names:
            shutil.copy(fetch.from_web(PYODIDE_WHEELS + package.file_name, package.sha256), folder)
    lock.packages = {name: lock.packages[name] for name in needed}
    lock.to_json(folder / "pyodide-lock.json")


def first_loaded() -> list[str]:
    """Return the packages that a page loads before its first cell can run, as its configuration lists them."""
    kernel = configured()["litePluginSettings"]["@jupyterlite/pyodide-kernel-extension:kernel"]
    return list(kernel["loadPyodideOptions"]["packages"])


def configured() -> dict[str, Any]:
    """Return what our configuration says of the page."""
    configuration = json.loads((CONFIGURATION / "jupyter-lite.json").read_text(encoding="utf-8"))
    data: dict[str, Any] = configuration["jupyter-config-data"]
    return data


def pack(folder: Path) -> None:
    """Unpack the wheels and put them into one archive. The list of wheels then holds only those for a later import."""
    from pyodide_lock import PyodideLockSpec

    lock = PyodideLockSpec.from_json(folder / "pyodide-lock.json")
    later = with_needs([*ON_DEMAND], lock)
    now = [name for name in lock.packages if name not in later]
    for name in now:
        lock.packages[name].depends = [need for need in lock.packages[name].depends if need not in later]
    lock.to_json(folder / "pyodide-lock.json")
    with tempfile.TemporaryDirectory() as name:
        for file in (BOOK_CELLS, *FAST_PRODUCTS, *(HERE / "chat" / own for own in FOR_THE_MODEL)):
            shutil.copy(file, name)
        prepare(folder, now, Path(name))
    for package in now:
        os.remove(folder / lock.packages.pop(package).file_name)
    lock.to_json(folder / "pyodide-lock.json")


def prepare(folder: Path, packages: list[str], modules: Path) -> None:
    """Put these packages of Pyodide's, and a folder of modules, compiled, into one archive for start.js."""
    node = shutil.which("node")
    if node is None:
        raise fetch.Unreachable("Node.js is needed to prepare Python's packages. Install it (Debian: apt install npm).")
    with tempfile.TemporaryDirectory() as name:
        tar = Path(name, "packages.tar")
        with tarfile.open(fetch.from_npm("wabt", WABT, WABT_INTEGRITY)) as archive:
            archive.extractall(name, filter="data")
        places = (folder.resolve(), tar, Path(name, "package"), modules)
        command = [node, str(HERE / "pack.mjs"), *map(str, places), *packages]
        fetch.run(command, "Node.js could not prepare Python's packages", fetch.Failed)
        (folder / "packages.tar.gz").write_bytes(gzip.compress(tar.read_bytes(), mtime=0))
    shutil.copy(HERE / "start.js", folder)


def with_needs(names: list[str], lock: "PyodideLockSpec") -> list[str]:
    """Return these packages and all that they need."""
    found, open_ = set(), list(names)
    while open_:
        name = open_.pop().replace("_", "-")
        if name not in found:
            found.add(name)
            open_ += lock.packages[name].depends
    return sorted(found)
