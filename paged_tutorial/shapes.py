"""How many bytes one token takes in the KV cache of known models, from their published shapes.

In English: each layer keeps one key and one value for each kv head, and each of them has
head_dim numbers. So a token takes 2 x layers x kv heads x head_dim numbers, whatever the size
of the rest of the model.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelShape:
    """What decides the memory: the shape, and the number format in which it was published.

    num_heads counts query heads; parameters counts all weights, each once
    """

    name: str
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    parameters: int
    number_format: str
    source: str

    @property
    def number_bytes(self) -> int:
        """Bytes of one number of the published format."""
        return {"float32": 4, "float16": 2, "bfloat16": 2}[self.number_format]

    @property
    def token_bytes(self) -> int:
        """Bytes of the keys and values of one token."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * self.number_bytes

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights."""
        return self.parameters * self.number_bytes

    def tokens_that_fit(self, memory_bytes: int) -> int:
        """Tokens beside the weights; 0 if not even the weights fit. Nothing else is counted."""
        return max(0, memory_bytes - self.weight_bytes) // self.token_bytes


def _huggingface(name: str) -> str:
    return f"https://huggingface.co/{name}/blob/main/config.json"


SHAPES = (
    ModelShape("GPT-2", 12, 12, 12, 64, 124_439_808, "float32",
               _huggingface("openai-community/gpt2")),
    ModelShape("SmolLM2-135M", 30, 9, 3, 64, 134_515_008, "bfloat16",
               _huggingface("HuggingFaceTB/SmolLM2-135M")),
    ModelShape("Qwen2.5-7B", 28, 28, 4, 128, 7_615_616_512, "bfloat16",
               _huggingface("Qwen/Qwen2.5-7B")),
    ModelShape("Mistral-7B", 32, 32, 8, 128, 7_241_732_096, "bfloat16",
               _huggingface("mistralai/Mistral-7B-v0.1")),
    ModelShape("Llama-3-8B", 32, 32, 8, 128, 8_030_261_248, "bfloat16",
               _huggingface("meta-llama/Meta-Llama-3-8B")),
    ModelShape("Llama-3-70B", 80, 64, 8, 128, 70_553_706_496, "bfloat16",
               _huggingface("meta-llama/Meta-Llama-3-70B")),
)  # fmt: skip
