"""The exercises of notebook 08, and the ways to get them wrong, as learners type them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lesson_utils.maths import attention, ops
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.mistakes.exercise import Case, Exercise, change

# fmt: off

# --- The loss -----------------------------------------------------------------------------------------------------------

LOSS_BACKWARD = (
    change("target left out", "Your slopes are those of the normaliser alone, p/N. The target's own logit also pulls the other way: subtract 1 at each target.", answer="return p / targets.size"),
    change("1 at every symbol", "You subtract 1 from every symbol's p. Only the target has a 1, and the others a 0: `np.eye(V)[targets]`.", answer="return (p - 1) / targets.size"),
    change("not divided", "You don't divide by N. The loss is a mean over all targets, so each of them counts 1/N: divide by `targets.size`.", answer="return p - target"),
    change("sign", "Your signs are turned around. More probability on the target lowers the loss, so its slope is negative: p − 1.", answer="return (target - p) / targets.size"),
    change("divided by V", "You divide by the number of symbols. The loss is a mean over the targets: divide by `targets.size`.", answer="return (p - target) / logits.shape[-1]"),
    change("divided by the first axis", "You divide by the length of the first axis. With more axes in front there are more targets than that: `targets.size`.", answer="return (p - target) / len(logits)"),
    change("divided by the last axis of targets", "You divide by the length of the targets' last axis. With more axes in front there are more targets than that: `targets.size`.", answer="return (p - target) / targets.shape[-1]"),
    change("divided by the sum of the ids", "You divide by the sum of the ids. The loss is a mean over the targets, however large their ids are: divide by their number, `targets.size`.", answer="return (p - target) / targets.sum()"),
    change("divided by all entries", "You divide by the number of all logits. Each target has V of them: the loss is a mean over the targets, `targets.size`.", answer="return (p - target) / logits.size"),
    change("logits for p", "You use the logits where p is due. p is their softmax.", p="p = logits"),
    change("log-softmax for p", "You use ln p where p is due.", p="p = ops.log_softmax(logits)"),
    change("exp alone", "Your p does not sum to 1: powers of e alone are no probabilities. p is the softmax of the logits.", p="p = np.exp(logits - logits.max(axis=-1, keepdims=True))"),
    change("not stable", "`np.exp` of a large logit overflows. `ops.softmax(logits)` subtracts the largest first.", p="p = np.exp(logits)\np = p / p.sum(axis=-1, keepdims=True)"),
    change("softmax over another axis", "Your softmax does not run over the symbols, the last axis.", p="p = ops.softmax(logits, axis=0)"),
    change("softmax over everything", "Your p sums to 1 over the whole array. Each place has a softmax of its own, over the last axis.", p="p = np.exp(logits - logits.max())\np = p / p.sum()"),
    change("the slope at p", "This is the slope at the probabilities, −1/p. Asked for is the slope at the logits, one softmax further back: p − target.", answer="return -target / np.maximum(p, 1e-300) / targets.size"),
    change("only the target's", "You give a slope to the target's logit only. Every logit stands in the sum below p, so every other one gets its p.", answer="return (p - 1) * target / targets.size"),
    change("through softmax again", "You go back through softmax once more. p − target is the slope at the logits already.", answer="return ops.softmax_backward(p - target, p) / targets.size"),
    change("through softmax from p", "You take p − target for the slope at the probabilities. It is the slope at the logits already, without a further factor.", answer="return (p - target) * p * (1 - p) / targets.size"),
    change("every row's targets", "You take all targets for each place, as an index `[..., targets]` does. Each place has one: `np.eye(V)[targets]` is 1 at it, and 0 elsewhere.", target="target = np.zeros_like(p)\ntarget[..., targets] = 1"),
    change("ids as rows", "Your ids pick whole rows: `[targets]` alone counts along the first axis. The ids count symbols, the last axis: `np.eye(V)[targets]` is 1 at each row's own target.", target="target = np.zeros_like(p)\ntarget[targets] = 1"),
    change("one axis of places", "Your index fits one axis of places only, and a batch has more in front. `np.eye(V)[targets]` fits any number of axes.", target="target = np.zeros_like(p)\ntarget[np.arange(len(targets)), targets] = 1"),
    change("ids for the target", "You subtract the ids themselves. The target is a 1 at each id, and 0 elsewhere: `np.eye(V)[targets]`.", target="target = targets[..., None]"),
    change("the loss", "You return the loss, or its terms. Asked for is its slope at each logit.", answer=("return -np.log(np.maximum((p * target).sum(axis=-1), 1e-300)).mean()", "return -np.log(np.maximum(p, 1e-300)) * target / targets.size")),
)

# --- Softmax ------------------------------------------------------------------------------------------------------------

LAST = "axis=-1, keepdims=True"


def _sum(arguments: str) -> str:
    return f"total = (dweights * weights).sum({arguments})"


SOFTMAX_BACKWARD = (
    change("each weight by itself", "You use w (1 − w), the slope of a weight w by its own score. But each score moves every weight of its row: subtract the row's Σ dweights · weights from dweights, then multiply by the weights.", "dweights * weights * (1 - weights)"),
    change("upstream forgotten", "dweights is missing, or stands in the row's sum only. A backward pass passes it on: weights · (dweights − Σ dweights · weights).", "weights * (1 - weights)", answer="return weights * (1 - total)"),
    change("row sum left out", "You leave the row's sum out: a raised score also lowers every other weight of its row. Subtract the row's sum of `dweights * weights` from dweights first.", "dweights * weights"),
    change("sum without weights", "You subtract a sum or a mean of dweights alone. What is subtracted is their average by weight, the row's sum of `dweights * weights`.", total=(f"total = dweights.sum({LAST})", f"total = dweights.mean({LAST})")),
    change("sum of the weights", "You subtract 1 in each row, which is the sum of the weights alone. Subtract the sum of `dweights * weights`.", total=f"total = weights.sum({LAST})"),
    change("mean for the sum", "You take the mean of `dweights * weights`. The weights average already: take the sum.", total=f"total = (dweights * weights).mean({LAST})"),
    change("without keepdims", "Your sum drops the last axis, and NumPy lines up one number a row with the columns. In a square array that gives wrong numbers without an error. Keep the axis: `keepdims=True` or `[..., None]`.", total=_sum("axis=-1")),
    change("sum over the rows", "Your sum runs over axis −2. Each row is a softmax of its own: the sum runs along it, `axis=-1, keepdims=True`.", total=_sum("axis=-2, keepdims=True")),
    change("sum over axis 0", "Your sum runs over axis 0. Each row is a softmax of its own: the sum runs along it, `axis=-1, keepdims=True`.", total=_sum("axis=0, keepdims=True")),
    change("sum over axis 1", "`axis=1` is the last axis only where there are two. A row is always `axis=-1`.", total=_sum("axis=1, keepdims=True")),
    change("sum over everything", "Your sum runs over the whole array. Each row has one of its own: `(dweights * weights).sum(axis=-1, keepdims=True)`.", total=_sum("")),
    change("sum added", "You add the row's sum. It is subtracted: what rises for one score falls for the others.", answer="return weights * (dweights + total)"),
    change("signs turned around", "Your signs are turned around: it is dweights minus the row's sum of dweights · weights.", answer="return weights * (total - dweights)"),
    change("not times the weights", "You do not multiply by the weights: a weight near 0 hardly moves.", answer="return dweights - total"),
    change("brackets", "You subtract the sum from the product. The sum is multiplied by each weight, too: weights · (dweights − Σ dweights · weights).", answer="return weights * dweights - total"),
    change("weights squared", "You multiply by the weights once too often. The weights stand once before the bracket, and once in the sum: weights · (dweights − Σ dweights · weights).", answer=("return weights * (dweights * weights - total)", "return weights**2 * (dweights - total)")),
    change("dweights for weights", "weights and dweights have changed places: weights · (dweights − Σ dweights · weights).", answer="return dweights * (weights - total)"),
    change("log-softmax", "This is the backward pass of log-softmax, dweights − weights · Σ dweights. Asked for is that of softmax: weights · (dweights − Σ dweights · weights).", f"dweights - weights * dweights.sum({LAST})"),
    change("softmax again", "You apply softmax to the weights. They are softmax's result already: use them as they are.", f"weights = ops.softmax(weights)\ntotal = (dweights * weights).sum({LAST})\nreturn weights * (dweights - total)"),
    change("softmax of dweights", "You apply softmax to dweights. The weights are given, so nothing needs softmax here: weights · (dweights − Σ dweights · weights).", f"weights = ops.softmax(dweights)\ntotal = (dweights * weights).sum({LAST})\nreturn weights * (dweights - total)"),
    change("dot product of arrays", "You multiply the arrays as matrices. Each row has a sum of its own, and one number a row: `(dweights * weights).sum(axis=-1, keepdims=True)`.", total=("total = np.dot(dweights, weights)", "total = dweights @ weights.swapaxes(-1, -2)")),
    change("divided by the weights", "You divide by the weights. The bracket is multiplied by them.", answer="return (dweights - total) / np.maximum(weights, 1e-9)"),
)

# --- Attention ----------------------------------------------------------------------------------------------------------

ATTENTION_BACKWARD = (
    change("scale missing", "The factor 1/√d_k is missing: scores were divided by √d_k on the way up, so their gradient is divided by it on the way down.", scale=""),
    change("scale missing in dQ", "dQ lacks the factor 1/√d_k. dQ and dK come through the same scaled scores.", queries="dQ = dscores @ K * math.sqrt(K.shape[-1])"),
    change("scale missing in dK", "dK lacks the factor 1/√d_k. dQ and dK come through the same scaled scores.", keys="dK = dscores.swapaxes(-1, -2) @ Q * math.sqrt(K.shape[-1])"),
    change("scale turned around", "You multiply by √d_k. The derivative of a score s / √d_k by s is 1/√d_k again: divide.", scale="dscores = dscores * math.sqrt(K.shape[-1])"),
    change("scale without root", "You divide by d_k, or twice by its root. Divide once by √d_k, as in the forward pass.", scale="dscores = dscores / K.shape[-1]"),
    change("scale of another size", "You divide by the root of another size. The factor is that of the forward pass, 1/√d_k: `math.sqrt(K.shape[-1])`.", scale=("dscores = dscores / math.sqrt(V.shape[-1])", "dscores = dscores / math.sqrt(K.shape[-2])", "dscores = dscores / math.sqrt(Q.shape[-2])")),
    change("scale on dV", "You divide dV by √d_k as well. The values are not scaled: output = weights V.", values="dV = weights.swapaxes(-1, -2) @ doutput / math.sqrt(K.shape[-1])"),
    change("softmax skipped", "You go from dweights to the scores without softmax in between. On the way up it stood there; on the way down it is `ops.softmax_backward(dweights, weights)`.", softmax="dscores = dweights"),
    change("softmax, each weight by itself", "For softmax you use w (1 − w), which looks at each weight w by itself. Each score moves its whole row: `ops.softmax_backward(dweights, weights)`.", softmax="dscores = dweights * weights * (1 - weights)"),
    change("softmax without the row's sum", "For softmax you only multiply by the weights. The row's Σ dweights · weights must come off first: `ops.softmax_backward(dweights, weights)`.", softmax="dscores = dweights * weights"),
    change("softmax applied", "You apply softmax itself to the gradient. Its backward pass is asked for: `ops.softmax_backward(dweights, weights)`.", softmax="dscores = ops.softmax(dweights)"),
    change("arguments of softmax_backward exchanged", "In your softmax the weights and their gradient have changed places: `ops.softmax_backward(dweights, weights)`.", softmax="dscores = ops.softmax_backward(weights, dweights)"),
    change("softmax_backward of the scores", "You give `ops.softmax_backward` the scores. It wants what softmax gave, and that is the argument `weights`.", softmax="dscores = ops.softmax_backward(dweights, Q @ K.swapaxes(-1, -2) / math.sqrt(K.shape[-1]))"),
    change("softmax: sum without weights", "In your step back through softmax, the row's sum lacks the weights. It is Σ dweights · weights: `ops.softmax_backward(dweights, weights)`.", softmax=("dscores = weights * (dweights - dweights.sum(axis=-1, keepdims=True))", "dscores = weights * (dweights - dweights.mean(axis=-1, keepdims=True))")),
    change("softmax: sum over the queries", "The sum in your step back through softmax runs over the queries. It runs along each row, over the keys: `axis=-1, keepdims=True`.", softmax="dscores = weights * (dweights - (dweights * weights).sum(axis=-2, keepdims=True))"),
    change("softmax: without keepdims", "The sum in your step back through softmax drops its axis, and lines up with the wrong one. Keep it: `keepdims=True`.", softmax="dscores = weights * (dweights - (dweights * weights).sum(axis=-1))"),
    change("dV from dweights", "dV is made from the weights, not from their gradient: `weights.swapaxes(-1, -2) @ doutput`.", values="dweights = doutput @ V.swapaxes(-1, -2)\ndV = dweights.swapaxes(-1, -2) @ doutput"),
    change("dV not transposed", "For dV you multiply by the weights as they are, (T_q, T_k). A value collects from all queries that looked at it: `weights.swapaxes(-1, -2) @ doutput`.", values="dV = weights @ doutput"),
    change("V not transposed", "dweights is doutput times V transposed: from (T_q, d_v) to (T_q, T_k), `doutput @ V.swapaxes(-1, -2)`.", weights="dweights = doutput @ V"),
    change("dK not transposed", "For dK you use the gradient at the scores as it is, (T_q, T_k). A key collects from all queries: `….swapaxes(-1, -2) @ Q`.", keys="dK = dscores @ Q"),
    change("dQ transposed", "For dQ you transpose the gradient at the scores. A query collects from all keys: `… @ K`.", queries="dQ = dscores.swapaxes(-1, -2) @ K"),
    change("Q for K", "dQ is made from the keys: scores are Q Kᵀ, so what stands beside Q comes in: the gradient at the scores times K, `… @ K`. You used Q.", queries="dQ = dscores @ Q"),
    change("K for Q", "dK is made from the queries: the gradient at the scores, transposed, times Q. You used K.", keys="dK = dscores.swapaxes(-1, -2) @ K"),
    change("Q and K exchanged", "dQ and dK have changed places. With G for the gradient at the scores, dQ = G K, and dK = Gᵀ Q.", answer="return dK, dQ, dV"),
    change("K for V", "For dweights you used K. output = weights V, so V comes in: `doutput @ V.swapaxes(-1, -2)`.", weights="dweights = doutput @ K.swapaxes(-1, -2)"),
    change(".T", "`.T` and `np.transpose` turn all axes around, the leading ones as well. Only the last two change places: `.swapaxes(-1, -2)`.", values="dV = weights.T @ doutput", weights=("dweights = doutput @ V.swapaxes(-1, -2)", "dweights = doutput @ V.T"), keys=("dK = dscores.T @ Q", "dK = dscores.swapaxes(-1, -2) @ Q")),
    change("values first", "Your results are in the wrong order. First comes the gradient of Q, then that of K, then that of V.", answer=("return dV, dK, dQ", "return dV, dQ, dK", "return dK, dV, dQ", "return dQ, dV, dK")),
    change("dweights returned", "You return what lies in between. Asked for are dQ, dK, dV.", answer=("return dscores, dK, dV", "return dweights, dscores, dV")),
)

# --- Adam ---------------------------------------------------------------------------------------------------------------

ADAM = (
    change("no correction", "The bias correction is missing. Averages that begin at 0 are too small at first: divide m by 1 − β₁ᵗ and v by 1 − β₂ᵗ.", m_hat="m_hat = m", v_hat="v_hat = v"),
    change("m not corrected", "m is not corrected. An average that begins at 0 is too small at first: divide by 1 − β₁ᵗ.", m_hat="m_hat = m"),
    change("v not corrected", "v is not corrected. An average that begins at 0 is too small at first: divide by 1 − β₂ᵗ.", v_hat="v_hat = v"),
    change("t not in the correction", "Your correction divides by 1 − β, whatever the step. It is 1 − βᵗ, which goes to 1: `1 - beta_1**t`.", m_hat="m_hat = m / (1 - beta_1)", v_hat=("v_hat = v / (1 - beta_2)",)),
    change("t from 0", "You count the steps from 0. t is 1 in the first step already; with t − 1 you divide by 1 − β⁰, which is 0.", m_hat="m_hat = m / (1 - beta_1 ** (t - 1))", v_hat="v_hat = v / (1 - beta_2 ** (t - 1))"),
    change("t one too large", "You use t + 1. t is 1 in the first step already.", m_hat="m_hat = m / (1 - beta_1 ** (t + 1))", v_hat="v_hat = v / (1 - beta_2 ** (t + 1))"),
    change("β times t", "You multiply β by t. It is β to the power t: `beta_1**t`.", m_hat="m_hat = m / (1 - beta_1 * t)", v_hat="v_hat = v / (1 - beta_2 * t)"),
    change("βs exchanged in the correction", "The corrections have changed places: m goes with β₁, v with β₂.", m_hat="m_hat = m / (1 - beta_2**t)", v_hat="v_hat = v / (1 - beta_1**t)"),
    change("βs exchanged", "β₁ and β₂ have changed places in the averages: β₁ belongs to m, β₂ to v.", m="m = beta_2 * m + (1 - beta_2) * grad", v="v = beta_1 * v + (1 - beta_1) * grad**2"),
    change("ε inside the root", "You put ε under the root. In Adam it is added behind it: √v̂ + ε.", value="value = value - lr * m_hat / np.sqrt(v_hat + eps)"),
    change("ε missing", "ε is missing: without it a parameter that never had a gradient divides 0 by 0.", value="value = value - lr * m_hat / np.sqrt(v_hat)"),
    change("ε subtracted", "You subtract ε. It is added to the root.", value="value = value - lr * m_hat / (np.sqrt(v_hat) - eps)"),
    change("g for g²", "v averages the *squares* of the gradient, `grad**2`: it measures size, whatever the sign.", v="v = beta_2 * v + (1 - beta_2) * grad"),
    change("size for the square", "v averages the squares of the gradient, `grad**2`, not its absolute value: the root comes later.", v="v = beta_2 * v + (1 - beta_2) * abs(grad)"),
    change("g² for g", "m averages the gradient itself, with its sign.", m="m = beta_1 * m + (1 - beta_1) * grad**2"),
    change("no root", "You divide by v̂. Divide by its root: then a gradient a thousand times larger makes the same step.", value="value = value - lr * m_hat / (v_hat + eps)"),
    change("multiplied by the root", "You multiply by √v̂. Divide by it.", value="value = value - lr * m_hat * (np.sqrt(v_hat) + eps)"),
    change("brackets", "Only √v̂ stands below the fraction bar, and ε is added to the whole. Set brackets: m̂ / (√v̂ + ε).", value="value = value - lr * m_hat / np.sqrt(v_hat) + eps"),
    change("uphill", "Your value goes up the gradient. A step goes down: value − lr · m̂ / (√v̂ + ε).", value="value = value + lr * m_hat / (np.sqrt(v_hat) + eps)"),
    change("no learning rate", "The learning rate is missing: lr · m̂ / (√v̂ + ε).", value="value = value - m_hat / (np.sqrt(v_hat) + eps)"),
    change("the gradient itself", "Your step uses the gradient of this step alone. Adam uses its average, m̂.", value=("value = value - lr * grad / (np.sqrt(v_hat) + eps)", "value = value - lr * grad")),
    change("plain momentum", "Your step has no √v̂ below. Adam divides by it, so that each parameter moves by about lr.", value="value = value - lr * m_hat"),
    change("m summed", "You add the whole gradient to m. It is an average: (1 − β₁) of the new, β₁ of the old.", m="m = beta_1 * m + grad"),
    change("v summed", "You add the whole square to v. It is an average: (1 − β₂) of the new, β₂ of the old.", v="v = beta_2 * v + grad**2"),
    change("shares exchanged", "The shares in m and v have changed places: β of the old average, 1 − β of what is new.", m="m = (1 - beta_1) * m + beta_1 * grad", v="v = (1 - beta_2) * v + beta_2 * grad**2"),
    change("shares exchanged in m", "The shares in m have changed places: β₁ of the old average, 1 − β₁ of the new gradient.", m="m = (1 - beta_1) * m + beta_1 * grad"),
    change("shares exchanged in v", "The shares in v have changed places: β₂ of the old average, 1 − β₂ of the new square.", v="v = (1 - beta_2) * v + beta_2 * grad**2"),
    change("old averages forgotten", "You forget an average so far, in m or in m and v. Add it where it is missing: `beta_1 * m`, `beta_2 * v`.", m="m = (1 - beta_1) * grad", v=("v = (1 - beta_2) * grad**2", "v = beta_2 * v + (1 - beta_2) * grad**2")),
    change("corrected averages returned", "You return m̂ and v̂, or put them in place of m and v. The next step starts from m and v as they are; correct copies.", answer="return value, m_hat, v_hat"),
    change("corrected m returned", "You return m̂ for m. The next step starts from m as it is; correct a copy.", answer="return value, m_hat, v"),
    change("corrected v returned", "You return v̂ for v. The next step starts from v as it is; correct a copy.", answer="return value, m, v_hat"),
    change("the change returned", "You return the change. Asked for is the new value.", answer="return lr * m_hat / (np.sqrt(v_hat) + eps), m, v"),
    change("m and v exchanged", "m and v have changed places in what you return. First comes the new value, then the new m, then the new v.", answer="return value, v, m"),
    change("only an average", "You return m or v alone. The task asks for three results: the new value, m and v.", answer=("return m", "return v")),
    change("only the value", "You return the value alone. The new m and the new v are needed for the next step: return them behind the value.", answer="return value"),
    change("decay", "You also take off a share of the value. That is weight decay, AdamW's addition; here is plain Adam.", value="value = value - lr * (m_hat / (np.sqrt(v_hat) + eps) + 0.01 * value)"),
    change("the step with the old averages", "The step uses the old averages. It should use the new ones, with this gradient in them.", m="old_m, old_v = m, v\nm = beta_1 * m + (1 - beta_1) * grad", m_hat="m_hat = old_m / (1 - beta_1**t)", v_hat="v_hat = old_v / (1 - beta_2**t)"),
    change("ε before the correction", "You add ε to √v before v is corrected, as in the short form of the paper. ε belongs to √v̂: where gradients are about as small as ε, the two differ.", v_hat="v_hat = v", value="value = value - lr * math.sqrt(1 - beta_2**t) * m_hat / (np.sqrt(v_hat) + eps)"),
)

# fmt: on

# --- The loss, backwards ----------------------------------------------------------------------------------------------


def _loss_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *shape: int, size: float = 2.0, dtype: Any = float) -> Case:
        *places, V = shape
        return Case(label, ((size * rng.normal(size=shape)).astype(dtype), rng.integers(V, size=places)))

    return [
        case("6 places, 5 symbols", 6, 5),
        case("a batch, (3, 4) places, 7 symbols", 3, 4, 7),
        case("as many places as symbols", 5, 5),
        case("logits in the thousands", 6, 4, size=2e3),
        case("float32", 4, 6, dtype=np.float32),
        case("one place", 1, 4),
    ]


def _loss_reference(logits: Array, targets: Ids) -> Array:
    return ops.cross_entropy_backward(1.0, ops.cross_entropy_forward(logits, targets)[1])


_LOSS = Exercise(
    name="loss_backward",
    called="my_loss_backward",
    takes="logits, targets",
    task="""The gradient of the mean cross-entropy at the logits.

