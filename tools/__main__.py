"""Run a command for maintainers or teachers: `.venv/bin/python -m tools COMMAND ...`.

`python course.py COMMAND ...` does the same, after it has installed what the command needs. For that it imports this
module before anything is installed: at the top stands nothing but the standard library.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "docs" / "_build" / "site"


def format_code() -> int:
    paths = parsed("paths", nargs="*", default=[ROOT], help="files or folders (default: the course)").paths
    ruff = [sys.executable, "-m", "ruff"]
    problems = subprocess.call([*ruff, "check", "--fix", *paths])  # first: what it mends may need formatting
    return subprocess.call([*ruff, "format", *paths]) or problems


def write_address() -> None:
    from tools import authors, save

    parser = argparse.ArgumentParser(prog=sys.argv[0])
    parser.add_argument("address", nargs="?", help="OWNER/REPO (default: git's origin)")
    named = "an author, once for each: 'NAME; ORCID; INSTITUTION' (LICENSE and NOTICE keep \"The course's authors\")"
    parser.add_argument("--author", action="append", default=[], help=named)
    given = parser.parse_args()
    found = given.address or origin(ROOT)
    if not found:
        sys.exit("git knows no origin on GitHub. Name the repository: python course.py address OWNER/REPO")
    try:
        if given.author:
            authors.write(given.author)
        print(f"{found}: {save.write_address(found)} files changed.")
    except ValueError as error:
        sys.exit(str(error))
    print(f"Its authors: {', '.join(authors.names())}. (--help says how to name them.)")


def origin(folder: str | Path) -> str | None:
    """Return the OWNER/REPO on GitHub that a folder was cloned from, or None."""
    if not (Path(folder) / ".git").exists():  # or git would answer for a repository around it
        return None
    command = ["git", "remote", "get-url", "origin"]
    try:
        url = subprocess.check_output(command, cwd=folder, stderr=subprocess.DEVNULL, text=True).strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    server = r"(?:https://(?:[^/@]+@)?|git@|ssh://git@)github\.com[:/]"
    match = re.fullmatch(server + r"([\w.-]+/[\w.-]+?)(?:\.git)?/?", url)
    return match[1] if match else None


def serve() -> None:
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    port = parsed("--port", type=int, default=0, help="default: any that is free").port
    if not (SITE / "index.html").exists():
        sys.exit("There is no site to serve yet. Build it first: python course.py site")
    # On some Windows machines the registry says otherwise, and browsers then refuse them.
    SimpleHTTPRequestHandler.extensions_map.update({".js": "text/javascript", ".wasm": "application/wasm"})
    with ThreadingHTTPServer(("127.0.0.1", port), partial(SimpleHTTPRequestHandler, directory=SITE)) as server:
        print(f"The site is at http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)", flush=True)
        server.serve_forever()


def parsed(argument: str, **options: object) -> argparse.Namespace:
    """Return the value of a command's only argument."""
    parser = argparse.ArgumentParser(prog=sys.argv[0])
    parser.add_argument(argument, **options)  # type: ignore[arg-type]
    return parser.parse_args()


class Command(NamedTuple):
    """A command: the extras of pyproject.toml that it needs, what it does, and the function that does it."""

    extras: tuple[str, ...]
    help: str
    run: Callable[[], int | None]


def of(module: str) -> Callable[[], int | None]:
    """Return a function that imports a module and calls its `main`."""
    return lambda: import_module(module).main()


COMMANDS = {
    "edition": Command(("lab",), "write notebooks as handouts, for teachers", of("tools.teacher.edition")),
    "report": Command(("lab",), "show which mistakes a class made, for teachers", of("tools.teacher.report")),
    "format": Command(("style",), "format the code, and mend what can be mended", format_code),
    "save": Command(("lab", "test"), "run notebooks and store their outputs", of("tools.save")),
    "new_lesson": Command(("lab", "test"), "write a lesson to begin with", of("tools.new_lesson")),
    "address": Command(("lab",), "write the repository's address, and its authors, wherever they stand", write_address),
    "prose": Command(("lab",), "count the minutes that a learner needs for each notebook", of("tools.prose")),
    "site": Command(("site",), "build the site that is published", of("tools.site.build")),
    "serve": Command(("lab",), "show that site on this machine", serve),
}


def listed(program: str) -> str:
    """Return a line for each command, under a line on how to call it."""
    lines = [f"{program + ' COMMAND [...]':40}for maintainers and teachers; --help says what a command takes"]
    lines += [f"    {name:36}{command.help}" for name, command in COMMANDS.items()]
    return "\n".join(lines) + "\n"


def main(words: Sequence[str]) -> int | None:
    name, *words = words or ["--help"]
    if name in ("-h", "--help"):
        sys.stdout.write(listed("python -m tools"))
        return 0
    if name not in COMMANDS:
        sys.exit(f"There is no command {name!r}. There are {', '.join(COMMANDS)}.")
    sys.argv = [f"python -m tools {name}", *words]  # where argparse looks
    return COMMANDS[name].run()


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows ASCII only gets ? for …
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
