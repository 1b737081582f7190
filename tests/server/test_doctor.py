"""`parakeet-live doctor`: what it makes of Macs, of Linux machines and containers, of models, of what it measures."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner, Result

from parakeet_live.cli import app
from parakeet_live.demo import SPOKEN
from parakeet_live.doctor.checkup import ONLY_ON_A_MAC, Request, check_up
from parakeet_live.doctor.findings import Finding, Level, Run, run_command
from parakeet_live.doctor.linux import check_linux
from parakeet_live.doctor.mac import check_mac, read_mac
from parakeet_live.doctor.measure import Speed, speed_findings
from parakeet_live.doctor.ports import check_port
from parakeet_live.doctor.report import markdown
from parakeet_live.doctor.software import check_software
from parakeet_live.doctor.verify import Outcome, trials
from parakeet_live.engine.backend import EngineError
from parakeet_models.bundle import Bundle, embedded_bundle
from parakeet_models.hub import DIRECTORY_VARIABLE, Runtime, Store
from parakeet_models.packages import ComputeUnits

DIGIT = Path(__file__).parents[1] / "data" / "audio" / "fsdd_jackson_7_0.flac"
SW_VERS = "ProductName:\t\tmacOS\nProductVersion:\t\t15.1\nBuildVersion:\t\t24B83\n"
MACBOOK = """\
machdep.cpu.brand_string: Apple M2 Pro
hw.model: Mac14,9
hw.memsize: 34359738368
hw.optional.arm64: 1
hw.perflevel0.physicalcpu: 8
hw.perflevel1.physicalcpu: 4
hw.physicalcpu: 12
sysctl.proc_translated: 0
kern.hv_vmm_present: 0
"""
INTEL = """\
machdep.cpu.brand_string: Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz
hw.model: MacBookPro16,1
hw.memsize: 17179869184
hw.physicalcpu: 6
kern.hv_vmm_present: 0
"""
"""sysctl leaves out the names it does not know, and ends with an error."""
VIRTUAL = MACBOOK.replace("Apple M2 Pro", "Apple M1 (Virtual)").replace("vmm_present: 0", "vmm_present: 1")
PMSET = """\
System-wide power settings:
Currently in use:
 standby              1
 Sleep On Power Button 1
 hibernatefile        /var/vm/sleepimage
 powernap             1
 networkoversleep     0
 disksleep            10
 sleep                1
 hibernatemode        3
 ttyskeepawake        1
 displaysleep         10
 tcpkeepalive         1
 lowpowermode         0
 womp                 1