logits: (..., V). targets: ids 0…V − 1, (...), one for each row of logits.
Returns dlogits, (..., V). NumPy, `ops.softmax`; the arguments stay as they were.""",
    reference=_loss_reference,
    steps={
        "p": "p = ops.softmax(logits)  # (..., V)",
        "target": "target = np.eye(logits.shape[-1], dtype=logits.dtype)[targets]  # (..., V): 1 at each target",
        "answer": "return (p - target) / targets.size",
    },
    cases=_loss_cases,
    returns=("dlogits",),
    hints=(
        "Three steps: p is the softmax of each row, `target` has a 1 at each row's target, and N counts the targets.",
        "Row k of `np.eye(V)` is 1 at k and 0 elsewhere. Indexed with the targets it gives one such row for each.",
        "N is `targets.size`, whatever axes there are: (p − target) / N.",
    ),
    mistakes=LOSS_BACKWARD,
    library=(ops.cross_entropy_backward, ops.cross_entropy_forward),
    praise="Six cases. Each row of slopes sums to 0: what the target gains in probability, the others lose.",
    in_pytorch="""logits = logits.requires_grad_()
# cross_entropy takes logits: a softmax before it would be a second one. It wants one axis of places.
loss = F.cross_entropy(logits.flatten(0, -2), targets.flatten())
(dlogits,) = torch.autograd.grad(loss, logits)""",
)

# --- Softmax, backwards -----------------------------------------------------------------------------------------------


def _softmax_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *shape: int, dtype: Any = float) -> Case:
        weights = ops.softmax(1.5 * rng.normal(size=shape))
        return Case(label, (rng.normal(size=shape).astype(dtype), weights.astype(dtype)))

    hidden = rng.normal(size=(3, 5))
    hidden[[0, 2, 2], [1, 0, 4]] = -np.inf
    return [
        case("a row of 5 weights", 5),
        case("3 rows of 6 weights", 3, 6),
        case("shape (2, 3, 4)", 2, 3, 4),
        case("a square, (4, 4)", 4, 4),
        Case("some weights that are 0", (rng.normal(size=(3, 5)), ops.softmax(hidden))),
        case("float32", 3, 4, dtype=np.float32),
        Case(
            "sharp rows, with weights below 0.001", (rng.normal(size=(3, 6)), ops.softmax(5 * rng.normal(size=(3, 6))))
        ),
    ]


_SOFTMAX = Exercise(
    name="softmax_backward",
    called="my_softmax_backward",
    takes="dweights, weights",
    task="""From the gradient at the weights to the gradient at the scores.

