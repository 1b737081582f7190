"""`parakeet-live models` against a stand-in of the hub: pulls, interruptions, refusals, lock, verification, choice."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import constants, hf_hub_download
from typer.testing import CliRunner

from parakeet_live.cli import app
from parakeet_models.bundle import Bundle, embedded_bundle
from parakeet_models.hub import (
    CATALOGUE,
    DIRECTORY_VARIABLE,
    LOCK_NAME,
    HubError,
    Runtime,
    Store,
    candidates,
    choose,
    default_entry,
    find,
    native_runtime,
    read_lock,
)
from support.hub import HubStandIn, Repository, running_hub
from support.layouts.look_alikes import LookAlikes

TIMEOUT = 60
DIGIT = Path(__file__).parents[1] / "data" / "audio" / "fsdd_jackson_7_0.flac"
ENCODER = "encoder.onnx"
ENTRY = find("eou-120m-onnx")
FOLDER = f"{ENTRY.folder}/"
COREML = find("eou-120m-coreml-int8")


def noise(count: int, seed: int = 0) -> bytes:
    return np.random.default_rng(seed).bytes(count)


def onnx_files() -> dict[str, bytes]:
    """A repository like altunenes': the folder that is wanted, and others."""
    inside = {
        ENCODER: noise(3_000_000),
        "decoder_joint.onnx": noise(50_000, 1),
        "tokenizer.json": b'{"a": 1}',
    }
    return {FOLDER + name: content for name, content in inside.items()} | {
        "README.md": b"# About",
        "other-model/encoder.onnx": noise(2000, 2),
        f"{FOLDER}unneeded.bin": noise(2000, 3),
    }


