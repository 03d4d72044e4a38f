"""Workloads: who asks when, with how long a prompt, and for how long an answer.

In English: published statistics say how long half, nine tenths and ninety-nine hundredths of
the texts are, and the mean. A curve through these points turns a number between 0 and 1 into
a length; evenly spread numbers, shuffled, turn into lengths with just these statistics. The
gaps between arrivals are gamma distributed, which lets requests come as evenly or in as dense
bursts as is wanted: the coefficient of variation says which.

Where you have a real hour of arrivals, `request_logs` reads it into the same objects.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .checks import check_integer, check_number


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request: seconds since the first one, tokens in, tokens out.

    names: what each part of the prompt holds (Mooncake: one number for 512 tokens); equal
    numbers mean equal text up to there. Empty where that is not known.
    """

    seconds: float
    prompt_tokens: int
    answer_tokens: int
    names: tuple[int, ...] = ()

    @property
    def total_tokens(self) -> int:
        """Tokens at the end of the answer."""
        return self.prompt_tokens + self.answer_tokens


@dataclass(frozen=True)
class Quantiles:
    """How long texts are: half of them up to `p50` tokens, 90 % up to `p90`, 99 % up to `p99`."""

    p50: float
    p90: float
    p99: float
    mean: float

    def length_at(self, share: np.ndarray) -> np.ndarray:
        """The length that this share of the texts does not exceed; shares lie in 0 to 1.

        Between the published points the logarithm of the length is a straight line, and
        from 99 % on it goes on at half the slope, up to 100 %. Below the median the curve is
        a power of the share, chosen so that the mean comes out as published. Raises
        ValueError for quantiles that fall, or with which no curve has the mean.
        """
        if not 0 < self.p50 <= self.p90 <= self.p99:
            raise ValueError(
                f"quantiles must rise from above 0, got {self.p50:g}, {self.p90:g}, {self.p99:g}"
            )
        top = self.p99 * math.sqrt(self.p99 / self.p90)
        points = [(0.5, self.p50), (0.9, self.p90), (0.99, self.p99), (1.0, top)]
        known, lengths = np.array(points).T
        upper = np.exp(np.interp(share, known, np.log(lengths)))
        return np.where(share < 0.5, self.p50 * (2 * share) ** self._power(points), upper)

    def _power(self, points: list[tuple[float, float]]) -> float:
        """The power a for which the whole curve has the mean: below 0.5 it adds p50/2/(a + 1)."""
        above = 0.0
        for (left, low), (right, high) in zip(points, points[1:], strict=False):
            slope = math.log(high / low)
            above += (right - left) * ((high - low) / slope if slope else low)
        below = self.mean - above
        if not 0 < below <= self.p50 / 2 * (1 + 1e-9):  # rounding aside
            raise ValueError(
                f"no curve through {self.p50:g}, {self.p90:g} and {self.p99:g} has the mean "
                f"{self.mean:g}; it can be {above:.4g} to {above + self.p50 / 2:.4g}"
            )
        return max(0.0, self.p50 / 2 / below - 1)


@dataclass(frozen=True)
class OnlyMean:
    """No number but the mean is published: the geometric distribution assumes the least."""

    mean: float

    def length_at(self, share: np.ndarray) -> np.ndarray:
        """The length that this share of the texts does not exceed."""
        check_number("mean", self.mean, 1)
        slope = math.log1p(-1 / self.mean) if self.mean > 1 else -math.inf
        return np.maximum(1, np.ceil(np.log1p(-share) / slope))


@dataclass(frozen=True)
class Statistics:
    """What is published about a workload. rate: requests a second; burstiness: coefficient of
    variation of the gaps between arrivals, 1 for independent ones (Poisson)."""

    prompt: Quantiles | OnlyMean
    answer: Quantiles | OnlyMean
    rate: float
    burstiness: float
    source: str


_KWON = "Kwon et al., SOSP 2023, figure 11: means; arrivals Poisson, at 2 and 30 a second"
_AZURE = "Azure Public Dataset, AzureLLMInferenceTrace 2023 (CC-BY-4.0), counted from the file"
_MOONCAKE = "Mooncake conversation trace (Apache-2.0), counted from the file"

STATISTICS = {
    "ShareGPT": Statistics(OnlyMean(161), OnlyMean(338), 2.0, 1.0, _KWON),
    "Alpaca": Statistics(OnlyMean(19), OnlyMean(58), 30.0, 1.0, _KWON),
    "Azure code": Statistics(
        Quantiles(1469, 5194, 7436, 2048), Quantiles(13, 55, 252, 28), 2.57, 13.2, _AZURE
    ),
    "Azure conversation": Statistics(
        Quantiles(1020, 2735, 4142, 1155), Quantiles(129, 424, 601, 211), 5.53, 1.09, _AZURE
    ),
    "Mooncake conversation": Statistics(
        Quantiles(6909, 27367, 85401, 12035), Quantiles(350, 597, 1120, 343), 3.40, 3.03, _MOONCAKE
    ),
}


def generate(statistics: Statistics | str, num_requests: int, seed: int = 0) -> list[Arrival]:
    """Seeded arrivals with these statistics, or those of a name in STATISTICS.

    Prompt and answer lengths are drawn independently of each other. Raises ValueError for
    an unknown name or fewer than 1 request.
    """
    if isinstance(statistics, str):
        if statistics not in STATISTICS:
            known = ", ".join(STATISTICS)
            raise ValueError(f"there is no workload {statistics!r}; known are {known}")
        statistics = STATISTICS[statistics]
    check_integer("num_requests", num_requests, 1)
    generator = np.random.default_rng(check_integer("seed", seed, 0))
    prompts, answers = (
        np.maximum(1, np.rint(law.length_at(_even_shares(generator, num_requests)))).astype(int)
        for law in (statistics.prompt, statistics.answer)
    )
    times = arrival_times(statistics.rate, statistics.burstiness, num_requests, generator)
    return list(map(Arrival, times.tolist(), prompts.tolist(), answers.tolist()))


def _even_shares(generator: np.random.Generator, number: int) -> np.ndarray:
    """Numbers in 0 to 1, one in each of `number` equal parts, in random order."""
    return (generator.permutation(number) + generator.random(number)) / number


def arrival_times(
    rate: float, burstiness: float, number: int, generator: np.random.Generator
) -> np.ndarray:
    """Seconds of `number` arrivals, the first at 0. Gaps have the mean 1/rate and the given
    coefficient of variation: 0 is a clock, 1 is Poisson, more comes in bursts."""
    check_number("rate", rate, 1e-9)
    check_number("burstiness", burstiness, 0.0, 100.0)
    if burstiness == 0:
        gaps = np.full(number - 1, 1 / rate)
    else:
        gaps = generator.gamma(burstiness**-2, burstiness**2 / rate, number - 1)
    return np.concatenate([[0.0], np.cumsum(gaps)])


def quantiles(lengths: Iterable[int]) -> Quantiles:
    """Median, 90 % and 99 % quantile and mean of some lengths. ValueError if there are none."""
    lengths = np.asarray(list(lengths))
    if not len(lengths):
        raise ValueError("quantiles of no lengths at all are not defined")
    return Quantiles(*np.percentile(lengths, [50, 90, 99]).tolist(), float(lengths.mean()))