dweights: dL/dweights, (..., n). weights: what softmax gave, (..., n), each row
with sum 1. Both have one dtype. Returns dscores, (..., n), in that dtype; the
arguments stay as they were. NumPy only, no loop over rows.""",
    reference=lambda dweights, weights: ops.softmax_backward(dweights, weights),
    steps={
        "total": "total = (dweights * weights).sum(axis=-1, keepdims=True)  # one number a row",
        "answer": "return weights * (dweights - total)",
    },
    cases=_softmax_cases,
    returns=("dscores",),
    hints=(
        "∂w_i/∂s_j = w_i (δ_ij − w_j). The chain rule adds up over i: dscores_j = Σ_i dweights_i · w_i (δ_ij − w_j).",
        "Multiply out. The δ leaves one term, dweights_j w_j. The other is −w_j Σ_i dweights_i w_i: one sum for the whole row.",
        "The sum is `(dweights * weights).sum(axis=-1, keepdims=True)`. Take w_j out: weights · (dweights − sum).",
    ),
    mistakes=SOFTMAX_BACKWARD,
    library=(ops.softmax_backward,),
    praise="Seven cases. The sum over the row is what couples the scores: raise one, and all other weights fall.",
    dtype="kept",
    in_pytorch="""# Nobody writes a backward pass in PyTorch: it keeps the way forward, and walks it back.