@dataclass
class User:
    """Somebody with a directory of models, whose environment names the stand-in as the hub."""

    home: Path
    endpoint: str
    monkeypatch: pytest.MonkeyPatch

    def __post_init__(self) -> None:
        self.set("NO_PROXY", "127.0.0.1,localhost")
        self.set("HF_HOME", str(self.home / "huggingface"))
        self.set("HF_TOKEN_PATH", str(self.home / "no-token"))
        self.set(DIRECTORY_VARIABLE, str(self.store.root))
        self.use(self.endpoint)

    @property
    def store(self) -> Store:
        return Store(self.home / "models")

    def set(self, variable: str, value: str) -> None:
        self.monkeypatch.setenv(variable, value)

    def use(self, endpoint: str) -> None:
        """What HF_ENDPOINT does, which the hub's library reads when it is imported."""
        self.set("HF_ENDPOINT", endpoint)
        self.monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        template = f"{endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        self.monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """A command in a process of its own."""
        command = [sys.executable, "-m", "parakeet_live", *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *arguments: str | Path, code: int = 0) -> str:
        """Standard output and error of a command that must end with ``code``."""
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == code, result.output
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.output

    def refused(self, *arguments: str | Path) -> str:
        return " ".join(self.run(*arguments, code=1).split())


@pytest.fixture
def hub() -> Iterator[HubStandIn]:
    with running_hub() as standin:
        yield standin


@pytest.fixture
def published(hub: HubStandIn) -> Repository:
    return hub.add(ENTRY.repository, onnx_files())


@pytest.fixture
def user(tmp_path: Path, hub: HubStandIn, monkeypatch: pytest.MonkeyPatch) -> User:
    return User(tmp_path, hub.url, monkeypatch)


# pulling


@pytest.mark.skipif(native_runtime() is Runtime.COREML, reason="the default is another model on a Mac")
def test_pull_records_what_it_got_and_needs_no_network_after(
    hub: HubStandIn, published: Repository, user: User
) -> None:
    with user.start("models", "pull") as process:
        _, said = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, said
    directory = user.store.directory(ENTRY.name)
    assert f"{ENTRY.name} is in {directory}" in said
    assert f"at {published.revision[:12]}, 3.1 MB, licence nvidia-open-model-license" in said
    assert f"next: parakeet-live serve --model {ENTRY.name}" in said
    names = {ENCODER, "decoder_joint.onnx", "tokenizer.json"}
    assert {path.name for path in directory.iterdir()} == names | {LOCK_NAME}
    assert (directory / ENCODER).read_bytes() == published.files[FOLDER + ENCODER]
    assert not any(path.is_symlink() for path in directory.iterdir())

    lock = read_lock(directory)
    assert lock is not None
    assert (lock.repository, lock.endpoint) == (ENTRY.repository, hub.url)
    assert (lock.asked, lock.revision) == ("main", published.revision)
    assert lock.licence == "nvidia-open-model-license"
    assert {file.path: file.sha256 for file in lock.files} == {
        name: hashlib.sha256(published.files[FOLDER + name]).hexdigest() for name in names
    }

    asked = len(hub.requests)
    assert f"{ENTRY.name}: 3 files, 3.1 MB, all ok" in user.run("models", "verify", ENTRY.name)
    assert str(directory) in user.run("models", "info", ENTRY.name, "--path")
    assert published.revision in user.run("models", "info", ENTRY.name)
    assert user.run("models", "info", ENTRY.repository, "--path").strip() == str(directory)
    assert len(hub.requests) == asked


def test_the_hub_library_agrees_that_the_standin_is_a_hub(
    hub: HubStandIn, published: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    path = hf_hub_download(
        ENTRY.repository, f"{FOLDER}{ENCODER}", endpoint=hub.url, cache_dir=tmp_path / "cache", token=False
    )
    assert Path(path).read_bytes() == published.files[FOLDER + ENCODER]
    assert published.revision in path


def test_a_second_pull_asks_only_what_the_revision_is(
    hub: HubStandIn, published: Repository, user: User
) -> None:
    user.run("models", "pull", ENTRY.name)
    user.run("models", "pull", ENTRY.name)
    assert len(hub.bodies(ENCODER)) == 2  # one at the hub, one where that redirects to


def test_a_newer_revision_replaces_the_older_one(hub: HubStandIn, published: Repository, user: User) -> None:
    user.run("models", "pull", ENTRY.name)
    old = published.revision
    published.files[f"{FOLDER}tokenizer.json"] = b'{"a": 2}'
    user.run("models", "pull", ENTRY.name)
    lock = read_lock(user.store.directory(ENTRY.name))
    assert lock is not None
    assert lock.revision == published.revision != old
    assert (user.store.directory(ENTRY.name) / "tokenizer.json").read_bytes() == b'{"a": 2}'
    assert sorted(path.name for path in user.store.root.iterdir()) == [".partial", ENTRY.name]
    assert not [path for path in (user.store.root / ".partial").iterdir() if path.is_dir()]


def test_folders_of_core_ml_packages_come_as_they_are(hub: HubStandIn, user: User) -> None:
    files = {
        f"{part}.mlmodelc/{name}": noise(3000, index)
        for index, part in enumerate(("encoder", "decoder", "joint"))
        for name in ("metadata.json", "model.mil", "weights/weight.bin")
    }
    hub.add(COREML.repository, files | {"vocab.json": b"{}", "config.json": b"{}", "example.wav": b"no"})
    user.run("models", "pull", COREML.name)
    directory = user.store.directory(COREML.name)
    for name, content in files.items():
        assert (directory / name).read_bytes() == content
    assert not (directory / "example.wav").exists()


def test_the_token_stays_at_the_hub(hub: HubStandIn, published: Repository, user: User) -> None:
    published.gated = True
    user.set("HF_TOKEN", published.token)
    user.run("models", "pull", ENTRY.name)
    authorised = {request.origin for request in hub.requests if "authorization" in request.headers}
    assert authorised == {"hub"}
    assert any(request.origin == "cdn" for request in hub.requests)


def test_the_other_storage_of_the_hub_is_not_used(hub: HubStandIn, published: Repository, user: User) -> None:
    user.run("models", "pull", ENTRY.name)
    assert not [request.path for request in hub.requests if "xet" in request.path]


# interruptions


def size_of_partial(store: Store) -> int:
    """Bytes of the encoder that are on disk while it is pulled."""
    return sum(path.stat().st_size for path in (store.root / ".partial").rglob(ENCODER))


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_interrupted_pull_goes_on_where_it_stopped(
    hub: HubStandIn, published: Repository, user: User
) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def wait(path: str, sent: int) -> None:
        if path.endswith(ENCODER) and sent >= 2_000_000 and not go_on.is_set():
            reached.set()
            go_on.wait(TIMEOUT)

    hub.before_piece = wait
    user.set(
        "HF_HUB_DOWNLOAD_TIMEOUT", str(TIMEOUT)
    )  # the signal must come first, however busy the machine is
    with user.start("models", "pull", ENTRY.name) as process:
        assert reached.wait(TIMEOUT)
        wait_until(lambda: size_of_partial(user.store) > 1_000_000)
        process.send_signal(signal.SIGINT)
        _, notes = process.communicate(timeout=TIMEOUT)
    go_on.set()
    assert process.returncode == 130, notes
    assert "what has come is kept" in notes
    assert ENTRY.name not in user.run("models", "list", "--json").split('"here": false')[0]
    have = size_of_partial(user.store)
    assert 1_000_000 < have < 3_000_000

    user.run("models", "pull", ENTRY.name)
    assert hub.bodies(ENCODER)[-1] == f"bytes={have}-"
    path = user.store.directory(ENTRY.name) / ENCODER
    assert path.read_bytes() == published.files[FOLDER + ENCODER]


def test_a_broken_connection_is_taken_up_again(hub: HubStandIn, published: Repository, user: User) -> None:
    hub.cuts[FOLDER + ENCODER] = [1_000_000, 700_000]
    user.run("models", "pull", ENTRY.name)
    starts = [int(asked[6:-1]) if asked else 0 for asked in hub.bodies(ENCODER)]
    assert len(starts) == 6
    assert 0 < starts[2] <= 1_000_000 < starts[4] <= 1_700_000
    assert (user.store.directory(ENTRY.name) / ENCODER).read_bytes() == published.files[FOLDER + ENCODER]


def test_a_server_without_ranges_begins_anew(hub: HubStandIn, published: Repository, user: User) -> None:
    hub.ranges = False
    hub.cuts[FOLDER + ENCODER] = [1_000_000]
    user.run("models", "pull", ENTRY.name)
    assert (user.store.directory(ENTRY.name) / ENCODER).read_bytes() == published.files[FOLDER + ENCODER]


def test_a_server_error_is_tried_again(hub: HubStandIn, published: Repository, user: User) -> None:
    hub.status[FOLDER + ENCODER] = [503]
    user.run("models", "pull", ENTRY.name)
    assert len(hub.bodies(ENCODER)) == 4


def test_leftovers_of_something_else_are_thrown_away(
    hub: HubStandIn, published: Repository, user: User
) -> None:
    partial = user.store.partial(ENTRY.name, published.revision)
    partial.mkdir(parents=True)
    (partial / ENCODER).write_bytes(b"x" * 1000)
    (partial / "tokenizer.json").write_bytes(b"far too long for what it is")
    user.run("models", "pull", ENTRY.name)
    assert "all ok" in user.run("models", "verify", ENTRY.name)


def test_damage_is_found_and_repaired(hub: HubStandIn, published: Repository, user: User) -> None:
    user.run("models", "pull", ENTRY.name)
    directory = user.store.directory(ENTRY.name)
    with (directory / ENCODER).open("r+b") as file:
        file.seek(1000)
        file.write(b"damaged")
    (directory / "tokenizer.json").unlink()
    said = user.refused("models", "verify", ENTRY.name)
    assert f"{directory / ENCODER}: changed (its sha256 differs)" in said
    assert f"{directory / 'tokenizer.json'}: missing" in said
    assert f"repair: parakeet-live models pull {ENTRY.name} --revision {published.revision}" in said
    bodies = len(hub.bodies("decoder_joint.onnx"))
    user.run("models", "pull", ENTRY.name, "--revision", published.revision)
    assert len(hub.bodies("decoder_joint.onnx")) == bodies
    assert "all ok" in user.run("models", "verify")


# refusals


def test_no_network(user: User) -> None:
    user.use("http://127.0.0.1:9")
    said = user.refused("models", "pull", ENTRY.name)
    assert "cannot reach http://127.0.0.1:9" in said
    assert "HF_ENDPOINT" in said


def test_offline_mode(hub: HubStandIn, published: Repository, user: User) -> None:
    user.monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    said = user.refused("models", "pull", ENTRY.name)
    assert "unset HF_HUB_OFFLINE" in said
    assert str(user.store.root) in said
    assert hub.requests == []


def test_a_licence_that_must_be_accepted(hub: HubStandIn, published: Repository, user: User) -> None:
    published.gated = True
    said = user.refused("models", "pull", ENTRY.name)
    assert f"accept its licence first: sign in at {hub.url}/{ENTRY.repository}" in said
    assert "HF_TOKEN" in said


def test_a_checksum_that_differs(hub: HubStandIn, published: Repository, user: User) -> None:
    hub.corrupt.add(FOLDER + ENCODER)
    said = user.refused("models", "pull", ENTRY.name)
    assert f"{FOLDER}{ENCODER} is not what {hub.url} says it is: its checksum differs" in said
    assert user.store.get(ENTRY.name) is None
    hub.corrupt.clear()
    user.run("models", "pull", ENTRY.name)


def test_small_files_are_checked_too(hub: HubStandIn, published: Repository, user: User) -> None:
    hub.corrupt.add(f"{FOLDER}tokenizer.json")
    assert "its checksum differs" in user.refused("models", "pull", ENTRY.name)


def test_what_is_not_there(hub: HubStandIn, published: Repository, user: User) -> None:
    assert "has no repository aufklarer/" in user.refused("models", "pull", COREML.name)
    assert "has no revision 'v7'" in user.refused("models", "pull", ENTRY.name, "--revision", "v7")
    del published.files[FOLDER + ENCODER]
    said = user.refused("models", "pull", ENTRY.name)
    assert "lacks encoder.onnx: the repository was rearranged" in said
    said = user.refused("models", "pull", "eou-120m-onxn")
    assert "did you mean eou-120m-onnx" in said
    assert "ships with the package" in user.refused("models", "pull", "tiny-en")
    assert "eou-120m-nemo is not here yet; get it: parakeet-live models pull" in user.refused(
        "transcribe", "x.wav", "--model", "eou-120m-nemo"
    )


def test_two_pulls_at_the_same_time(hub: HubStandIn, published: Repository, user: User) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def wait(path: str, sent: int) -> None:
        reached.set()
        go_on.wait(TIMEOUT)

    hub.before_piece = wait
    with user.start("models", "pull", ENTRY.name) as process:
        assert reached.wait(TIMEOUT)
        assert "is being pulled by another process" in user.refused("models", "pull", ENTRY.name)
        go_on.set()
        process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is writable for the superuser")
def test_a_directory_that_cannot_be_written(published: Repository, user: User) -> None:
    user.store.root.mkdir()
    user.store.root.chmod(0o500)
    assert f"a directory of yours with {DIRECTORY_VARIABLE}" in user.refused("models", "pull", ENTRY.name)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 20 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only the superuser can make a disk")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_is_too_small(published: Repository, user: User, small_disk: Path) -> None:
    (small_disk / "full").write_bytes(bytes(2_000_000))
    user.set(DIRECTORY_VARIABLE, str(small_disk / "models"))
    said = user.refused("models", "pull", ENTRY.name)
    assert "needs 19 MB, and" in said
    assert DIRECTORY_VARIABLE in said


def test_a_disk_that_fills_up_meanwhile(
    hub: HubStandIn, published: Repository, user: User, small_disk: Path
) -> None:
    filler = small_disk / "filler"

    def fill(path: str, sent: int) -> None:
        if path.endswith(ENCODER) and not filler.exists():
            filler.write_bytes(bytes(shutil.disk_usage(small_disk).free - 1_000_000))

    hub.before_piece = fill
    user.set(DIRECTORY_VARIABLE, str(small_disk / "models"))
    assert f"no space left on the disk of {small_disk / 'models'}" in user.refused(
        "models", "pull", ENTRY.name
    )
    filler.write_bytes(b"")
    user.run("models", "pull", ENTRY.name)
    assert hub.bodies(ENCODER)[-1].startswith("bytes=")


# from the hub to text


@pytest.mark.parametrize("name", ["eou-120m-onnx", "eou-120m-onnx-int8"])
def test_published_files_run_once_pulled(
    name: str, hub: HubStandIn, user: User, look_alikes: LookAlikes
) -> None:
    """Look-alikes of what is published, with the embedded model's weights."""
    entry = find(name)
    files = look_alikes.directory({"eou-120m-onnx": "altunenes", "eou-120m-onnx-int8": "soniqo-onnx"}[name])
    hub.add(entry.repository, files, prefix=f"{entry.folder}/" if entry.folder else "")
    user.run("models", "pull", name)
    facts = json.loads(user.run("models", "info", name, "--json"))
    assert facts["runtime"] == "onnx"
    assert facts["graphs"]["encoder"].endswith("encoder.onnx")
    said = user.run("transcribe", DIGIT)
    assert f"model {name} (published, onnx; the best that is here; --model picks another)" in said
    assert said.splitlines()[-1] == "seven"


