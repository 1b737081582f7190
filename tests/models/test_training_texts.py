"""The texts of the training recipe: numbers are said right, phrases are plain words, coverage is balanced."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import islice

import numpy as np
import pytest

from parakeet_models.training import numbers
from parakeet_models.training.grammar import GROUPS, KINDS, vocabulary, words_in_turn
from parakeet_models.training.lexicon import LETTERS, domain_words, spoken, spoken_counts, written
from parakeet_models.training.noises import MAKERS, NoiseBank, on_and_off
from parakeet_models.training.phrases import LISTS, SLOTS, TEMPLATES, expand


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "zero"),
        (17, "seventeen"),
        (40, "forty"),
        (99, "ninety nine"),
        (105, "one hundred five"),
        (2024, "two thousand twenty four"),
        (1_000_001, "one million one"),
        (3_000_000_000, "three billion"),
    ],
)
def test_cardinals(number: int, said: str) -> None:
    assert numbers.cardinal(number) == said


def test_british_and() -> None:
    assert numbers.cardinal(1205, "and") == "one thousand two hundred and five"


@pytest.mark.parametrize(
    ("number", "said"),
    [(1, "first"), (12, "twelfth"), (30, "thirtieth"), (22, "twenty second"), (100, "one hundredth")],
)
def test_ordinals(number: int, said: str) -> None:
    assert numbers.ordinal(number) == said


def test_written_and_spoken_forms() -> None:
    text = "call at seven am|a_m"
    assert written(text) == "call at seven am"
    assert spoken(text) == "call at seven a m"
    assert spoken_counts(text) == [1, 1, 1, 2]


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_text_is_plain_lower_case_words(kind: str) -> None:
    rng = random.Random(0)
    for _ in range(300):
        text = KINDS[kind](rng)
        assert re.fullmatch(r"[a-z']+( [a-z']+)*", written(text)), text
        assert re.fullmatch(r"[a-z']+( [a-z']+)*", spoken(text)), text


def test_templates_are_well_formed() -> None:
    rng = random.Random(1)
    for template in (t for templates in TEMPLATES.values() for t in templates):
        assert template.count("(") == template.count(")"), template
        assert set(re.findall(r"\{(\w+)\}", template)) <= {*SLOTS, *LISTS}, template
        assert expand(template, rng)


def test_words_alone_cover_every_group_evenly() -> None:
    drawn = Counter(written(text) for text in islice(words_in_turn(random.Random(2)), 6000))
    for name, group in GROUPS.items():
        counts = [drawn[written(text)] for text in group]
        assert min(counts) >= 1, name
        if name in ("digit", "letter"):
            assert min(counts) > 0.5 * np.mean(counts), name
    assert np.mean([drawn[letter] for letter in LETTERS]) > 1.5 * np.mean(
        [drawn[w] for w in GROUPS["command"]]
    )


def test_vocabulary_holds_the_domain() -> None:
    assert set(domain_words()) <= vocabulary()
    assert {"please", "pound", "mailbox", "thursday", "q", "zulu", "twelfth", "kitchen"} <= vocabulary()


@pytest.mark.parametrize("name", list(MAKERS))
def test_noises_have_unit_power(name: str) -> None:
    sound = MAKERS[name][0](32_000, random.Random(3), np.random.default_rng(3))
    assert sound.dtype == np.float32
    assert len(sound) == 32_000
    assert float(np.sqrt(np.mean(sound**2))) == pytest.approx(1, abs=0.01)


def test_noise_bank_follows_the_seed() -> None:
    def draw() -> np.ndarray:
        bank = NoiseBank(4, None, pieces=3)
        return np.concatenate([bank.draw(8000, random.Random(i), np.random.default_rng(i)) for i in range(6)])

    np.testing.assert_array_equal(draw(), draw())


def test_noise_that_comes_and_goes() -> None:
    gated = on_and_off(np.ones(160_000, np.float32), random.Random(5))
    assert 0.05 < float((gated == 0).mean()) < 0.95
