"""Engine that names the mistake in a learner's function. It knows nothing of the course: an exercise brings what it needs.

An exercise is its solution in named steps, and its typical mistakes as changes of these steps. A check (`judge`) has three
parts, a folder each. `run` calls the learner's function and the solution on the same cases, on copies, with a time limit.
`recognise` looks for the mistake behind wrong results: first in a fault dictionary, which holds what each known fault
returns, as tests of circuits do; then by automated program repair, which edits the learner's own syntax tree until every
case is right. What a learner may have meant by a line is decided by rules in a table (`plausibility`, `search`), each with
the answer that needs it. `explain` describes by measurements what nothing explains: which cases, which results, which entries.
`mutation_testing` turns the same faults round: it judges a learner's test by the mutants of the solution that it finds.

To look this up: repair of programming assignments is the subject of Clara (Gulwani, Radiček and Zuleger, "Automated
clustering and program repair for introductory programming assignments", PLDI 2018) and of Refactory (Hu, Ahmed,
Mechtaev, Leong and Roychoudhury, "Re-factoring based program repair applied to programming assignments", ASE 2019). They
learn repairs from hundreds of submissions; here one solution, and what its author knows of mistakes, must be enough.
Mutation operators and mutation testing go back to DeMillo, Lipton and Sayward, "Hints on test data selection: help for the
practicing programmer", Computer 11(4), 1978. Fault dictionaries: Abramovici, Breuer and Friedman, "Digital systems testing
and testable design", 1990.
"""