"""
PMSET_SERVER = PMSET.replace(" sleep                1", " sleep                0")
PMSET_AWAKE = PMSET.replace(
    " sleep                1", " sleep                1 (sleep prevented by caffeinate)"
)


def mac(sysctl: str = MACBOOK, sw_vers: str = SW_VERS, pmset: str = PMSET_SERVER) -> Run:
    """The commands of this Mac."""
    outputs = {"sw_vers": sw_vers, "sysctl": sysctl, "pmset": pmset}

    def run(command: Sequence[str]) -> str:
        return outputs[command[0]]

    return run


def by_subject(findings: Sequence[Finding]) -> dict[str, Finding]:
    return {finding.subject: finding for finding in findings}


def doctor(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["doctor", *map(str, arguments)])


# Macs


def test_a_mac_with_apple_silicon() -> None:
    found = by_subject(check_mac(mac()))
    assert found["machine"].value == "Apple M2 Pro (Mac14,9), 8 + 4 cores, 32 GB"
    assert found["system"].value == "macOS 15.1 (24B83)"
    assert found["neural engine"] == Finding("neural engine", "expected; --verify runs on it")
    assert set(found) == {"machine", "system", "neural engine"}


def test_a_mac_with_an_intel_processor() -> None:
    run = mac(INTEL)
    assert not read_mac(run).neural_engine
    found = by_subject(check_mac(run))
    assert found["machine"].value.endswith("(MacBookPro16,1), 6 cores, 16 GB")
    assert "have none" in found["neural engine"].value


def test_macos_in_a_virtual_machine() -> None:
    found = by_subject(check_mac(mac(VIRTUAL)))
    assert "virtual machine" in found["neural engine"].value
    assert found["neural engine"].level is Level.NOTE


def test_older_systems() -> None:
    found = by_subject(check_mac(mac(sw_vers=SW_VERS.replace("15.1", "13.6.1"))))
    assert found["system"].level is Level.WARNING
    assert "need macOS 14" in found["system"].remedy
    assert found["neural engine"].value == "not used below macOS 14"
    found = by_subject(check_mac(mac(sw_vers=SW_VERS.replace("15.1", "14.7"))))
    assert found["system"].level is Level.OK
    assert "packages with states need macOS 15" in found["system"].value


def test_a_python_for_the_wrong_processor() -> None:
    found = by_subject(check_mac(mac(MACBOOK.replace("proc_translated: 0", "proc_translated: 1"))))
    assert found["python"].level is Level.WARNING
    assert "arm64" in found["python"].remedy


def test_sleep_and_low_power() -> None:
    found = by_subject(
        check_mac(mac(pmset=PMSET.replace("lowpowermode         0", "lowpowermode         1")))
    )
    assert "sleeps after 1 minutes" in found["sleep"].value
    assert "pmset -a sleep 0" in found["sleep"].remedy
    assert found["power"].level is Level.WARNING
    assert "sleep" not in by_subject(check_mac(mac(pmset=PMSET_AWAKE)))


def test_a_mac_that_says_nothing() -> None:
    assert by_subject(check_mac(lambda command: ""))["machine"].value.startswith("unknown chip")


def test_commands_that_do_not_exist_say_nothing() -> None:
    assert run_command(["no-such-command-here"]) == ""
    assert run_command(["sh", "-c", "echo said; exit 1"]) == "said\n"


# Linux


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


CPUINFO = "processor\t: 0\nmodel name\t: AMD EPYC 9B14\nflags\t\t: fpu avx2 avx512_vnni\n\nprocessor\t: 1\n"
MACHINE = {
    "proc/cpuinfo": CPUINFO,
    "proc/meminfo": "MemTotal:       16384000 kB\nMemFree:  1 kB\n",
    "etc/os-release": 'NAME="Debian GNU/Linux"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
}


def test_a_linux_machine(tmp_path: Path) -> None:
    found = by_subject(check_linux(write(tmp_path, MACHINE), "6.1.0"))
    assert "AMD EPYC 9B14" in found["machine"].value
    assert found["machine"].value.endswith("with AVX-512 VNNI, 16 GB")
    assert found["system"].value.startswith("Debian GNU/Linux 12 (bookworm), kernel 6.1.0")
    assert "container" not in found


def test_a_container_with_limits(tmp_path: Path) -> None:
    limits = {
        ".dockerenv": "",
        "sys/fs/cgroup/cpu.max": "150000 100000\n",
        "sys/fs/cgroup/memory.max": "2147483648\n",
    }
    found = by_subject(check_linux(write(tmp_path, MACHINE | limits), "6.1.0"))
    assert found["container"].value == "limited to 1.5 cores and 2.0 GB of memory"


@pytest.mark.parametrize("release", ["6.10.14-linuxkit", "6.12.15-orbstack-00304"])
def test_a_container_on_a_mac(tmp_path: Path, release: str) -> None:
    root = write(tmp_path, MACHINE | {".dockerenv": "", "sys/fs/cgroup/cpu.max": "max 100000"})
    warning = check_linux(root, release)[-1]
    assert warning.level is Level.WARNING
    assert "cannot reach the Neural Engine" in warning.value


def test_a_linux_without_files(tmp_path: Path) -> None:
    assert len(check_linux(tmp_path, "6.1.0")) == 3


# libraries and ports


def test_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    found = by_subject(check_software(Runtime.ONNX))
    assert "CPU" in found["onnxruntime"].value
    assert found["coremltools"].level is Level.NOTE
    monkeypatch.setattr("parakeet_live.doctor.software.installed_version", lambda package: None)
    found = by_subject(check_software(Runtime.COREML))
    assert found["coremltools"].level is Level.WARNING
    assert found["coremltools"].remedy == "pip install 'parakeet-live[coreml]'"


def test_ports() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert "in use" in check_port("127.0.0.1", port).value
    assert check_port("127.0.0.1", port) == Finding(f"port {port}", "free on 127.0.0.1")
    assert check_port("192.0.2.1", port).level is Level.WARNING


# speed


def test_the_suggested_pool_keeps_lanes_seven_tenths_busy() -> None:
    # A stream has 6.25 steps of 160 ms a second and 2 lanes run 200: 32 streams fill both, less what serving takes.
    speed = Speed(
        load_seconds=1.0, step_ms=160.0, step_cost_ms=16.0, lanes=2, batch=16, steps_per_second=200.0
    )
    assert speed.real_time_factor == pytest.approx(0.1)
    assert speed.suggested_streams == int(0.7 * 2 / (2 / 32 + 0.005)) == 20
    assert all(finding.level is Level.OK for finding in speed_findings(speed))
    slow = replace(speed, step_cost_ms=200.0)
    assert slow.suggested_streams == 0
    assert Level.PROBLEM in {finding.level for finding in speed_findings(slow)}


# the whole


def test_the_command_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))
    result = doctor("--json", "--seconds", "0.5", "--verify")
    data = json.loads(result.stdout)
    assert result.exit_code == (0 if data["healthy"] else 1), result.output
    assert data["model"] == "tiny-en"
    assert data["speed"]["step_ms"] == pytest.approx(160)
    assert data["speed"]["lanes"] * data["speed"]["batch"] * data["speed"]["steps_per_second"] > 0
    subjects = {finding["subject"] for finding in data["findings"]}
    assert subjects >= {"machine", "system", "onnxruntime", "cores", "models", "runs", "speed", "pool size"}
    live, large = data["verify"]
    assert live["text"] == " / ".join(SPOKEN)
    assert (large["agreement"], large["largest_shift"]) == (1.0, 0)
    assert data["unchecked"] == list(ONLY_ON_A_MAC)


def test_a_report_to_paste(random_bundle: Bundle) -> None:
    result = doctor(
        "--model", random_bundle.directory, "--verify", "--reference", "tiny-en", "--seconds", "0"
    )
    assert result.exit_code == 0, result.output
    report = result.stdout.partition("to paste into an issue:")[2]
    assert "| reference: tiny-en | " in report
    assert "of the tokens as in reference: tiny-en" in report
    assert "Not checked, because it takes a Mac" in report


def test_core_ml_on_every_compute_unit(
    interpreter: None, embedded_packages: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interpreted, where a Mac would compute; the packages are real. The embedded model is their reference."""
    names = [trial.name for trial in trials(embedded_packages)]
    assert names == ["CPU_ONLY", "CPU_AND_GPU", "CPU_AND_NE", "ALL"]
    # Interpreting takes longer than listening, and each way starts a process of its own.
    verify = "parakeet_live.doctor.verify"
    monkeypatch.setattr(f"{verify}.RECORDING", DIGIT)
    monkeypatch.setattr(f"{verify}.COMPUTE_UNITS", (ComputeUnits.CPU_ONLY, ComputeUnits.CPU_AND_NE))
    result = doctor("--json", "--model", embedded_packages.directory, "--verify", "--seconds", "0")
    assert result.exit_code == 0, result.output
    reference, *others = json.loads(result.stdout)["verify"]
    assert reference["name"] == "reference: tiny-en"
    assert reference["text"] == "seven"
    assert [other["name"] for other in others] == ["CPU_ONLY", "CPU_AND_NE"]
    for other in others:
        assert (other["agreement"], other["largest_shift"], other["error"]) == (1.0, 0, "")


