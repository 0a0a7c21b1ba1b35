"""`python -m tools.measure`: measure, mostly on the published model, and write what lessons keep. It takes minutes."""

import argparse
from importlib import import_module

PARTS = {
    "savings": "what the trained model bears: windows, kept keys, fewer bits, shared heads (notebook 07)",
    "real_model": "scores, maps and knock-outs of its heads, attention that forgets, the logit lens (notebook 09)",
    "changes": "small GPTs from 2017 to now, one change at a time (notebook 09); it trains them, half an hour",
    "symptoms": "what it says, and how well it predicts, with one bug at a time (notebook 10)",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools.measure",
        description="Measure, mostly on the published model, and write what lessons show of it.",
        epilog="; ".join(f"{name}: {about}" for name, about in PARTS.items()),
    )
    parser.add_argument("what", nargs="*", metavar="what", help=f"{', '.join(PARTS)}; default: all")
    for what in parser.parse_args().what or PARTS:
        if what not in PARTS:
            parser.error(f"there is no {what!r}; choose from {', '.join(PARTS)}")
        import_module(f"tools.measure.{what}").run()


if __name__ == "__main__":
    main()
