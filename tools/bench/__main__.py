"""`python -m tools.bench`: each part in a process of its own, with as many threads as it says."""

import argparse
import os
import subprocess
import sys
from importlib import import_module

PARTS = {
    "import": ("imports", "what importing lesson_utils adds to what notebooks import anyway", (None,)),
    "live": ("live", "live figures against ipywidgets.interact, in JupyterLab", (None,)),
    "training": ("training", "a training step of each model against PyTorch", (1, 2)),
    "tricks": ("tricks", "what each trick of the maths is worth in a whole training step", (1,)),
    "attention": ("attention", "attention's time and memory against PyTorch", (1, 2)),
    "decoding": ("decoding", "generation with and without the key-value cache", (1,)),
    "real": ("real", "the published model: a token, a prompt and loading, against transformers", (1,)),
    "lite": ("lite", "JupyterLite: first text, Ready, and Run All of each notebook", (None,)),
    "visit": ("visit", "a first visit to the site: until the first figure follows one's hand", (None,)),
    "chat": ("chat", "the chat in a browser's tab: ready, first token, a token, memory", (None,)),
    "memory": ("memory", "what a learner's kernel takes in each notebook, and the server beside it", (1,)),
    "class": ("classroom", "a class on a JupyterHub of its own: answers of sliders, memory, processors", (None,)),
    "exercises": ("exercises", "how long the checks of exercises take", (1,)),
    "ablations": ("ablations", "what leaving out a part of the training recipe costs in seconds", (1,)),
    "learning": ("learning", "models trained for real, three seeds each", (1,)),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench",
        description="Print side-by-side ratios.",
        epilog="; ".join(f"{name}: {about}" for name, (_, about, _) in PARTS.items()),
    )
    parser.add_argument("what", nargs="*", metavar="what", help=f"{', '.join(PARTS)}; default: all")
    lesson = parser.add_argument_group("class")
    lesson.add_argument("--students", type=int, default=30, help="default: %(default)s")
    lesson.add_argument("--moving", type=int, default=10, help="sliders at once; default: %(default)s")
    lesson.add_argument("--notebook", default="02_scaled_attention", help="default: %(default)s")
    lesson.add_argument("--minutes", type=int, default=0, help="of use by all after that; default: %(default)s")
    some = parser.add_argument_group("live")
    about = "only those whose notebook or name begins so, such as 05 or full_block.gpt; default: all"
    some.add_argument("--figures", nargs="+", default=[], metavar="NAME", help=about)
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    lessons = {"students": options.students, "moving": options.moving, "notebook": options.notebook}
    lessons["minutes"] = options.minutes
    given = {"class": lessons, "live": {"words": options.figures}}
    failed: list[str] = []
    for what in options.what or PARTS:
        if what not in PARTS:
            parser.error(f"there is no {what!r}; choose from {', '.join(PARTS)}")
        module, about, threads = PARTS[what]
        if options.in_this_process:
            import_module(f"tools.bench.{module}").run(**given.get(what, {}))
            continue
        for count in threads:
            print(f"\n== {what}: {about}" + (f"; {count} thread{'s' * (count > 1)}" if count else ""), flush=True)
            # How many threads there are is read once, when NumPy and PyTorch are loaded.
            names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS") if count else ()
            environment = os.environ | {name: str(count) for name in names}
            words = [sys.executable, "-m", "tools.bench", what, "--in-this-process"]
            words += [f"--{name}={value}" for name, value in lessons.items()]
            words += ["--figures", *options.figures] if options.figures else []
            if subprocess.run(words, env=environment).returncode:
                failed.append(what)
    if failed:
        sys.exit(f"\nThese failed; why stands above: {', '.join(failed)}")


if __name__ == "__main__":
    main()
