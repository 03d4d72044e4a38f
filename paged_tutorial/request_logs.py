"""Read the public request logs of Azure and Mooncake as arrivals.

In English: one line, one request. Azure tells the time with seven decimals and counts the
tokens in and out; Mooncake tells milliseconds, and which prompts begin alike. A line that
cannot be right is refused by its number, so that a wrong file never passes for a quiet hour.

Azure Public Dataset, AzureLLMInferenceTrace 2023 (CC-BY-4.0); Mooncake (Apache-2.0), whose
format the paper "Mooncake: A KVCache-centric Disaggregated Architecture" (2024) describes.
"""

from __future__ import annotations

import csv
import json
import re
from datetime import datetime
from pathlib import Path

from .checks import check_integer
from .workload import Arrival

TICKS = 10**7  # a second in the unit of Azure's seventh decimal
NAMED_TOKENS = 512  # tokens of a prompt that one of Mooncake's hash ids stands for


def read_azure(path: str | Path) -> list[Arrival]:
    """The arrivals in a file of the Azure LLM inference trace of 2023.

    A CSV file with the header TIMESTAMP,ContextTokens,GeneratedTokens and lines such as
    2023-11-16 18:15:46.6805900,374,44. Raises ValueError that names the line.
    """
    header = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"]
    arrivals: list[Arrival] = []
    start = 0
    # What is no UTF-8 is replaced and then refused as a field, in its own line.
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        rows = csv.reader(file)
        found = next(rows, [])
        if found != header:
            raise ValueError(f"{_name(path)}: line 1 must be {','.join(header)}, found {found}")
        while True:
            with _Line(path, rows.line_num + 1):
                row = next(rows, None)
                if row is None:
                    break
                if not row:  # a file may end in an empty line
                    continue
                stamp, prompt, answer = _fields(row, 3)
                ticks = _ticks(stamp)
                start = start if arrivals else ticks
                arrivals.append(_arrival(arrivals, (ticks - start) / TICKS, prompt, answer))
    return arrivals


def read_mooncake(path: str | Path) -> list[Arrival]:
    """The arrivals in a Mooncake trace, with the names of the prompts' blocks of 512 tokens.

    Each line is a JSON object with timestamp (milliseconds), input_length, output_length
    and hash_ids. Raises ValueError that names the line.
    """
    arrivals: list[Arrival] = []
    start = 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            with _Line(path, number):
                if not line.strip():
                    continue
                entry = json.loads(line)
                milliseconds = check_integer("timestamp", entry["timestamp"], 0)
                start = start if arrivals else milliseconds
                seconds = (milliseconds - start) / 1000
                names = tuple(check_integer("hash id", name, 0) for name in entry["hash_ids"])
                arrival = _arrival(
                    arrivals, seconds, entry["input_length"], entry["output_length"], names
                )
                needed = -(-arrival.prompt_tokens // NAMED_TOKENS)
                if len(names) != needed:
                    raise ValueError(
                        f"{needed} hash ids must stand for the prompt, not {len(names)}"
                    )
                arrivals.append(arrival)
    return arrivals


class _Line:
    """Turns what goes wrong while a line is read into a ValueError that names the line."""

    def __init__(self, path: str | Path, number: int) -> None:
        self.place = f"{_name(path)}: line {number}"

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, error, trace) -> None:
        if isinstance(error, KeyError):
            raise ValueError(f"{self.place} has no {error}") from None
        if isinstance(error, (ValueError, TypeError, OverflowError, RecursionError, csv.Error)):
            raise ValueError(f"{self.place}: {error}") from None


def _name(path: str | Path) -> str:
    return Path(path).name


def _fields(row: list[str], number: int) -> list:
    if len(row) != number:
        raise ValueError(f"{number} fields are needed, found {len(row)}")
    for field in row[1:]:
        if not re.fullmatch("-?[0-9]+", field):
            raise ValueError(f"{field!r} is no whole number")
    return [row[0], *map(int, row[1:])]


def _ticks(stamp: str) -> int:
    """A time in ten-millionths of a second: seven decimals, which Python's parsers do not know.

    A whole number, because a float of this size would lose the last decimals.
    """
    parts = re.fullmatch(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.(\d{1,7}))?", stamp, re.ASCII)
    if not parts:
        raise ValueError(f"{stamp!r} is not a time such as 2023-11-16 18:15:46.6805900")
    moment = datetime.strptime(parts[1] + " +0000", "%Y-%m-%d %H:%M:%S %z")
    return int(moment.timestamp()) * TICKS + int((parts[2] or "0").ljust(7, "0"))


def _arrival(before: list[Arrival], seconds: float, prompt, answer, names=()) -> Arrival:
    if before and seconds < before[-1].seconds:
        raise ValueError("this request comes before the one above; sort the file by time")
    # Answers of no tokens do occur in such logs: requests that were cut off.
    prompt = check_integer("prompt tokens", prompt, 1)
    return Arrival(seconds, prompt, check_integer("answer tokens", answer, 0), names)
