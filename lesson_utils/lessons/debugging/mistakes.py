"""The mistakes of the two instruments and of the triage."""

from lesson_utils.mistakes.exercise import change

# fmt: off
_STEP = "for t in range(prompt, len(ids)):\n    parts.append(model.forward({})[0][0])"

_SOFTMAX = "(lambda x: np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True))({})"

ACROSS = (
    change("another row compared", "You compare with the first row of the batch, which is one of the others. Your row stands last: `[-1]`.", together="together = model.forward(batch)[0][0]"),
    change("in front", "Your row has the same place in both runs, so a leak that goes by the place in the batch does not show. Run the row once alone, `ids[None]`, and once as the last row, behind all of `others`.", batch="batch = np.concatenate([ids[None], others])", together="together = model.forward(batch)[0][0]"),
    change("company of copies", "You fill the batch with copies of the row itself. A model that mixes the rows then mixes equal ones, and nothing moves. The company has to be `others`.", batch="batch = np.stack([ids] * (len(others) + 1))"),
    change("one of the others", "You take one of the other rows. All of `others` stand before the row.", batch=("batch = np.stack([others[0], ids])", "batch = np.stack([others[-1], ids])")),
    change("the row is missing", "Your batch holds the others only. The row itself has to stand in it too, as the last one: `np.concatenate([others, ids[None]])`.", batch="batch = others"),
    change("probabilities", "You compare probabilities. The task compares logits: softmax forgets what is added to all of them.", alone=f"alone = {_SOFTMAX.format('model.forward(ids[None])[0][0]')}", together=f"together = {_SOFTMAX.format('model.forward(batch)[0][-1]')}"),
    change("compared with itself", "Both of your runs are the same. Run the row once alone, `ids[None]`, and once as the last row behind `others`.", alone="alone = model.forward(np.concatenate([others, ids[None]]))[0][-1]"),
    change("with its sign", "Your differences keep their sign. First take `np.abs` of every difference, then the maximum.", answer=("return (together - alone).max(axis=-1)", "return (alone - together).max(axis=-1)")),
    change("over the symbols", "`axis=0` takes the maximum over the T outputs, and leaves V numbers. The task wants one for each output: `axis=-1`.", answer="return np.abs(together - alone).max(axis=0)"),
    change("no maximum", "You return the differences of all logits, (T, V). The task wants the largest one of each output: `.max(axis=-1)`.", answer="return np.abs(together - alone)"),
    change("one number", "You return one number. One for each output is asked for, because the place of a leak is a clue: `axis=-1`.", answer="return np.abs(together - alone).max()"),
    change("place", "`np.argmax` gives the place of the largest difference. The task asks for the difference itself: `.max(axis=-1)`.", answer="return np.argmax(np.abs(together - alone), axis=-1)"),
    change("another row alone", "You run the others where the row should be alone. Give the model your own row: `model.forward(ids[None])`.", alone=("alone = model.forward(others)[0][-1]", "alone = model.forward(others)[0][0]")),
    change("alone still a batch", "One of your runs keeps the axis of the batch, (1, T, V). Take the row out in both: `[0][0]` where it is alone, `[0][-1]` where it is last.", alone="alone = model.forward(ids[None])[0]"),
    change("all differences together", "You put the differences of all symbols together: their sum, or the root of the sum of their squares. The task asks for the largest one.", answer=("return np.abs(together - alone).sum(axis=-1)", "return np.sqrt(((together - alone) ** 2).sum(axis=-1))")),
    change("mean", "You take the mean of the differences. A bug that moves one logit of many would be thinned out; the task asks for the largest.", answer="return np.abs(together - alone).mean(axis=-1)"),
    change("largest logits compared", "You compare the largest logit of one run with the largest of the other. These may be different symbols. First subtract the logits, then take `np.abs` of every difference, then the maximum.", answer="return np.abs(together.max(axis=-1) - alone.max(axis=-1))"),
)