def test_published_core_ml_packages_run_once_pulled(
    hub: HubStandIn, user: User, look_alikes: LookAlikes, interpreter: None
) -> None:
    pytest.importorskip("coremltools")
    hub.add(COREML.repository, look_alikes.directory("soniqo"))
    user.run("models", "pull", COREML.name)
    said = user.run("transcribe", DIGIT, "--model", COREML.name)
    assert said.splitlines()[-1] == "seven"
    assert "runs on a Mac with Apple silicon only" in user.run("models", "list", "--json")


# the catalogue, and which model runs


def test_names_are_distinct_and_every_runtime_has_a_default() -> None:
    names = [entry.name for entry in CATALOGUE]
    assert len(set(names)) == len(names)
    assert default_entry(native_runtime("Darwin", "arm64")) is COREML
    assert default_entry(native_runtime("Darwin", "x86_64")) is ENTRY
    assert default_entry(native_runtime("Linux", "aarch64")) is ENTRY


def test_the_list(hub: HubStandIn, published: Repository, user: User) -> None:
    user.run("models", "pull", ENTRY.name)
    listing = json.loads(user.run("models", "list", "--json"))
    assert listing["directory"] == str(user.store.root)
    rows = {row["name"]: row for row in listing["models"]}
    assert set(rows) == {entry.name for entry in CATALOGUE} | {"tiny-en"}
    assert {name for name, row in rows.items() if row["here"]} == {"tiny-en", ENTRY.name}
    assert rows[ENTRY.name]["directory"] == str(user.store.directory(ENTRY.name))
    assert rows[ENTRY.name]["licence"] == "nvidia-open-model-license"
    text = user.run("models", "list")
    assert "* " in text
    assert f"models are kept in {user.store.root}" in text


