"""Side-by-side ratios: `python -m tools.bench [what ...]`.

Times depend on the machine; ratios much less. What is compared takes turns, so that a busy moment hits both. Nothing
here passes or fails. `BENCH=trial` in the environment runs each part once, in a small form: to see that it works.
"""