def test_core_ml_packages_where_there_is_no_core_ml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> NoReturn:
        raise EngineError("Core ML packages run on macOS only")

    monkeypatch.setattr("parakeet_live.doctor.verify.open_backend", refuse)
    checkup = check_up(Request(seconds=0, verify=True), Store(tmp_path), Runtime.ONNX)
    assert all(outcome.error for outcome in checkup.outcomes)
    assert "does not run: Core ML packages run on macOS only" in checkup.findings[-1].value
    assert "run on macOS only" in "\n".join(markdown(checkup))


def test_reference_needs_verify() -> None:
    result = doctor("--reference", "tiny-en")
    assert result.exit_code == 1
    assert "--reference goes with --verify" in result.stderr


def test_a_damaged_model_is_a_problem(tmp_path: Path) -> None:
    store = Store(tmp_path)
    shutil.copytree(embedded_bundle().directory, store.directory("mine"))
    (store.directory("mine") / "joint.onnx").write_bytes(b"damaged")
    checkup = check_up(Request(seconds=0), store, Runtime.ONNX)
    assert not checkup.healthy
    found = by_subject(checkup.findings)
    assert found["model mine"].level is Level.PROBLEM
    assert "joint.onnx" in found["model mine"].value
    assert found["model"].level is Level.PROBLEM


def test_what_differs_is_said() -> None:
    reference = Outcome("CPU_ONLY", tokens=((5, 1), (6, 4), (7, 9), (8, 12)))
    shifted = Outcome("CPU_AND_NE", tokens=((5, 1), (6, 5), (7, 9), (8, 12)))
    other = Outcome("ALL", tokens=((5, 1), (6, 4), (9, 9), (8, 12)))
    assert (shifted.agreement(reference), shifted.largest_shift(reference)) == (1.0, 1)
    assert (other.agreement(reference), other.largest_shift(reference)) == (0.75, None)
