"""Generated arrivals have the published statistics; the readers take the public formats."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paged_tutorial.request_logs import read_azure, read_mooncake
from paged_tutorial.workload import (
    STATISTICS,
    Arrival,
    OnlyMean,
    Quantiles,
    arrival_times,
    generate,
    quantiles,
)

from helpers import quick

# Counted from the public files; the means of ShareGPT and Alpaca are those of the paper.
PUBLISHED = {
    "ShareGPT": ((None, None, None, 161), (None, None, None, 338)),
    "Alpaca": ((None, None, None, 19), (None, None, None, 58)),
    "Azure code": ((1469, 5194, 7436, 2048), (13, 55, 252, 28)),
    "Azure conversation": ((1020, 2735, 4142, 1155), (129, 424, 601, 211)),
    "Mooncake conversation": ((6909, 27367, 85401, 12035), (350, 597, 1120, 343)),
}


def test_all_published_workloads_are_there():
    assert set(STATISTICS) == set(PUBLISHED)
    assert all(statistics.source for statistics in STATISTICS.values())


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize(("number", "seed"), [(500, 0), (500, 7), (5000, 1)])
def test_quantiles_and_means_are_within_five_percent(name, number, seed):
    arrivals = generate(name, number, seed)
    drawn = (
        quantiles(arrival.prompt_tokens for arrival in arrivals),
        quantiles(arrival.answer_tokens for arrival in arrivals),
    )
    for wanted, found in zip(PUBLISHED[name], drawn, strict=True):
        found = found.p50, found.p90, found.p99, found.mean
        for value, right in zip(found, wanted, strict=True):
            assert right is None or abs(value - right) <= 0.05 * right, (wanted, found)


@pytest.mark.parametrize("name", PUBLISHED)
def test_rate_and_burstiness_are_as_stated(name):
    statistics = STATISTICS[name]
    times = arrival_times(statistics.rate, statistics.burstiness, 400_000, np.random.default_rng(3))
    gaps = np.diff(times)
    assert times[0] == 0 and (gaps >= 0).all()
    assert 1 / gaps.mean() == pytest.approx(statistics.rate, rel=0.05)
    assert gaps.std() / gaps.mean() == pytest.approx(statistics.burstiness, rel=0.08)


def test_burstiness_zero_is_a_clock():
    assert arrival_times(4.0, 0, 5, np.random.default_rng(0)).tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_the_seed_decides():
    assert generate("Alpaca", 50, seed=3) == generate("Alpaca", 50, seed=3)
    assert generate("Alpaca", 50, seed=3) != generate("Alpaca", 50, seed=4)
    assert len(generate("Alpaca", 1)) == 1


def test_lengths_are_whole_numbers_of_at_least_one():
    for name in STATISTICS:
        for arrival in generate(name, 300, seed=5):
            assert type(arrival.prompt_tokens) is int and arrival.prompt_tokens >= 1
            assert type(arrival.answer_tokens) is int and arrival.answer_tokens >= 1
            assert arrival.total_tokens == arrival.prompt_tokens + arrival.answer_tokens


@quick
@given(st.floats(1, 1e5), st.floats(1.001, 20), st.floats(1.001, 20), st.floats(0.01, 0.99))
def test_the_curve_goes_through_its_points_and_has_its_mean(p50, wider, tail, position):
    p90, p99 = p50 * wider, p50 * wider * tail
    lowest = Quantiles(p50, p90, p99, 0.0)
    with pytest.raises(ValueError, match="has the mean"):
        lowest.length_at(np.array([0.5]))
    # Any mean between no tokens at all below the median, and p50 for each, can be had.
    shares = (np.arange(400_000) + 0.5) / 400_000
    upper = Quantiles(p50, p90, p99, _mean_above(p50, p90, p99) + p50 / 2 * position)
    lengths = upper.length_at(shares)
    assert upper.length_at(np.array([0.5, 0.9, 0.99])) == pytest.approx([p50, p90, p99])
    assert (np.diff(lengths) >= -1e-9 * p99).all()
    assert lengths.mean() == pytest.approx(upper.mean, rel=0.01)


def _mean_above(p50, p90, p99):
    """What the texts above the median add to the mean, summed the slow way."""
    top = p99 * (p99 / p90) ** 0.5
    total = 0.0
    for low, high, share in ((p50, p90, 0.4), (p90, p99, 0.09), (p99, top, 0.01)):
        steps = (np.arange(200_000) + 0.5) / 200_000
        total += share * (low * (high / low) ** steps).mean()
    return total


def test_equal_quantiles_are_a_constant():
    assert Quantiles(8, 8, 8, 8).length_at(np.array([0.1, 0.5, 0.95, 1])) == pytest.approx([8] * 4)


@pytest.mark.parametrize("points", [(10, 5, 20, 6), (0, 1, 2, 0.5), (5, 9, 8, 5)])
def test_quantiles_that_fall_or_begin_at_zero_are_refused(points):
    with pytest.raises(ValueError, match="must rise from above 0"):
        Quantiles(*points).length_at(np.array([0.7]))


def test_texts_of_one_token_on_average_all_have_one_token():
    assert OnlyMean(1).length_at(np.array([0.0, 0.5, 0.999])).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="mean must be .* at least 1, got 0.5"):
        OnlyMean(0.5).length_at(np.array([0.5]))


def test_the_geometric_distribution_is_that_of_numpy():
    shares = (np.arange(100_000) + 0.5) / 100_000
    drawn = OnlyMean(19).length_at(shares)
    other = np.random.default_rng(0).geometric(1 / 19, 100_000)
    assert drawn.min() == 1
    for share in (50, 90, 99):
        assert np.percentile(drawn, share) == pytest.approx(np.percentile(other, share), rel=0.03)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("nobody", 5), ValueError, "no workload 'nobody'"),
        (("Alpaca", 0), ValueError, "num_requests must be at least 1, got 0"),
        (("Alpaca", 2.5), TypeError, "num_requests must be an integer"),
        (("Alpaca", 5, -1), ValueError, "seed must be at least 0"),
    ],
)
def test_bad_input_is_named(arguments, error, words):
    with pytest.raises(error, match=words):
        generate(*arguments)


def test_quantiles_of_nothing():
    with pytest.raises(ValueError, match="no lengths"):
        quantiles([])


# -- the public files ---------------------------------------------------------------------

AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 23:59:59.9995900,374,44\r\n"
    "2023-11-17 00:00:00.0000001,396,109\r\n"
    "2023-11-17 00:00:01,549,173"
)
MOONCAKE = (
    '{"timestamp": 3000, "input_length": 1025, "output_length": 5, "hash_ids": [0, 1, 2]}\n'
    '{"timestamp": 3500, "input_length": 512, "output_length": 7, "hash_ids": [0]}\n'
)


def written(tmp_path, text, name="log.txt"):
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_azure(tmp_path, newline, end, mark):
    text = mark + (AZURE.replace("\r\n", "\n") + end).replace("\n", newline)
    assert read_azure(written(tmp_path, text)) == [
        Arrival(0.0, 374, 44),
        Arrival(0.0004101, 396, 109),
        Arrival(1.00041, 549, 173),
    ]


def test_azure_of_a_header_alone_is_a_quiet_hour(tmp_path):
    assert read_azure(written(tmp_path, "TIMESTAMP,ContextTokens,GeneratedTokens\n")) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("TIMESTAMP,", "TIME,", "line 1 must be TIMESTAMP,ContextTokens,GeneratedTokens"),
        (AZURE, "", "line 1 must be"),
        (",396,109", ",396", "line 3: 3 fields are needed, found 2"),
        (",396,", ",many,", "line 3: 'many' is no whole number"),
        (",396,", ",0,", "line 3: prompt tokens must be at least 1, got 0"),
        (",396,109", ",396,-1", "line 3: answer tokens must be at least 0"),
        ("00:00:00.0000001", "24:61:00.0000001", "line 3: .*time data"),
        ("00:00:00.0000001", "00:00:00.00000001", "line 3: .* is not a time such as"),
        ("00:00:00.0000001", "00:00:00.x", "line 3: .* is not a time such as"),
        ("2023-11-17 00:00:01,", "2023-11-16 00:00:01,", "line 4: .* sort the file by time"),
    ],
)
def test_azure_names_the_line_that_is_wrong(tmp_path, old, new, words):
    assert AZURE.count(old) == 1
    with pytest.raises(ValueError, match=f"log.txt: {words}"):
        read_azure(written(tmp_path, AZURE.replace(old, new)))


@pytest.mark.parametrize("end", ["", "\n"])
def test_mooncake(tmp_path, end):
    assert read_mooncake(written(tmp_path, MOONCAKE + end)) == [
        Arrival(0.0, 1025, 5, (0, 1, 2)),
        Arrival(0.5, 512, 7, (0,)),
    ]
    assert read_mooncake(written(tmp_path, "")) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("3500", "2999", "line 2: .* sort the file by time"),
        ("3500", "3500.5", "line 2: timestamp must be an integer"),
        ('"input_length": 512', '"input": 512', "line 2 has no 'input_length'"),
        ("[0, 1, 2]", "[0, 1]", "line 1: 3 hash ids must stand for the prompt, not 2"),
        ("[0, 1, 2]", "[0, 1, null]", "line 1: hash id must be an integer"),
        ("[0, 1, 2]", "7", "line 1: .*not iterable"),
        (": 1025", ': "1025"', "line 1: prompt tokens must be an integer"),
        ('"hash_ids": [0]}', '"hash_ids": [0]', "line 2: "),
        ('{"timestamp": 3000', '[1]\n{"timestamp": 3000', "line 1: "),
    ],
)
def test_mooncake_names_the_line_that_is_wrong(tmp_path, old, new, words):
    assert MOONCAKE.count(old) == 1
    with pytest.raises(ValueError, match=f"log.txt: {words}"):
        read_mooncake(written(tmp_path, MOONCAKE.replace(old, new)))


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (b"3\xff", "'3\N{REPLACEMENT CHARACTER}'"),
        (b'"' + b"1" * 200_000, "field larger than field limit"),
        (b"3_9", "'3_9' is no whole number"),
        (b" 39", "' 39' is no whole number"),
        ("٣٩".encode(), "'٣٩' is no whole number"),
    ],
)
def test_azure_names_the_line_of_a_damaged_file_too(tmp_path, field, words):
    path = written(tmp_path, "")
    path.write_bytes(AZURE.encode().replace(b"396", field))
    with pytest.raises(ValueError, match=f"log.txt: line 3: .*{words}"):
        read_azure(path)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"timestamp": "\xff"}', "can't decode byte 0xff"),
        (MOONCAKE.splitlines()[1].replace("3500", "1" * 400).encode(), "too large"),
        (b"[" * 100_000, "recursion"),
    ],
)
def test_mooncake_names_the_line_of_a_damaged_file_too(tmp_path, line, words):
    path = written(tmp_path, "")
    path.write_bytes(MOONCAKE.encode().splitlines()[0] + b"\r\n" + line)
    with pytest.raises(ValueError, match=f"log.txt: line 2: .*{words}"):
        read_mooncake(path)


def test_mooncake_with_the_mark_that_editors_leave(tmp_path):
    assert len(read_mooncake(written(tmp_path, "\ufeff" + MOONCAKE))) == 2


def test_a_missing_file_says_so(tmp_path):
    for read in (read_azure, read_mooncake):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "nothing")