scores = weights.log().requires_grad_()
(dscores,) = torch.autograd.grad(scores.softmax(dim=-1), scores, dweights)""",
)

# --- Attention, backwards ---------------------------------------------------------------------------------------------


def _attention_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *sizes: int, leading: tuple[int, ...] = (), masked: bool = False, dtype: Any = float) -> Case:
        T_q, T_k, d_k, d_v = sizes
        shapes = (T_q, d_v), (T_q, d_k), (T_k, d_k), (T_k, d_v)
        doutput, Q, K, V = (rng.normal(size=(*leading, *shape)).astype(dtype) for shape in shapes)
        mask = None
        if masked:
            mask = rng.random((*leading, T_q, T_k)) < 0.6
            mask[..., 0] |= ~mask.any(axis=-1)  # every query may see something
        weights = attention.scaled_dot_product_attention(Q, K, V, mask)[1]
        return Case(label, (doutput, Q, K, V, weights))

    return [
        case("3 queries and 6 keys", 3, 6, 5, 7),
        case("5 queries and 3 keys", 5, 3, 2, 4),
        case("leading axes (2, 3)", 4, 6, 5, 3, leading=(2, 3)),
        case("weights that a mask made 0", 4, 7, 3, 5, masked=True),
        case("all sizes equal", 4, 4, 4, 4),
        case("float32", 3, 5, 4, 2, dtype=np.float32),
        case("a single query", 1, 3, 1, 2),
    ]


def _attention_reference(doutput: Array, Q: Array, K: Array, V: Array, weights: Array) -> tuple[Array, ...]:
    cache = attention.AttentionCache(Q, K, V, weights, float(K.shape[-1]) ** -0.5)
    return attention.attention_backward(doutput, cache)


_ATTENTION = Exercise(
    name="attention_backward",
    called="my_attention_backward",
    takes="doutput, Q, K, V, weights",
    task="""The backward pass of scaled dot-product attention.