def put(bundle: Bundle, directory: Path, **changes: object) -> None:
    """Copy a bundle into the store, its manifest changed."""
    shutil.copytree(bundle.directory, directory)
    manifest = json.loads((directory / "manifest.json").read_text())
    (directory / "manifest.json").write_text(json.dumps(manifest | changes))


def test_a_converted_bundle_is_chosen_by_itself(user: User, random_bundle: Bundle) -> None:
    assert choose(candidates(user.store, Runtime.ONNX)).candidate.embedded
    put(embedded_bundle(), user.store.directory("mine"), name="mine")
    put(random_bundle, user.store.directory("noise"))
    (user.store.directory("broken")).mkdir()
    (user.store.directory("broken") / "manifest.json").write_text("{")
    choice = choose(candidates(user.store, Runtime.ONNX))
    assert choice.candidate.name == "mine"
    assert choice.reason == "converted, onnx; the best that is here"
    problems = {candidate.name: candidate.problem for candidate in candidates(user.store, Runtime.ONNX)}
    assert problems["noise"] == "has random weights"
    assert "not a valid manifest" in problems["broken"]
    said = user.run("transcribe", DIGIT)
    assert "model mine (converted, onnx; the best that is here; --model picks another)" in said
    assert "seven" in said
    said = user.run("transcribe", DIGIT, "--model", "tiny-en")
    assert "model tiny-en" in said


def test_nothing_but_the_embedded_model(user: User) -> None:
    said = user.run("transcribe", DIGIT)
    assert "model tiny-en (embedded; no other model is here. `parakeet-live models pull`" in said


def test_a_name_is_no_way_out_of_the_store(user: User) -> None:
    for name in ("../elsewhere", "..", ".partial"):
        assert user.store.get(name) is None


def test_a_lock_file_cannot_point_outside(tmp_path: Path) -> None:
    lock = {
        "name": "x",
        "repository": "a/b",
        "endpoint": "",
        "asked": "main",
        "revision": "0" * 40,
        "licence": "",
        "pulled": "2026-01-01T00:00:00Z",
        "files": [{"path": "../secret", "bytes": 1, "sha256": "0" * 64, "source": "x"}],
    }
    (tmp_path / LOCK_NAME).write_text(json.dumps(lock))
    with pytest.raises(HubError, match="outside of the model's directory"):
        read_lock(tmp_path)
