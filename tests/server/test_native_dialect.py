"""The native protocol without a socket: bytes and text in, actions out."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parakeet_live.audio.formats import AudioFormat, DeclaredFormat, Encoding, to_mono
from parakeet_live.dialects.messages import EndReason, ErrorCode, Limits, WarningCode, protocol_schema
from parakeet_live.dialects.native import (
    Action,
    Audio,
    Cancel,
    Configure,
    End,
    Finalize,
    NativeSession,
    Refuse,
    Result,
    ServerInfo,
    warning,
)
from parakeet_live.dialects.options import EndpointingOptions
from parakeet_live.dialects.query import BadParameterError, StreamRequest, parse_query
from parakeet_live.dialects.schema import schema_text
from parakeet_live.session.endpoint_config import DEFAULT, PRESETS, Preset
from parakeet_live.session.events import Done, Final, Partial, Reason, Timing, Word
from parakeet_models.mel import Float32
from support.wav import wav_file

DOCS = Path(__file__).parents[2] / "docs"
INFO = ServerInfo("tiny-en", ("en",), 160)
AUDIO = np.random.default_rng(0).bytes(6400)
END = '{"type":"end"}'


def new(declared: DeclaredFormat | None = None) -> NativeSession:
    return NativeSession("s1", StreamRequest(declared or DeclaredFormat()), INFO)


def samples_of(actions: list[Action]) -> Float32:
    parts = [action.samples for action in actions if isinstance(action, Audio)]
    return np.concatenate([np.zeros(0, np.float32), *parts])


def only(actions: list[Action], kind: type[Result] | type[Refuse]) -> dict[str, Any]:
    """The message of the one action, which must be of this kind."""
    (action,) = actions
    assert isinstance(action, kind)
    message: dict[str, Any] = json.loads(action.text)
    assert message["type"] == "error"
    assert message["fatal"] is (kind is Refuse)
    return message


# Query


def test_query_states_the_format() -> None:
    assert parse_query([], "en") == StreamRequest()
    query = [("encoding", "mulaw"), ("sample_rate", "8000"), ("channels", "2")]
    assert parse_query(query, "en").audio == DeclaredFormat(Encoding.MULAW, 8000, 2)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ([("encoding", "opus")], "pcm_s16le, pcm_f32le, mulaw, alaw"),
        ([("encoding", "")], "pcm_s16le"),
        ([("sample_rate", "7999")], "8000 to 192000"),
        ([("sample_rate", "192001")], "8000 to 192000"),
        ([("sample_rate", "16k")], "whole number"),
        ([("sample_rate", "١٦٠٠٠")], "whole number"),
        ([("sample_rate", "1_6000")], "whole number"),
        ([("sample_rate", "9" * 5000)], "whole number"),
        ([("channels", "0")], "1 to 8"),
        ([("channels", "9")], "1 to 8"),
        ([("channels", "-1")], "1 to 8"),
        ([("channels", "1"), ("channels", "2")], "more than once"),
        ([("samplerate", "8000")], "encoding, sample_rate, channels, endpointing"),
    ],
)
def test_bad_queries_name_the_remedy(query: list[tuple[str, str]], says: str) -> None:
    with pytest.raises(BadParameterError, match=says):
        parse_query(query, "en")


def test_query_chooses_a_preset_and_changes_single_numbers() -> None:
    assert parse_query([("endpointing", "dictation")], "en").endpointing == PRESETS[Preset.DICTATION]
    query = [("eou_silence_ms", "700"), ("vad", "false"), ("endpointing", "telephone_digits")]
    expected = replace(PRESETS[Preset.TELEPHONE_DIGITS], eou_silence_ms=700, vad=False)
    assert parse_query(query, "en").endpointing == expected


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("endpointing", "talk", "'conversation', 'dictation', 'telephone_digits' or 'command'"),
        ("eou_silence_ms", "-1", "eou_silence_ms='-1' is not possible.*greater than or equal to 0"),
        ("silence_ms", "60001", "less than or equal to 60000"),
        ("max_utterance_ms", "999", "greater than or equal to 1000"),
        ("no_audio_ms", "soon", "valid integer"),
        ("vad", "perhaps", "boolean"),
    ],
)
def test_bad_endpointing_names_the_remedy(name: str, value: str, says: str) -> None:
    with pytest.raises(BadParameterError, match=says):
        parse_query([(name, value)], "en")


def test_query_asks_for_readable_finals() -> None:
    assert parse_query([("format", "")], "en").formatter is None
    formatter = parse_query([("format", "punctuation,numerals")], "en").formatter
    assert formatter is not None
    assert formatter.names == ("numerals", "punctuation")


@pytest.mark.parametrize(
    ("value", "language", "says"),
    [
        ("roman", "en", "format='roman' is not possible.*there are: numerals, punctuation"),
        ("numerals", "tlh", "does not know the language tlh"),
    ],
)
def test_a_bad_format_names_the_remedy(value: str, language: str, says: str) -> None:
    with pytest.raises(BadParameterError, match=says):
        parse_query([("format", value)], language)


# Audio


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 999), min_size=1, max_size=9).filter(any))
def test_any_fragmentation_gives_the_same_audio(sizes: list[int]) -> None:
    session, at, turn = new(), 0, 0
    actions: list[Action] = []
    while at < len(AUDIO):
        size = sizes[turn % len(sizes)]
        actions += session.receive_bytes(AUDIO[at : at + size])
        at, turn = at + size, turn + 1
    np.testing.assert_array_equal(samples_of(actions), to_mono(AUDIO, AudioFormat()))
    assert session.receive_text(END) == [End()]


def test_empty_frames_are_ignored() -> None:
    session = new()
    assert session.receive_bytes(b"") == []
    assert len(samples_of(session.receive_bytes(AUDIO))) == 3200
    assert session.receive_bytes(b"") == []


def test_a_stray_byte_at_the_end_is_dropped_quietly() -> None:
    session = new()
    samples = samples_of(session.receive_bytes(AUDIO + b"\x01"))
    actions = session.receive_text(END)
    assert actions == [End()]
    assert len(samples) == 3200


def test_finalize_and_end_flush_the_resampler() -> None:
    session = new(DeclaredFormat(sample_rate=8000))
    first = session.receive_bytes(AUDIO)
    finalized = session.receive_text('{"type":"finalize"}')
    assert isinstance(finalized[-1], Finalize)
    assert len(samples_of(first + finalized)) == 6400
    second = session.receive_bytes(AUDIO)
    ended = session.receive_text(END)
    assert isinstance(ended[-1], End)
    assert len(samples_of(second + ended)) == 6400


def test_containers_are_refused() -> None:
    session = new()
    message = only(session.receive_bytes(b"\x1aE\xdf\xa3" + bytes(100)), Refuse)
    assert message["code"] == "unsupported_container"
    assert "ffmpeg" in message["message"]
    assert session.receive_bytes(AUDIO) == []


def test_the_close_code_says_unsupported_data() -> None:
    (action,) = new().receive_bytes(b"OggS\x00\x02")
    assert isinstance(action, Refuse)
    assert (action.close_code, action.reason) == (1003, "unsupported_container")


def test_a_contradicting_wav_header_is_refused() -> None:
    message = only(new(DeclaredFormat(sample_rate=16_000)).receive_bytes(wav_file(AUDIO, rate=8000)), Refuse)
    assert message["code"] == "format_mismatch"
    assert "8000 Hz" in message["message"]
    assert "16000 Hz" in message["message"]


def test_audio_after_a_wav_file_is_reported_once() -> None:
    session = new()
    actions = session.receive_bytes(wav_file(AUDIO) + b"\x05\x06" * 50)
    assert len(samples_of(actions)) == 3200
    assert only(actions[1:], Result)["code"] == "audio_after_wav"
    assert session.receive_bytes(AUDIO) == []


def test_a_second_wav_file_goes_on() -> None:
    session = new()
    actions = session.receive_bytes(wav_file(AUDIO)) + session.receive_bytes(wav_file(AUDIO))
    assert len(samples_of(actions)) == 6400


# Control messages


def test_keepalive_does_nothing() -> None:
    assert new().receive_text('{"type":"keepalive"}') == []


def test_unknown_fields_are_ignored() -> None:
    assert new().receive_text('{"type":"finalize","id":7}') == [Finalize()]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "{bad",
        "[1]",
        "null",
        '"end"',
        "{}",
        '{"type":"stop"}',
        '{"type":7}',
        '{"type":["end"]}',
        '{"type":null}',
        '{"eof" : 1}',
        '{"type":"\\ud800"}',
        "[" * 60_000,
        "9" * 10_000,
        "NaN",
    ],
)
def test_what_is_not_understood_is_answered_and_the_session_goes_on(text: str) -> None:
    session = new()
    message = only(session.receive_text(text), Result)
    assert message["code"] == "bad_message"
    assert all(word in message["message"] for word in ("finalize", "end", "keepalive"))
    assert len(samples_of(session.receive_bytes(AUDIO))) == 3200
    assert session.receive_text(END) == [End()]


@pytest.mark.parametrize("text", ["x" * 65_537, "ü" * 40_000, "x" * 1_000_000])
def test_huge_texts_are_answered(text: str) -> None:
    message = only(new().receive_text(text), Result)
    assert "65536 bytes" in message["message"]


def test_a_client_that_never_makes_sense_is_closed() -> None:
    session = new()
    for _ in range(Limits().max_bad_messages):
        only(session.receive_text("?"), Result)
    assert only(session.receive_text("?"), Refuse)["code"] == "too_many_errors"
    assert session.receive_text("?") == []


@pytest.mark.parametrize("event", ["connected", "start", "media"])
def test_telephony_envelopes_are_refused_at_once(event: str) -> None:
    text = json.dumps({"event": event, "sequenceNumber": "1", "media": {"payload": "fn5+fg=="}})
    message = only(new().receive_text(text), Refuse)
    assert message["code"] == "telephony_envelope"
    assert "base64" in message["message"]


def test_a_control_message_in_a_binary_frame_is_no_audio() -> None:
    session = new()
    message = only(session.receive_bytes(b'{"type":"end"}'), Result)
    assert "text frame" in message["message"]
    assert len(samples_of(session.receive_bytes(AUDIO))) == 3200


def test_audio_that_begins_like_json_is_audio() -> None:
    assert len(samples_of(new().receive_bytes(b"{" + AUDIO[1:]))) == 3200


def test_after_end_everything_is_dropped() -> None:
    session = new()
    session.receive_text(END)
    assert session.receive_bytes(AUDIO) == []
    assert session.receive_text(END) == []
    assert session.receive_text('{"type":"finalize"}') == []
    assert session.receive_text("?") == []


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=200), st.text(max_size=60), st.just(END)), max_size=30))
def test_any_sequence_of_messages_is_survived(sent: list[bytes | str]) -> None:
    session = new()
    ended = 0
    for message in sent:
        text = isinstance(message, str)
        for action in session.receive_text(message) if text else session.receive_bytes(message):
            assert not ended
            ended += isinstance(action, End | Refuse)
            if isinstance(action, Result | Refuse):
                jsonschema.validate(json.loads(action.text), SERVER_SCHEMA)


def test_configure_answers_with_what_is_in_force_from_here_on() -> None:
    session = new()
    (change, reply) = session.receive_text('{"type":"configure","endpointing":"dictation","vad":false}')
    assert change == Configure(replace(PRESETS[Preset.DICTATION], vad=False))
    (change, reply) = session.receive_text('{"type":"configure","silence_ms":5000,"colour":"red"}')
    expected = replace(PRESETS[Preset.DICTATION], vad=False, silence_ms=5000)
    assert change == Configure(expected)
    assert isinstance(reply, Result)
    answer = json.loads(reply.text)
    jsonschema.validate(answer, SERVER_SCHEMA)
    assert answer == {"type": "configured", "seq": 2, "endpointing": asdict(expected), "format": []}


def test_a_bad_configure_names_the_remedy_and_changes_nothing() -> None:
    session = new()
    message = only(session.receive_text('{"type":"configure","silence_ms":-5,"vad":false}'), Result)
    assert "silence_ms='-5'" in message["message"]
    (change, _) = session.receive_text('{"type":"configure"}')
    assert change == Configure(DEFAULT)


def test_configure_changes_how_finals_are_formatted_and_formats_them_beside_the_raw_text() -> None:
    session = NativeSession("s1", parse_query([("format", "punctuation")], "en"), INFO)
    spoken = Final(0, "five zero", (Word("five", 0, 300, 0.9), Word("zero", 400, 700, 0.9)), 1440, Reason.EOU)

    def formatted() -> object:
        message = json.loads(session.event(spoken).text)
        jsonschema.validate(message, SERVER_SCHEMA)
        assert message["text"] == "five zero"
        return message["formatted"]

    assert json.loads(session.ready())["format"] == ["punctuation"]
    assert formatted() == "Five zero."
    message = only(session.receive_text('{"type":"configure","format":"roman","vad":false}'), Result)
    assert "format='roman' is not possible" in message["message"]
    assert formatted() == "Five zero."
    (change, reply) = session.receive_text('{"type":"configure","format":"numerals"}')
    assert change == Configure(DEFAULT)
    assert isinstance(reply, Result)
    assert json.loads(reply.text)["format"] == ["numerals"]
    assert formatted() == "50"
    session.receive_text('{"type":"configure","vad":true}')
    assert formatted() == "50"
    session.receive_text('{"type":"configure","format":""}')
    assert formatted() is None


def test_cancel_counts_what_the_resampler_holds_back() -> None:
    session = new(DeclaredFormat(sample_rate=8000))
    actions = session.receive_bytes(AUDIO) + session.receive_text('{"type":"cancel"}')
    assert actions[-1] == Cancel()
    assert len(samples_of(actions)) == 6400


# Messages of the server

SERVER_SCHEMA = {**protocol_schema(), "$ref": "#/$defs/ServerMessage"}
CLIENT_SCHEMA = {**protocol_schema(), "$ref": "#/$defs/ClientMessage"}


def test_ready() -> None:
    message = json.loads(new(DeclaredFormat(Encoding.MULAW, 8000)).ready())
    jsonschema.validate(message, SERVER_SCHEMA)
    assert message == {
        "type": "ready",
        "protocol": 1,
        "session": "s1",
        "model": "tiny-en",
        "languages": ["en"],
        "encoding": "mulaw",
        "sample_rate": 8000,
        "channels": 1,
        "step_ms": 160,
        "endpointing": asdict(DEFAULT),
        "format": [],
        "limits": Limits().model_dump(),
        "resume_token": None,
        "resume_window_ms": 0,
        "resumed": False,
        "audio_bytes": 0,
        "controls": 0,
        "idle_timeout_ms": 0,
        "max_session_ms": 0,
    }


def test_what_a_resumed_connection_is_told() -> None:
    info = ServerInfo("tiny-en", ("en",), 160, resume_window_ms=30_000)
    session = NativeSession("s1", StreamRequest(), info, "secret")
    session.receive_bytes(AUDIO)
    session.receive_bytes(b'{"type":"end"}')  # counts as bytes, though it is no audio
    session.receive_text('{"type":"finalize"}')
    session.receive_text('{"type":"keepalive"}')
    session.receive_text("?")
    message = json.loads(session.ready(resumed=True))
    jsonschema.validate(message, SERVER_SCHEMA)
    assert message["resumed"] is True
    assert (message["resume_token"], message["resume_window_ms"]) == ("secret", 30_000)
    assert (message["audio_bytes"], message["controls"]) == (6400 + 14, 1)


def test_every_second_of_audio_is_acknowledged_once() -> None:
    session = new(DeclaredFormat(Encoding.MULAW, 16_000))
    session.receive_bytes(bytes(15_999))
    assert session.acknowledgement() is None
    session.receive_bytes(bytes(20_001))
    text = session.acknowledgement()
    assert text is not None
    jsonschema.validate(json.loads(text), SERVER_SCHEMA)
    assert json.loads(text) == {"type": "ack", "audio_bytes": 36_000, "audio_ms": 2250, "controls": 0}
    assert session.acknowledgement() is None


def test_a_session_wound_up_by_the_server_says_why() -> None:
    session = new(DeclaredFormat(sample_rate=8000))
    before = samples_of(session.receive_bytes(AUDIO))
    actions = session.wind_up(EndReason.DRAINING)
    assert isinstance(actions[-1], End)
    assert len(before) + len(samples_of(actions)) == 6400
    assert session.receive_bytes(AUDIO) == []
    assert session.wind_up(EndReason.IDLE_TIMEOUT) == []
    assert json.loads(session.event(Done(400, 0)).text)["reason"] == "draining"


def test_warnings_carry_their_numbers() -> None:
    message = json.loads(warning(WarningCode.LAGGING, "2100 ms behind", lag_ms=2100))
    jsonschema.validate(message, SERVER_SCHEMA)
    assert message == {
        "type": "warning",
        "code": "lagging",
        "message": "2100 ms behind",
        "details": {"lag_ms": 2100},
    }


def test_partial_final_and_done() -> None:
    words = (Word("three", 320, 560, 0.987654), Word("one", 640, 880, 1.0))
    session = new()
    events = (
        Partial(2, "three one", words, 960),
        Final(2, "three one", words, 1440, Reason.EOU, 1280, timing=Timing(4, 21, 25)),
        Done(5000, 1),
    )
    results = [session.event(event) for event in events]
    assert [result.seq for result in results] == [1, 2, 3]
    assert [result.replaceable for result in results] == [True, False, False]
    partial, final, done = (json.loads(result.text) for result in results)
    for message in (partial, final, done):
        jsonschema.validate(message, SERVER_SCHEMA)
    assert partial == {
        "type": "partial",
        "seq": 1,
        "utterance": 2,
        "text": "three one",
        "words": [
            {"text": "three", "start_ms": 320, "end_ms": 560, "confidence": 0.988},
            {"text": "one", "start_ms": 640, "end_ms": 880, "confidence": 1.0},
        ],
        "audio_ms": 960,
    }
    timing = {"queue_ms": 4, "compute_ms": 21, "total_ms": 25}
    assert final == {
        **partial,
        "type": "final",
        "seq": 2,
        "audio_ms": 1440,
        "reason": "eou",
        "speech_end_ms": 880,
        "eou_ms": 1280,
        "commit_ms": 1440,
        "formatted": None,
        "timing": timing,
    }
    assert done == {"type": "done", "seq": 3, "audio_ms": 5000, "utterances": 1, "reason": "end"}


# Documents


def test_the_published_schema_is_current() -> None:
    published = (DOCS / "protocol.schema.json").read_text(encoding="utf-8")
    assert published == schema_text(), (
        "run: python -m parakeet_live.dialects.schema > docs/protocol.schema.json"
    )


def test_the_schema_is_valid_and_judges_client_messages() -> None:
    jsonschema.Draft202012Validator.check_schema(protocol_schema())
    jsonschema.validate({"type": "end"}, CLIENT_SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"type": "stop"}, CLIENT_SCHEMA)


def test_the_document_names_every_code_and_limit() -> None:
    text = (DOCS / "protocol.md").read_text(encoding="utf-8")
    options = EndpointingOptions.model_fields
    for name in (
        *ErrorCode,
        *WarningCode,
        *EndReason,
        *Reason,
        *Encoding,
        *Limits.model_fields,
        *Preset,
        *options,
    ):
        assert f"`{name}`" in text, f"docs/protocol.md does not mention `{name}`"


def test_every_example_in_the_document_is_valid() -> None:
    text = (DOCS / "protocol.md").read_text(encoding="utf-8")
    blocks = [block.split("```")[0] for block in text.split("```json\n")[1:]]
    examples = [json.loads(block) for block in blocks]
    kinds = {example["type"] for example in examples}
    clients = {"finalize", "cancel", "configure", "end", "keepalive"}
    results = {"speech_started", "partial", "eou", "resumed", "final", "cancelled", "done"}
    assert kinds >= clients | results | {"ready", "queued", "configured", "ack", "warning", "error"}
    for example in examples:
        client = example["type"] in clients
        jsonschema.validate(example, CLIENT_SCHEMA if client else SERVER_SCHEMA)