doutput: dL/doutput, (..., T_q, d_v). Q: (..., T_q, d_k). K: (..., T_k, d_k).
V: (..., T_k, d_v). weights: softmax(Q Kᵀ / √d_k), (..., T_q, T_k). All
have one dtype. Returns dQ, dK, dV, each in the shape of its own, in that dtype.
NumPy, math, and `ops.softmax_backward(dweights, weights)`, or your own.
The arguments stay as they were.""",
    reference=_attention_reference,
    steps={
        "values": "dV = weights.swapaxes(-1, -2) @ doutput  # (..., T_k, d_v)",
        "weights": "dweights = doutput @ V.swapaxes(-1, -2)  # (..., T_q, T_k)",
        "softmax": "dscores = ops.softmax_backward(dweights, weights)",
        "scale": "dscores = dscores / math.sqrt(K.shape[-1])",
        "queries": "dQ = dscores @ K  # (..., T_q, d_k)",
        "keys": "dK = dscores.swapaxes(-1, -2) @ Q  # (..., T_k, d_k)",
        "answer": "return dQ, dK, dV",
    },
    cases=_attention_cases,
    returns=("dQ", "dK", "dV"),
    hints=(
        "Walk the formula from its end: output = weights V, then softmax, then the scale, then Q Kᵀ. For a product C = A B: dA = dC Bᵀ "
        "and dB = Aᵀ dC.",
        "output = weights V: `dV = weights.swapaxes(-1, -2) @ doutput`, and `dweights = doutput @ V.swapaxes(-1, -2)`. Then softmax.",
        "The scale is a factor: dscores / √d_k. Scores = Q Kᵀ: `dQ = dscores @ K`, and for K the transpose, "
        "`dscores.swapaxes(-1, -2) @ Q`.",
    ),
    mistakes=ATTENTION_BACKWARD,
    library=(attention.attention_backward,),
    praise="Seven cases: cross-attention, leading axes, hidden keys. With forward and backward, attention is wholly yours.",
    dtype="kept",
    in_pytorch="""Q, K, V = (x.requires_grad_() for x in (Q, K, V))
