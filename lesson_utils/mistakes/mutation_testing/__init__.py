"""Judge a learner's test by the mutants that it lets through."""
