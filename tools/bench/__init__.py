"""What the course claims about speed and memory, measured: `python -m tools.bench PART ...`.

Times depend on the machine, ratios much less. Nothing here passes or fails.
"""