output = F.scaled_dot_product_attention(Q, K, V, attn_mask=weights > 0)
# backward() would add to Q.grad, K.grad and V.grad what is there already; autograd.grad returns new ones.
dQ, dK, dV = torch.autograd.grad(output, (Q, K, V), doutput)""",
)

# --- One step of Adam -------------------------------------------------------------------------------------------------


def _adam_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, *shape: int, t: int, eps: float = 1e-8, betas: tuple[float, float] = (0.9, 0.98)) -> Case:
        value, grad, m = rng.normal(size=(3, *shape))
        v = rng.uniform(0.1, 2, size=shape)
        if t == 1:
            m, v = np.zeros_like(m), np.zeros_like(v)
        return Case(label, (value, grad, m, v, t, 0.05, *betas, eps))

    uneven, zeros, settings = np.array([0, 1e6, -0.5]), np.zeros((2, 3)), (0.05, 0.9, 0.98, 1e-8)
    return [
        case("the first step", 4, t=1),
        case("step 5, shape (2, 3)", 2, 3, t=5),
        case("step 3, β = 0.8 and 0.95, ε = 0.1", 5, t=3, eps=0.1, betas=(0.8, 0.95)),
        case("step 1000", 3, t=1000),
        Case(
            "the first step, with gradients of 0 and of a million", (rng.normal(size=3), uneven, *zeros, 1, *settings)
        ),
    ]


_ADAM = Exercise(
    name="adam_step",
    called="my_adam_step",
    takes="value, grad, m, v, t, lr, beta_1, beta_2, eps",
    task="""One step of Adam, for one parameter.

