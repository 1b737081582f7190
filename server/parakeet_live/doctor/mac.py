"""What a Mac says about itself. Everything is read from the output of ``sw_vers``, ``sysctl`` and ``pmset``."""

from __future__ import annotations

from dataclasses import dataclass

from parakeet_live.doctor.findings import Finding, Level, Run

MINIMUM_MACOS = 14
"""First one that runs the packages with explicit caches."""
STATE_MACOS = 15
"""First one that runs packages with states (MLState) or several functions."""
SYSCTL_NAMES = (
    "machdep.cpu.brand_string",
    "hw.model",
    "hw.memsize",
    "hw.optional.arm64",
    "hw.perflevel0.physicalcpu",
    "hw.perflevel1.physicalcpu",
    "hw.physicalcpu",
    "sysctl.proc_translated",
    "kern.hv_vmm_present",
)


@dataclass(frozen=True, slots=True)
class Mac:
    """A Mac: ``chip`` as Apple calls it, cores by kind (on Intel processors all are ``fast_cores``)."""

    version: str
    build: str
    model: str
    chip: str
    memory_bytes: int
    fast_cores: int
    efficient_cores: int
    apple_silicon: bool
    translated: bool
    """This process runs under Rosetta."""
    virtual: bool
    """macOS runs in a virtual machine, which has no Neural Engine."""

    @property
    def major(self) -> int:
        number = self.version.partition(".")[0]
        return int(number) if number.isdigit() else 0

    @property
    def neural_engine(self) -> bool:
        """Whether Core ML can be expected to use one."""
        return self.apple_silicon and not self.virtual and self.major >= MINIMUM_MACOS


def read_mac(run: Run) -> Mac:
    """Ask the system. Names that this Mac does not know count as absent."""
    versions = _pairs(run(["sw_vers"]))
    facts = _pairs(run(["sysctl", *SYSCTL_NAMES]))

    def number(name: str) -> int:
        value = facts.get(name, "")
        return int(value) if value.isdigit() else 0

    chip = facts.get("machdep.cpu.brand_string", "")
    efficient = number("hw.perflevel1.physicalcpu")
    return Mac(
        version=versions.get("ProductVersion", ""),
        build=versions.get("BuildVersion", ""),
        model=facts.get("hw.model", ""),
        chip=chip,
        memory_bytes=number("hw.memsize"),
        fast_cores=number("hw.perflevel0.physicalcpu") or number("hw.physicalcpu"),
        efficient_cores=efficient,
        apple_silicon=number("hw.optional.arm64") == 1 or chip.startswith("Apple"),
        translated=number("sysctl.proc_translated") == 1,
        virtual=number("kern.hv_vmm_present") == 1,
    )


def check_mac(run: Run) -> list[Finding]:
    """The machine, its Neural Engine, and its way of going to sleep."""
    mac = read_mac(run)
    cores = (
        f"{mac.fast_cores} + {mac.efficient_cores} cores"
        if mac.efficient_cores
        else f"{mac.fast_cores} cores"
    )
    machine = f"{mac.chip or 'unknown chip'} ({mac.model}), {cores}, {mac.memory_bytes / 2**30:.0f} GB"
    findings = [Finding("machine", machine), _system(mac), _engine(mac)]
    if mac.translated:
        findings.append(
            Finding(
                "python",
                "made for Intel processors, translated by Rosetta",
                Level.WARNING,
                "install a Python for Apple silicon (arm64) and parakeet-live with it: several times faster",
            )
        )
    return findings + _power(_settings(run(["pmset", "-g"])))


def _system(mac: Mac) -> Finding:
    value = f"macOS {mac.version} ({mac.build})"
    if mac.major < MINIMUM_MACOS:
        return Finding(
            "system",
            value,
            Level.WARNING,
            f"Core ML packages need macOS {MINIMUM_MACOS}; ONNX bundles run here",
        )
    if mac.major < STATE_MACOS:
        value += f"; packages with states need macOS {STATE_MACOS}, those with explicit caches run"
    return Finding("system", value)


def _engine(mac: Mac) -> Finding:
    subject = "neural engine"
    if mac.neural_engine:
        return Finding(subject, "expected; --verify runs on it")
    if not mac.apple_silicon:
        return Finding(
            subject, "none: Macs with Intel processors have none; ONNX bundles run here", Level.NOTE
        )
    if mac.virtual:
        return Finding(subject, "none: macOS runs in a virtual machine, which cannot reach it", Level.NOTE)
    return Finding(subject, f"not used below macOS {MINIMUM_MACOS}", Level.NOTE)


def _power(settings: dict[str, str]) -> list[Finding]:
    findings = []
    sleep = settings.get("sleep", "0").split()[0]
    if sleep != "0" and "prevented" not in settings.get("sleep", ""):
        findings.append(
            Finding(
                "sleep",
                f"this Mac sleeps after {sleep} minutes without input, and streams break off",
                Level.NOTE,
                "for a server: sudo pmset -a sleep 0, or run it under caffeinate -s (docs/mac.md)",
            )
        )
    if settings.get("lowpowermode") == "1":
        findings.append(
            Finding("power", "low power mode is on", Level.WARNING, "turn it off: it slows recognition down")
        )
    return findings


def _pairs(text: str) -> dict[str, str]:
    """Lines of ``name: value``."""
    lines = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, separator, value in lines if separator}


def _settings(text: str) -> dict[str, str]:
    """Indented lines of ``name value`` and perhaps a remark, of ``pmset -g``."""
    words = (line.split(maxsplit=1) for line in text.splitlines() if line.startswith(" "))
    return {pair[0]: pair[1] for pair in words if len(pair) == 2}
