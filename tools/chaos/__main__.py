"""`python -m tools.chaos`: walk through notebooks as no learner would, and say what did not survive it.

Each walk is a learner in JupyterLab who does thirty things at random: runs cells in any order, edits them to extremes,
drags sliders, presses stop, kills the kernel, lets the laptop sleep, reloads the page. After each step no traceback
may stand there that is not the learner's own, every live figure shows the picture of its controls, and at the end the
saved notebook holds what was typed. The same seed takes the same steps.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

from tools.chaos.steps import KINDS
from tools.chaos.walk import NOTEBOOKS, Walk


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.chaos", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("notebooks", nargs="*", help="by number or name (default: all)")
    parser.add_argument("--walks", type=int, default=11, help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=30, help="of each walk; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the first walk; default: %(default)s")
    parser.add_argument("--browser", choices=("chromium", "firefox"), default="chromium")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing new after so many")
    parser.add_argument("--story", action="store_true", help="print every step, also of walks that survived")
    options = parser.parse_args(words)
    names = [path.name for path in sorted(NOTEBOOKS.glob("*.ipynb"))]
    chosen = [name for name in names if not options.notebooks or name.startswith(tuple(options.notebooks))]
    if not chosen:
        parser.error(f"there is no notebook {' '.join(options.notebooks)!r}; there are {', '.join(names)}")
    begin, walks = time.monotonic(), []
    for seed in range(options.seed, options.seed + options.walks):
        if time.monotonic() - begin > 60 * options.minutes:
            break
        walk = Walk(seed, chosen[seed % len(chosen)], options.browser, KINDS).go(options.steps)
        walks.append(walk)
        report(walk, options.story)
    print_table(walks)
    return int(any(walk.lost for walk in walks))


def report(walk: Walk, story: bool) -> None:
    """Print a line for a walk; and where something was lost, what, and how to come there again."""
    print(f"walk {walk.seed}: {walk.story[0]}: {len(walk.lost)} lost", flush=True)
    if walk.lost or story:
        print("\n".join(f"    {line}" for line in walk.story[1:]))
    for step, kind, what in walk.lost:
        print(f"  LOST at step {step} ({kind}): {what}")
    if walk.lost:
        name = walk.story[0].split(" ")[0].removesuffix(".ipynb")
        print(f"  again: python -m tools.chaos --walks 1 --seed {walk.seed} --browser {walk.browser} {name}")


def print_table(walks: list[Walk]) -> None:
    """Print for each kind of step how many were tried, survived and lost."""
    tried: Counter[str] = sum((walk.tried for walk in walks), Counter())
    lost = Counter(kind for walk in walks for _, kind, _ in walk.lost)
    print(f"\n{len(walks)} walks{'':22}tried survived lost")
    for kind in (*KINDS, "a last look", "all is saved"):
        print(f"{kind:30}{tried[kind]:6}{tried[kind] - lost[kind]:9}{lost[kind]:5}")
    print(f"{'all':30}{tried.total():6}{tried.total() - lost.total():9}{lost.total():5}")


if __name__ == "__main__":
    sys.exit(main())