value, grad, m, v: arrays of one shape; m and v are the averages so far. t: the
number of this step, from 1. lr, beta_1, beta_2, eps: numbers. Returns the new
value, m and v; the arguments stay as they were. NumPy only.""",
    steps={
        "m": "m = beta_1 * m + (1 - beta_1) * grad  # which way, on average",
        "v": "v = beta_2 * v + (1 - beta_2) * grad**2  # how large, on average",
        "m_hat": "m_hat = m / (1 - beta_1**t)  # the averages began at 0",
        "v_hat": "v_hat = v / (1 - beta_2**t)",
        "value": "value = value - lr * m_hat / (np.sqrt(v_hat) + eps)",
        "answer": "return value, m, v",
    },
    cases=_adam_cases,
    returns=("value", "m", "v"),
    hints=(
        "Five lines: the two averages, their two corrections, the step. The formulas stand above, in this order.",
        "m ← β₁ m + (1 − β₁) g and v ← β₂ v + (1 − β₂) g², with g² entry by entry: `grad**2`.",
        "m̂ = m / (1 − β₁ᵗ), v̂ likewise; value − lr · m̂ / (√v̂ + ε). Return m and v, not m̂ and v̂.",
    ),
    mistakes=ADAM,
    praise="Five cases, from the first step to the thousandth. In the first, every parameter moves by lr, however small its gradient, unless that is 0.",
    in_pytorch="""parameter = torch.nn.Parameter(value)
adam, parameter.grad = torch.optim.Adam([parameter], lr, (beta_1, beta_2), eps), grad
adam.state[parameter] = {"step": torch.tensor(t - 1.0), "exp_avg": m, "exp_avg_sq": v}
adam.step()  # moves the parameter and both averages in place; before the next one, adam.zero_grad()
value = parameter.detach()""",
)

EXERCISES = (_LOSS, _SOFTMAX, _ATTENTION, _ADAM)
