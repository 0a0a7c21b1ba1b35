"""The labs of each notebook: the numbers to show, and the figure to show them in."""
