"""Set up and open the course. Everything is installed into .venv, beside this file.

python course.py                        open the course in JupyterLab, in copies of the notebooks that are yours
    --edit                              the notebooks themselves, to change the course
    --no-browser                        print the address, open no browser
    --port N                            listen there (otherwise: on 8888, or the next port that is free)
    ...                                 other options are handed on to JupyterLab, such as --ip
python course.py real                   fetch a published model for notebook 09 (98 MB)
python course.py test [...]             test the course, every notebook included, in a few minutes
    --fast                              the maths, the exercises and the live figures only, in about one
    --rest                              what that leaves out: long trainings, platforms, the site, types
    --parity                            compare with PyTorch, too (a large download)
    --site, --hub, --style              install what some tests need; a test that is skipped names it
    ...                                 files and options are handed on to pytest; a file named is run whole
"""

# Standard library only, and nothing that Python 3.6 can't parse: old Pythons are told in one line what is missing.
import hashlib
import json
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(ROOT, ".venv")
VERSION = "{}.{}".format(*sys.version_info)
PYTHON = os.path.join(VENV, "Scripts", "python.exe") if os.name == "nt" else os.path.join(VENV, "bin", "python")
STAMP = os.path.join(VENV, "installed.json")  # what the last complete installation was made of
TEST_GROUPS = ("parity", "site", "hub", "style")  # large, and needed by few tests


def main(words):
    command = "open" if not words or words[0].startswith("-") else words.pop(0)
    if command == "open" and not {"-h", "--help"} & set(words):
        return open_course(words)
    if command == "real":
        install("lab")
        return run("lesson_utils.maths.pretrained")
    if command == "test":
        return test(words)
    # Imported here, because old Pythons can't parse it. It needs nothing but the standard library.
    from tools.__main__ import COMMANDS, listed

    if command == "open":
        sys.stdout.write(__doc__ + listed("python course.py"))
        return 0
    if command not in COMMANDS:
        stop(f"There is no command '{command}'. For those there are: python course.py --help")
    install(*COMMANDS[command].extras)
    return run("tools", command, *words, here=True)


def open_course(words):
    from tools import start  # here, because old Pythons can't parse it

    edit, words = start.options(words)  # what is wrong with them is said before anything is installed
    install("lab")
    return run("jupyterlab", *start.prepare(ROOT, VENV, edit), *words)


def test(words):
    options = {word for word in words if word in ("--fast", "--rest", *("--" + group for group in TEST_GROUPS))}
    words = [word for word in words if word not in options]
    install("lab", "test", *(group for group in TEST_GROUPS if {"--rest", "--" + group} & options))
    os.environ.setdefault("COURSE_TRAIN", "no")  # notebooks take the models that come trained, as stored outputs do
    named = any(os.path.exists(os.path.join(ROOT, word.split("::")[0])) for word in words)
    if named and not options & {"--fast", "--rest"}:
        return run("pytest", *words)
    command = ["pytest", "-n", str(min(os.cpu_count() or 2, 4)), "-m"]
    if "--fast" in options:
        command += ["not slow and not long_form"] + ([] if named else ["tests"])
    elif "--rest" in options:
        command += ["(long_form or parity) and not own_job"]
    else:
        command += ["not long_form"]
    for library in ("OPENBLAS", "OMP", "MKL"):  # processes that share the cores are not to have threads of their own
        os.environ.setdefault(library + "_NUM_THREADS", "1")
    return run(*command, *words)


def install(*names):
    """Install the extra `lab` and groups of pyproject.toml into .venv, beside what is there, unless all of it is."""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        project = hashlib.sha256(file.read()).hexdigest()
    place = [ROOT, VERSION]  # an editable installation points to its folder, and a new Python needs packages of its own
    try:
        with open(STAMP) as file:
            old = json.load(file)
    except (OSError, ValueError):  # not there, or half written
        old = {}
    if old.get("place") != place or not os.path.exists(PYTHON):
        old = {}
    there = set(old.get("names", []))
    if old.get("project") == project and there.issuperset(names):
        return
    print("Installing into .venv; the first time, this takes a minute.", flush=True)
    if old:
        os.remove(STAMP)  # should this be stopped half-way, no stamp speaks for what it left
    names = sorted(there.union(names))
    done = put_in(names, anew=not (old or made_by_hand()))
    if done or old:  # what gives up by itself leaves what was there
        with open(STAMP, "w") as file:
            json.dump({"place": place, "project": project, "names": names} if done else old, file)
    if not done:
        stop("pip failed, for the reason above. Check your connection, and run this again.")


def made_by_hand():
    """Say whether there is a .venv that somebody else made, with this Python: then it is added to, not made anew."""
    same = f"import pip, sys; sys.exit('{{}}.{{}}'.format(*sys.version_info) != {VERSION!r})"
    return os.path.exists(PYTHON) and not os.path.exists(STAMP) and call(PYTHON, "-c", same)


def put_in(names, anew):
    """Install into .venv, made anew or not, by uv, which takes seconds, or else by pip; say whether that worked."""
    groups = [word for name in names if name != "lab" for word in ("--group", name)]
    words = ["-e", ".[lab]" if "lab" in names else ".", *groups]
    uv = shutil.which("uv")
    if anew:
        shutil.rmtree(VENV, ignore_errors=True)
    if uv:
        base = getattr(sys, "_base_executable", None) or sys.executable  # not the Python of .venv, if that runs this
        made = not anew or call(uv, "venv", "--seed", "--python", base, VENV)  # --seed: with pip, for %pip in notebooks
        if made and call(uv, "pip", "install", "--python", PYTHON, *words):
            return True
        # uv does not know pip's settings, such as the address of a company's own packages.
        print("uv failed; pip tries now.", flush=True)
    if not os.path.exists(PYTHON):
        make_venv()
    pip = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check"]
    return (not groups or call(*pip, "pip>=25.1")) and call(*pip, *words)  # the first pip that knows groups


def make_venv():
    try:
        import ensurepip  # noqa: F401  # this is what Debian leaves out
        import venv
    except ImportError:
        stop("This Python lacks venv. On Debian and Ubuntu: sudo apt install python3-venv; elsewhere: see python.org.")
    venv.create(VENV, with_pip=True, symlinks=os.name != "nt")  # symlinks where `python -m venv` has them


def call(*command):
    return subprocess.call(command, cwd=ROOT) == 0


def run(*words, here=False):
    """Run a module with the Python of .venv, and return what it exits with.

    It stands in the course's folder, or else `here`, where the user stands; files that lie there are not imported (-P).
    """
    command = [PYTHON, "-P", "-m"] if here else [PYTHON, "-m"]
    process = subprocess.Popen([*command, *words], cwd=None if here else ROOT)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # it got the Ctrl-C, too, and ends in its own way: JupyterLab asks first
            pass


def stop(message):
    sys.exit(f"course.py: {message}")


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  # nobody has looked at pyproject.toml yet
        stop(f"The course needs Python 3.11 or newer (see python.org), and this is {VERSION}.")
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:  # a file where a folder should be, a full disk, somebody else's folder
        stop(f"{error}. See that there is room and that you may write there, and run this again.")
