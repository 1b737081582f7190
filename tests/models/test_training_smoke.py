"""The training recipe on a small scale: it learns, its loss is the RNN-T loss, its features are the run time's."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from parakeet_models.mel import log_mel as runtime_log_mel
from parakeet_models.network import ParakeetNetwork
from parakeet_models.network.subsampling import Subsampling
from parakeet_models.training import augment
from parakeet_models.training.accents import ACCENTS, PLAIN_STOPS_ACCENTS, apply_accent
from parakeet_models.training.batches import EOU_DELAY, Batch, collate
from parakeet_models.training.clips import Clip, read_shard, trimmed, write_shard
from parakeet_models.training.evaluate import Recording, decode, evaluate, word_errors
from parakeet_models.training.export import write_checkpoint
from parakeet_models.training.features import MEL, log_mel
from parakeet_models.training.front_end import DEVIATION, MEAN, TrainingSubsampling
from parakeet_models.training.grammar import whole_words
from parakeet_models.training.library import ClipLibrary
from parakeet_models.training.loss import transducer_loss
from parakeet_models.training.mean import mean_of
from parakeet_models.training.model import MOST_FALSE, TrainingModel, tiny_config, with_false_history
from parakeet_models.training.schedule import Schedule
from parakeet_models.training.sounds import IGNORED, LATE_S, QUIET, SOUNDS, sound_targets
from parakeet_models.training.streams import (
    EASY,
    FIRST,
    Difficulty,
    Gate,
    StreamComposer,
    Utterance,
    Word,
)
from parakeet_models.training.tokenizer import EOB, EOU, Tokenizer, train_tokenizer
from parakeet_models.training.trainer import Trainer, TrainingOptions

RATE = 16_000


def toy_clip(text: str, voice: int, seed: int) -> Clip:
    """A "word" of two tones that depend on the text, 0.3 s: enough to learn from, no synthesiser needed."""
    noise = np.random.default_rng(seed)
    time = np.arange(int(0.3 * RATE)) / RATE
    letters = [sum(map(ord, text)) % 7, len(text) % 5]
    sound = np.sin(2 * np.pi * (300 + 250 * letters[0] + 10 * voice) * time)
    sound += np.sin(2 * np.pi * (1800 + 220 * letters[1]) * time)
    sound = sound * np.hanning(len(time)) + 0.001 * noise.standard_normal(len(time))
    return Clip(np.asarray(0.3 * sound, np.float32), text, f"toy-{voice}", "toy")


@pytest.fixture(scope="module")
def tokenizer_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.model"
    train_tokenizer(path)
    return path


@pytest.fixture(scope="module")
def tokenizer(tokenizer_path: Path) -> Tokenizer:
    return Tokenizer(tokenizer_path)


@pytest.fixture
def library() -> ClipLibrary:
    texts = ["one", "two", "five", "one two three", "yes", "thank you"]
    return ClipLibrary([toy_clip(t, v, 10 * i + v) for i, t in enumerate(texts) for v in range(3)], None)


def test_tokenizer_layout(tokenizer: Tokenizer, tokenizer_path: Path) -> None:
    import sentencepiece

    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tokenizer_path))
    assert pieces.id_to_piece(0) == "<unk>"
    assert [pieces.id_to_piece(tokenizer.size - 2), pieces.id_to_piece(tokenizer.size - 1)] == [EOU, EOB]
    ids = tokenizer.encode(whole_words())
    assert len(set(ids)) == len(ids) == len(whole_words())
    assert (
        pieces.decode(ids[:3]) == tokenizer.decode([*ids[:3], tokenizer.eou]) == " ".join(whole_words()[:3])
    )
    with pytest.raises(KeyError):
        tokenizer.encode(["déjà"])


def test_any_word_can_be_written_and_never_begins_with_a_letter_token(
    tokenizer: Tokenizer, tokenizer_path: Path
) -> None:
    import sentencepiece

    letters = set(tokenizer.encode("abcdefghijklmnopqrstuvwxyz"))
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tokenizer_path))
    for word in ("xylophone", "banana", "bz", "wouldn't", "a", "brighten"):
        ids = tokenizer.encode(["one", word, "two"])
        assert tokenizer.decode(ids) == pieces.decode(ids) == f"one {word} two"
        assert (ids[1] in letters) == (len(word) == 1)


def nodes(
    logits: torch.Tensor, targets: list[list[int]], frames: list[int], blank: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """Arguments of `transducer_loss` for padded logits [R, T, U + 1, V + 1], with some nodes of padding at the end."""
    flat, wanted = [], []
    for row, (labels, count) in enumerate(zip(targets, frames, strict=True)):
        flat.append(logits[row, :count, : len(labels) + 1].reshape(-1, logits.shape[-1]))
        wanted += [*labels, blank] * count
    return (
        torch.cat([*flat, logits.new_zeros(3, logits.shape[-1])]),
        torch.tensor([*wanted, 0, 0, 0]),
        torch.tensor(frames),
        torch.tensor([len(labels) for labels in targets]),
        blank,
    )


def test_transducer_loss_equals_the_sum_over_all_alignments() -> None:
    torch.manual_seed(0)
    frames, targets, blank = [4, 3, 2], [[0, 2], [1], []], 3
    logits = torch.randn(3, 4, 3, 4)
    loss = transducer_loss(*nodes(logits, targets, frames, blank))
    logp = logits.log_softmax(-1)
    for row, labels in enumerate(targets):
        paths = []
        # A path is the order of T blanks and U labels; the last step is a blank.
        for places in itertools.combinations(range(frames[row] - 1 + len(labels)), len(labels)):
            t = u = 0
            score = 0.0
            for step in range(frames[row] - 1 + len(labels)):
                if step in places:
                    score += float(logp[row, t, u, labels[u]])
                    u += 1
                else:
                    score += float(logp[row, t, u, blank])
                    t += 1
            paths.append(score + float(logp[row, t, u, blank]))
        expected = -math.log(sum(map(math.exp, paths)))
        assert float(loss[row].detach()) == pytest.approx(expected, abs=1e-4)


def test_transducer_gradient_equals_finite_differences() -> None:
    torch.manual_seed(1)
    logits = torch.randn(2, 5, 3, 4)
    arguments = ([[0, 1], [2, 2]], [5, 3], 3)
    variable = logits.clone().requires_grad_()
    transducer_loss(*nodes(variable, *arguments)).sum().backward()
    assert variable.grad is not None
    for index in [(0, 0, 0, 0), (0, 2, 1, 3), (0, 4, 2, 3), (1, 1, 1, 2), (1, 2, 2, 1), (1, 4, 0, 0)]:
        up, down = logits.clone(), logits.clone()
        up[index] += 1e-2
        down[index] -= 1e-2
        losses = [float(transducer_loss(*nodes(moved, *arguments)).sum()) for moved in (up, down)]
        assert float(variable.grad[index]) == pytest.approx((losses[0] - losses[1]) / 2e-2, abs=2e-3)


def test_label_bias_disfavours_alignments() -> None:
    arguments = nodes(torch.zeros(1, 3, 2, 2), [[0]], [3], 1)
    bias = torch.full((9,), -100.0)
    bias[2] = 0.0
    free, forced = (float(transducer_loss(*arguments, label_bias=b)) for b in (None, bias))
    assert free == pytest.approx(4 * math.log(2) - math.log(3), abs=1e-4)
    assert forced == pytest.approx(4 * math.log(2), abs=1e-4)


def test_fast_emit_scales_label_gradients_only() -> None:
    torch.manual_seed(2)
    arguments = nodes(torch.randn(1, 4, 3, 4), [[0, 1]], [4], 3)
    values = [float(transducer_loss(*arguments, fast_emit=f)) for f in (0.0, 0.5)]
    assert values[0] == values[1]


def test_features_are_those_of_the_run_time() -> None:
    samples = np.random.default_rng(3).standard_normal(16_123).astype(np.float32) * 0.1
    np.testing.assert_allclose(log_mel(samples), runtime_log_mel(samples, MEL), atol=1e-3)


def test_warp_moves_formants_and_keeps_the_band_edge() -> None:
    time = np.arange(RATE) / RATE
    tone = np.sin(2 * np.pi * 1500 * time).astype(np.float32)
    plain, higher = (log_mel(tone, warp, 4000)[50].argmax() for warp in (1.0, 0.88))
    assert higher > plain
    telephone = augment.through_telephone(
        np.random.default_rng(0).standard_normal(RATE).astype(np.float32) * 0.1, mu_law=False
    )
    edges = [log_mel(telephone, warp, 4000)[50:].mean(0) for warp in (1.0, 0.88, 1.14)]
    top = int((edges[0] > edges[0].max() - 6).nonzero()[0].max())
    for edge in edges[1:]:
        assert abs(int((edge > edge.max() - 6).nonzero()[0].max()) - top) <= 2


def test_shards_round_trip(tmp_path: Path) -> None:
    clips = [toy_clip("one", 0, 1), toy_clip("thank you", 1, 2)]
    write_shard(tmp_path / "toy" / "0000.json", clips)
    again = read_shard(tmp_path / "toy" / "0000.json")
    assert [(c.text, c.voice, c.source) for c in again] == [(c.text, c.voice, c.source) for c in clips]
    for before, after in zip(clips, again, strict=True):
        np.testing.assert_allclose(before.samples, after.samples, atol=1e-4)
    library = ClipLibrary([], tmp_path)
    assert library.counts == {"toy": 2}
    write_shard(tmp_path / "toy" / "0001.json", clips[:1])
    assert library.refresh() == 1
    assert library.counts == {"toy": 3}


def test_trimming() -> None:
    sound = np.concatenate([np.zeros(8000), 0.2 * np.ones(4000), np.zeros(8000)]).astype(np.float32)
    cut = trimmed(sound)
    assert cut is not None
    assert 4000 <= len(cut) <= 4000 + 2 * 0.04 * RATE
    assert trimmed(np.zeros(8000, np.float32)) is None


def test_accents_change_sounds_and_keep_words() -> None:
    rng = random.Random(0)
    phonemes = "θɹˈi sˈɛvən ðæt"
    for accent in ACCENTS:
        variants = {apply_accent(phonemes, accent, rng) for _ in range(30)}
        assert len(variants) > 3
        assert all(len(v.split(" ")) == 3 for v in variants)


def test_stops_without_breath_begin_words_before_vowels_only() -> None:
    said = [
        apply_accent("tˈu stˈAt tɹˈI kˈæt t", "greek", random.Random(seed)).split(" ") for seed in range(40)
    ]
    assert {words[0] for words in said} == {"tˈu", "dˈu"}
    assert {words[3][0] for words in said} == {"k", "ɡ"}
    for words in said:
        assert (words[0][0] == "d") == (words[3][0] == "ɡ")
        assert (words[1][1], words[2][0], words[4]) == ("t", "t", "t")
    assert all(
        apply_accent("tˈu", accent, random.Random(seed))[0] == "t"
        for accent in ACCENTS.keys() - {"indian"} - set(PLAIN_STOPS_ACCENTS)
        for seed in range(40)
    )


def test_a_gate_lets_noise_through_around_the_speech_only() -> None:
    hiss = np.random.default_rng(0).standard_normal(3000).astype(np.float32)
    speech = np.zeros(4000, np.float32)
    speech[1000] = -0.5
    heard = Gate(hiss, level=0.1).opened(speech, ahead=500, behind=800, start=2900)
    noise = heard - np.pad(speech, (500, 800))
    assert 0.045 < float(np.std(noise[:500])) < 0.055  # 20 dB below the peak
    assert 0.045 < float(np.std(noise[-800:])) < 0.055
    assert not np.allclose(noise[:200], noise[200:400])


def test_streams_keep_labels_in_step_with_the_sound(library: ClipLibrary, tokenizer: Tokenizer) -> None:
    composer = StreamComposer(library, seed=4)
    hard = Difficulty()
    closed = empty = 0
    for _ in range(200):
        stream = composer.stream(hard)
        assert stream.samples.dtype == np.float32
        assert np.abs(stream.samples).max() <= 1
        words_said = [word for utterance in stream.utterances for word in utterance.words]
        starts = [word.start for word in words_said]
        assert starts == sorted(starts)
        length = len(stream.samples) / RATE
        assert not words_said or words_said[-1].end <= length
        for utterance in stream.utterances:
            assert not utterance.closed or utterance.words[-1].end + EOU_DELAY[1] < length
        tokenizer.encode([word.text for word in words_said])
        closed += sum(utterance.closed for utterance in stream.utterances)
        empty += not stream.utterances
    assert closed > 100
    assert empty >= 1


def test_streams_follow_the_seed(library: ClipLibrary) -> None:
    first, second = (StreamComposer(library, seed=5).stream(Difficulty()) for _ in range(2))
    np.testing.assert_array_equal(first.samples, second.samples)


def test_prediction_starts_anew_at_every_utterance(tokenizer: Tokenizer) -> None:
    one, two = tokenizer.encode(["one", "two"])
    said = [
        Utterance([Word("one", 0.1, 0.3), Word("two", 0.4, 0.6)]),
        Utterance([Word("two", 1.5, 1.8)], closed=False),
    ]
    noise = np.full((200, MEL.bins), -10, np.float32)
    batch: Batch = collate([(noise, said), (noise, [])], tokenizer, 250)
    assert batch.labels[0, :4].tolist() == [one, two, tokenizer.eou, two]
    assert batch.label_lengths.tolist() == [4, 0]
    blank, frames, width = tokenizer.blank, batch.frame_labels.shape[1], batch.decoder_inputs.shape[1]
    # A lattice for each utterance and one for the stream without any; together they cover every frame once.
    assert batch.lattice_labels.tolist() == [3, 1, 0]
    first, second, third = batch.lattice_frames.tolist()
    assert first + second == third == 26
    seen = batch.decoder_inputs.flatten()[batch.node_states]
    assert seen[:4].tolist() == [blank, one, two, blank]
    assert batch.node_states[3] % width == 0
    assert batch.node_labels[:4].tolist() == [one, two, tokenizer.eou, blank]
    assert seen[first * 4 : first * 4 + 2].tolist() == [blank, two]
    heard = batch.node_frames.tolist()
    assert heard[: 4 * first : 4] == list(range(first))
    assert heard[4 * first + 2 * second : 4 * first + 2 * second + third] == list(
        range(frames, frames + third)
    )
    assert (batch.frame_labels[0] == tokenizer.eou).sum() > 0
    bias = batch.node_bias[: 4 * first].reshape(first, 4)
    on_time = (bias[:, 2] == 0).nonzero().flatten().double() * 0.08
    assert 0.6 + EOU_DELAY[0] <= float(on_time.min()) <= float(on_time.max()) <= 0.6 + EOU_DELAY[1] + 1e-9
    assert not bias[:, [0, 1, 3]].any()
    assert not batch.node_bias[4 * first :].any()
    assert set(batch.frame_labels[1].tolist()) == {blank, -100}
    assert set(batch.sounds[1].flatten().tolist()) == {QUIET, IGNORED}  # nothing said, and padding


def test_sounds_are_asked_for_once_they_have_been_heard() -> None:
    w, ah, n = (SOUNDS.index(sound) for sound in ("W", "AH", "N"))
    aligned = Word("one", 0.4, 0.64, ((w, 0.4, 0.48), (ah, 0.48, 0.56), (n, 0.56, 0.64)))
    targets = sound_targets(15, [Utterance([aligned, Word("two", 0.8, 0.96)])], 0.08)
    slots = [
        (0.08 * k - 0.08 + 0.02 * i - LATE_S, int(x))
        for k, row in enumerate(targets)
        for i, x in enumerate(row)
    ]
    for start, sound in slots:
        middle = start + 0.01
        expected = QUIET
        for known, begin, end in [*aligned.sounds, (IGNORED, 0.8, 0.96)]:
            if begin <= middle < end:
                expected = known
        assert sound == expected, middle


def test_a_clip_brings_its_sounds_into_the_stream() -> None:
    clip = replace(toy_clip("one two", 0, 1), sounds=(((0, 0.02, 0.1), (1, 0.1, 0.14)), ((2, 0.16, 0.28),)))
    stream = StreamComposer(ClipLibrary([clip], None), seed=3).stream(EASY)
    words = [word for utterance in stream.utterances for word in utterance.words]
    assert [[sound for sound, _, _ in word.sounds] for word in words] == [[0, 1], [2]]
    for word in words:
        assert word.start <= word.sounds[0][1] < word.sounds[-1][2] <= word.end


def test_word_errors() -> None:
    assert word_errors(["a", "b", "c"], ["a", "c"]) == 1
    assert word_errors([], ["a"]) == 1
    assert word_errors(["a", "b"], ["x", "a", "b", "y"]) == 2


def test_training_learns_and_resumes(
    library: ClipLibrary, tokenizer: Tokenizer, tokenizer_path: Path, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)

    def trainer() -> Trainer:
        return Trainer(
            TrainingModel(tiny_config(tokenizer.size)),
            tokenizer,
            tokenizer_path,
            StreamComposer(library, seed=6),
            tmp_path,
            TrainingOptions(batch_seconds=10, schedule=Schedule(warmup_steps=20)),
        )

    first = trainer()
    first.source.difficulty = EASY
    batches = iter(first.source)
    batch = next(batches)
    first.model.initialise(batch.mel)
    before = [float(first.train_step(next(batches)).frame) for _ in range(5)]
    for _ in range(50):
        after = first.train_step(next(batches))
    assert after.frame < 0.7 * np.mean(before)
    first.elapsed_s = 60 * first.options.schedule.frame_only_until
    start = [first.train_step(next(batches)).transducer for _ in range(3)]
    for _ in range(40):
        after = first.train_step(next(batches))
    assert after.transducer < 0.7 * np.mean(start)

    first._checkpoint(measure=False)
    second = trainer()
    second._resume()
    assert second.step == first.step
    for (name, a), (_, b) in zip(
        first.model.state_dict().items(), second.model.state_dict().items(), strict=True
    ):
        assert torch.equal(a, b), name

    # Finishing is a branch: the checkpoint that could go on for longer stays as it is.
    kept = (tmp_path / "checkpoint.pt").read_bytes()
    second.run(finish_in=0.02)
    assert (tmp_path / "finish" / "export" / "network.safetensors").exists()
    assert (tmp_path / "checkpoint.pt").read_bytes() == kept
    assert second.step > first.step

    # Asked to stop, a run saves at once.
    third = trainer()
    third.stop()
    third.run()
    assert third.step == first.step


def test_schedule_warms_up_ramps_holds_and_decays() -> None:
    plan = Schedule(end=300)
    assert not plan.uses_transducer(0)
    assert plan.uses_transducer(plan.frame_only_until)
    assert plan.difficulty(0) == FIRST
    assert plan.difficulty(plan.few_words_until) == EASY
    assert (
        plan.rate(plan.constant_until, 10_000)
        == plan.learning_rate
        == 2 * plan.rate(4 * plan.constant_until, 10_000)
    )
    assert plan.rate(300, 10_000) < 0.03 * plan.learning_rate
    assert plan.difficulty(300) == plan.difficulty(200)
    assert plan.frame_weight(0) == 1
    assert plan.frame_weight(200) == plan.frame_floor
    assert plan.sound_weight(0) > plan.sound_weight(200) == plan.sound_floor


def test_the_faster_subsampling_has_the_gradients_of_the_plain_one(tokenizer: Tokenizer) -> None:
    torch.manual_seed(0)
    config = tiny_config(tokenizer.size)
    fast, plain = TrainingSubsampling(config), Subsampling(config)
    weight, bias = fast.folded()
    state = fast.state_dict() | {"conv.0.weight": weight.detach(), "conv.0.bias": bias.detach()}
    plain.load_state_dict(state)
    mel = 4.5 * torch.randn(3, 151, MEL.bins) - 9
    length = torch.tensor([151, 142, 70])
    results = []
    for module in (fast, plain):
        out, valid = module(mel, length)
        kept = out * (torch.arange(out.shape[1])[None] < valid[:, None])[:, :, None]
        (kept * torch.linspace(-1, 1, kept.numel()).view_as(kept)).sum().backward()
        results.append((kept, {name: p.grad for name, p in module.named_parameters()}))
    (fast_out, fast_gradients), (plain_out, gradients) = results
    torch.testing.assert_close(fast_out, plain_out, atol=1e-4, rtol=1e-4)
    # Folding: weight = raw / DEVIATION and bias = raw - MEAN * sum(weight).
    weight_gradient = gradients["conv.0.weight"] - MEAN * gradients["conv.0.bias"][:, None, None, None]
    gradients["conv.0.weight"] = weight_gradient / DEVIATION
    for name, expected in gradients.items():
        scale = float(expected.abs().max())
        torch.testing.assert_close(fast_gradients[name], expected, atol=1e-4 * scale, rtol=1e-3, msg=name)


def test_exported_network_is_the_trained_one(
    tokenizer: Tokenizer, tokenizer_path: Path, tmp_path: Path
) -> None:
    from safetensors.torch import load_file

    torch.manual_seed(0)
    model = TrainingModel(tiny_config(tokenizer.size)).eval()
    mel = torch.from_numpy(log_mel(toy_clip("one", 0, 0).samples))[None]
    model.initialise(mel)
    write_checkpoint(tmp_path, model.plain_state(), model.network.config, tokenizer_path, {})
    network = ParakeetNetwork(model.network.config)
    network.load_state_dict(load_file(tmp_path / "network.safetensors"))
    # Rows of several lengths, with anything in their padding.
    rows = torch.cat([mel, mel + 5 * torch.rand_like(mel), mel])
    length = torch.tensor([mel.shape[1], mel.shape[1] - 9, mel.shape[1] // 2])
    with torch.inference_mode():
        plain, valid = network.eval().encoder(rows, length)
        trained, trained_valid = model.network.encoder(rows, length)
        assert valid.tolist() == trained_valid.tolist()
        for row, frames in enumerate(valid.tolist()):
            torch.testing.assert_close(plain[row, :frames], trained[row, :frames], atol=1e-3, rtol=1e-3)
    assert isinstance(decode(network, [mel[0].numpy()], tokenizer.eou), list)
    scores = evaluate(network, tokenizer, [Recording(toy_clip("one", 0, 0).samples, "one", "digit/toy")])
    assert scores["digit/*"]["recordings"] == 1


def test_the_mean_of_checkpoints_is_that_of_their_averaged_weights(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    paths = []
    for seed in (1, 2, 3):
        torch.manual_seed(seed)
        model = TrainingModel(tiny_config(tokenizer.size))
        averaged = {name: value.detach() + seed for name, value in model.named_parameters()}
        state = {"model": model.state_dict(), "average": averaged, "step": seed, "elapsed_s": 60.0 * seed}
        paths.append(tmp_path / f"{seed}.pt")
        torch.save(state, paths[-1])
    said = mean_of(paths, model)
    assert said == {"steps": 3, "minutes": 3.0, "mean_of_minutes": [1.0, 2.0, 3.0]}
    name = "network.joint.pred.weight"
    every = [torch.load(path, weights_only=True)["average"][name] for path in paths]
    torch.testing.assert_close(model.state_dict()[name], sum(every) / 3)


def test_false_history_keeps_the_order_of_what_was_said_and_the_place_of_every_state() -> None:
    torch.manual_seed(0)
    blank, rows, width = 99, 512, 6
    inputs = torch.full((rows, width), blank)
    for row in range(rows):
        inputs[row, 1 : 2 + row % 5] = torch.arange(1, 2 + row % 5)
    states = torch.arange(rows * width)
    filled, places = with_false_history(inputs, states, blank)
    offsets = []
    for row, (before, after) in enumerate(zip(inputs.tolist(), filled.tolist(), strict=True)):
        said = [token for token in before if token != blank]
        rest = iter(after)
        assert all(token in rest for token in [blank, *said])
        for place in range(len(said) + 1):
            where = int(places[row * width + place])
            assert where // len(after) == row
            # Whatever was put between, the last true word has been heard at its state.
            assert before[place] in after[: where % len(after) + 1]
            offsets.append(where % len(after) - place)
    assert places[0] == 0
    assert min(offsets) == 0
    assert max(offsets) == MOST_FALSE
    assert set(filled.flatten().tolist()) == {blank, 1, 2, 3, 4, 5}
