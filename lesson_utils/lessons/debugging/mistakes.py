"""The mistakes of the triage."""

from lesson_utils.mistakes.exercise import change

# fmt: off
TRIAGE = (
    change("curve before leaks", "You ask the loss first. A leak bends the loss as well, so that all leaks end up as 5. Ask for what explains most first: rows, time, order, cache, loss.", rings="rings = [loss, rows, time, order, cache]", answer="return np.select(rings, [5, 1, 2, 3, 4], 0)"),
    change("curve before time", "You ask the loss before the leak in time. A leak bends the loss as well, so that leaks end up as 5. The loss comes last: rows, time, order, cache, loss.", rings="rings = [rows, loss, time, order, cache]", answer="return np.select(rings, [1, 5, 2, 3, 4], 0)"),
    change("cache before leaks", "You ask the cache before the leaks. What mixes positions breaks cache parity, too: rows and time come first.", rings="rings = [cache, rows, time, order, loss]", answer="return np.select(rings, [4, 1, 2, 3, 5], 0)"),
    change("cache before order", "You ask the cache before order. Positions that are wrong can break cache parity: order comes first.", rings="rings = [rows, time, cache, order, loss]", answer="return np.select(rings, [1, 2, 4, 3, 5], 0)"),
    change("time before rows", "You ask time before rows. What mixes the batch comes first.", rings="rings = [time, rows, order, cache, loss]", answer="return np.select(rings, [2, 1, 3, 4, 5], 0)"),
    change("the last wins", "Where several gauges ring, your last one wins. The first that applies is asked for.", answer="return np.select(rings[::-1], [5, 4, 3, 2, 1], 0)"),
    change("start forgotten", "A wrong loss at the start is not in your answer: 5 is for start or curve.", loss="loss = curve"),
    change("curve forgotten", "A wrong curve is not in your answer: 5 is for start or curve.", loss="loss = start"),
    change("start and curve", "You ask for start and curve. One of the two is enough: `start | curve`.", loss="loss = start & curve"),
    change("counted from 0", "Your numbers are one too small: the batch axis is 1, and 0 is for patients of whom nothing rings.", answer="return np.select(rings, [0, 1, 2, 3, 4], 0)"),
    change("columns exchanged", "You read `time` and `rows` from each other's columns. The columns are start, curve, time, rows, order, cache.", columns="start, curve, rows, time, order, cache = gauges.T"),
    change("rows for columns", "You unpack patients, not gauges: a gauge is a column. `gauges.T` turns them.", columns="start, curve, time, rows, order, cache = gauges"),
    change("gauges counted", "You count how many gauges ring. Which ones is asked for.", "gauges.sum(axis=1)"),
    change("the first column that rings", "You take the first column that rings, in the order of the columns. The order of questions is rows, time, order, cache, loss.", "np.where(gauges.any(axis=1), gauges.argmax(axis=1) + 1, 0)"),
    change("5 for all the rest", "Who rings nothing gets 5 from you. It is 0: 5 is for start or curve.", answer="return np.select(rings[:4], [1, 2, 3, 4], 5)"),
)