PARITY = (
    change("no cache in the steps", "After the prompt, `model.forward` gets no `past` or an empty one, so each symbol stands alone. Hand over the same `past` in each step.", loop=_STEP.format("ids[None, t : t + 1]")),
    change("a new cache in each step", "You make a new past in each step, so nothing is remembered. Make it once, before the prompt.", loop="for t in range(prompt, len(ids)):\n    past = model.new_past()\n    parts.append(model.forward(ids[None, t : t + 1], past)[0][0])"),
    change("the prompt without the cache", "The prompt is not in the cache of the steps. Give it the same `past`: `model.forward(ids[None, :prompt], past)`.", prompt="parts = [model.forward(ids[None, :prompt])[0][0]]"),
    change("the whole run with the cache", "Your whole run fills the same `past`, so the parts come after it. The whole run has no cache.", whole="past = model.new_past()\nwhole = model.forward(ids[None], past)[0][0]", past=""),
    change("no prompt", "You feed the symbols one by one from the start. Then a cache that counts calls instead of tokens is never found, because each call brings one token. Feed the whole prompt in one call.", prompt="parts = []", loop="for t in range(len(ids)):\n    parts.append(model.forward(ids[None, t : t + 1], past)[0][0])"),
    change("all again in each step", "You feed all symbols so far in each step, and the cache has them already. After the prompt, feed the new symbol only.", loop="for t in range(prompt, len(ids)):\n    parts.append(model.forward(ids[None, : t + 1], past)[0][0][-1:])"),
    change("the symbol before", "You feed the symbol before place t. At place t, feed symbol t, as an array of shape (1, 1).", loop=_STEP.format("ids[None, t - 1 : t], past")),
    change("the rest at once", "You feed all that is left at once. The task feeds it one by one, as writing does.", loop="if prompt < len(ids):\n    parts.append(model.forward(ids[None, prompt:], past)[0][0])"),
    change("with its sign", "Your differences keep their sign. First take `np.abs` of every difference, then the maximum.", answer=("return (np.concatenate(parts) - whole).max(axis=-1)", "return (whole - np.concatenate(parts)).max(axis=-1)")),
    change("largest logits compared", "You compare the largest logit of one run with the largest of the other. These may be different symbols. First subtract the logits, then take `np.abs` of every difference, then the maximum.", answer="return np.abs(np.concatenate(parts).max(axis=-1) - whole.max(axis=-1))"),
    change("over the symbols", "`axis=0` takes the maximum over the T outputs, and leaves V numbers. The task wants one for each output: `axis=-1`.", answer="return np.abs(np.concatenate(parts) - whole).max(axis=0)"),
    change("one number", "You return one number. One for each output is asked for, because the first place that differs is a clue: `axis=-1`.", answer="return np.abs(np.concatenate(parts) - whole).max()"),
    change("place", "`np.argmax` gives the place of the largest difference. The task asks for the difference itself: `.max(axis=-1)`.", answer="return np.argmax(np.abs(np.concatenate(parts) - whole), axis=-1)"),
    change("all differences together", "You put the differences of all symbols together: their sum, or the root of the sum of their squares. The task asks for the largest one.", answer=("return np.abs(np.concatenate(parts) - whole).sum(axis=-1)", "return np.sqrt(((np.concatenate(parts) - whole) ** 2).sum(axis=-1))")),
    change("mean", "You take the mean of the differences. The task asks for the largest.", answer="return np.abs(np.concatenate(parts) - whole).mean(axis=-1)"),
    change("behind the prompt only", "You return only the outputs after the prompt. The prompt's own outputs are asked for, too: a wrong mask changes those.", answer="return np.abs(np.concatenate([np.zeros((0, whole.shape[1])), *parts[1:]]) - whole[prompt:]).max(axis=-1)"),
)

TRIAGE = (
    change("curve before leaks", "In your answer 5 wins over everything. What explains most should win: rows, time, order, cache, loss.", rings="rings = [loss, rows, time, order, cache]", answer="return np.select(rings, [5, 1, 2, 3, 4], 0)"),
    change("curve before time", "In your answer the loss wins over time. A leak bends the loss as well, so that leaks end up as 5. What explains most should win: rows, time, order, cache, loss.", rings="rings = [rows, loss, time, order, cache]", answer="return np.select(rings, [1, 5, 2, 3, 4], 0)"),
    change("cache before leaks", "In your answer the cache wins over rows, time and order. What mixes positions breaks cache parity, too: these three should win.", rings="rings = [cache, rows, time, order, loss]", answer="return np.select(rings, [4, 1, 2, 3, 5], 0)"),
    change("cache before order", "In your answer the cache wins over order. Positions that are wrong can break cache parity: order should win.", rings="rings = [rows, time, cache, order, loss]", answer="return np.select(rings, [1, 2, 4, 3, 5], 0)"),
    change("time before rows", "In your answer time wins over rows. What mixes the batch explains more: rows should win.", rings="rings = [time, rows, order, cache, loss]", answer="return np.select(rings, [2, 1, 3, 4, 5], 0)"),
    change("the last wins", "Where several gauges are True, the last of rows, time, order, cache, loss wins. The task asks for the first that applies.", answer="return np.select(rings[::-1], [5, 4, 3, 2, 1], 0)"),
    change("start forgotten", "A wrong loss at the start is not in your answer: 5 is for start or curve.", loss="loss = curve"),
    change("curve forgotten", "A wrong curve is not in your answer: 5 is for start or curve.", loss="loss = start"),
    change("start and curve", "You ask for start and curve. One of the two is enough: join them with `|`.", loss="loss = start & curve"),
    change("counted from 0", "Your numbers are one too small: the batch axis is 1, and 0 is for patients with no gauge that is True.", answer="return np.select(rings, [0, 1, 2, 3, 4], 0)"),
    change("columns exchanged", "You take “time” and “rows” for each other: 1 is for rows, 2 for time. The columns are start, curve, time, rows, order, cache.", columns="start, curve, rows, time, order, cache = gauges.T"),
    change("order and cache exchanged", "You take “order” and “cache” for each other: 3 is for order, 4 for cache. The columns are start, curve, time, rows, order, cache.", columns="start, curve, time, rows, cache, order = gauges.T"),
    change("rows for columns", "You unpack patients, not gauges: a gauge is a column. `gauges.T` turns them.", columns="start, curve, time, rows, order, cache = gauges"),
    change("numbers added up", "You add up the numbers of all gauges that are True. The task asks for the number of the first that applies.", answer="return np.array([1, 2, 3, 4, 5]) @ np.array(rings)"),
    change("gauges counted", "You count how many gauges are True. The task asks which ones.", "gauges.sum(axis=1)"),
    change("the first column that rings", "You take the first column that is True, in the order of the columns. The order of questions is rows, time, order, cache, loss.", "np.where(gauges.any(axis=1), gauges.argmax(axis=1) + 1, 0)"),
    change("1 for none", "A patient with no gauge that is True gets 1 from you, as if rows had moved. It should get 0. (`argmax` of a row without any True is 0, as if its first entry were True.)", answer="return np.argmax(np.stack(rings), axis=0) + 1"),
    change("5 for all the rest", "A patient with no gauge that is True gets 5 from you. It should get 0: 5 is for start or curve.", answer="return np.select(rings[:4], [1, 2, 3, 4], 5)"),
)
