"""What this machine has of Google's emulator: one that runs already, one that can be started, or what is missing."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

HOST_VARIABLE = "FIRESTORE_EMULATOR_HOST"
JAR_VARIABLE = "OUTBOX_OFFICIAL_EMULATOR_JAR"

_IN_SDK = Path("platform/cloud-firestore-emulator/cloud-firestore-emulator.jar")
_INSTALL_JAR = (
    "the jar: gcloud components install cloud-firestore-emulator"
    " (Debian: apt-get install google-cloud-cli-firestore-emulator),"
    f" or firebase setup:emulators:firestore, or set {JAR_VARIABLE} to its path"
)
_INSTALL_JAVA = "Java: a JRE, 11 or newer (Debian: apt-get install default-jre-headless), on PATH or in JAVA_HOME"


@dataclass(frozen=True, kw_only=True)
class Running:
    """An emulator that another process started and will stop."""

    host: str


@dataclass(frozen=True, kw_only=True)
class Installed:
    """All that is needed to start one."""

    jar: Path
    java: Path


@dataclass(frozen=True, kw_only=True)
class Missing:
    """Why Google's emulator cannot be started here. As text: the places, and what to install."""

    jar: Path | None
    java: Path | None
    jar_places: tuple[str, ...]
    java_places: tuple[str, ...]

    def __str__(self) -> str:
        lacks = [name for name, found in (("its jar", self.jar), ("Java", self.java)) if found is None]
        lines = [f"Google's Firestore emulator cannot be started: {' and '.join(lacks)} not found."]
        for name, found, places in (
            ("its jar", self.jar, self.jar_places),
            ("Java", self.java, self.java_places),
        ):
            lines += [f"{name}: {found}"] if found else [f"{name}, looked for at:", *(f"  - {p}" for p in places)]
        lines += [f"To install {_INSTALL_JAR}"] if self.jar is None else []
        lines += [f"To install {_INSTALL_JAVA}"] if self.java is None else []
        return "\n".join(lines)


class EmulatorMissing(Exception):
    """There is nothing to start. `missing` says what, and where it was looked for."""

    def __init__(self, missing: Missing) -> None:
        super().__init__(str(missing))
        self.missing = missing


def find(environ: Mapping[str, str] = os.environ) -> Running | Installed | Missing:
    """What this machine has, the emulator that runs already first."""
    if host := environ.get(HOST_VARIABLE):
        return Running(host=host)
    return find_installed(environ)


def find_installed(environ: Mapping[str, str] = os.environ) -> Installed | Missing:
    """The jar and the Java to start it with."""
    jar, jar_places = _first_file(_jar_places(environ))
    java, java_places = _first_file(_java_places(environ))
    if jar is None or java is None:
        return Missing(jar=jar, java=java, jar_places=jar_places, java_places=java_places)
    return Installed(jar=jar, java=java)


def _first_file(places: Iterator[tuple[str, Path | None]]) -> tuple[Path | None, tuple[str, ...]]:
    """The first place that holds a file, and all that were looked at. Later places are not even worked out."""
    looked_at = []
    for description, path in places:
        looked_at.append(description)
        if path is not None and path.is_file():
            return path, tuple(looked_at)
    return None, tuple(looked_at)


def _jar_places(environ: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    if named := environ.get(JAR_VARIABLE):
        yield f"{JAR_VARIABLE}={named}: no such file", Path(named)
        return  # a user who names a jar does not want another one
    yield f"{JAR_VARIABLE}: not set", None
    yield from _gcloud_places(environ)
    cache = environ.get("FIREBASE_EMULATORS_PATH")
    folder = Path(cache) if cache else _home(environ) / ".cache/firebase/emulators"
    jars = sorted(folder.glob("cloud-firestore-emulator-*.jar"), key=_version)
    yield f"{folder}/cloud-firestore-emulator-*.jar (firebase-tools): none", jars[-1] if jars else None


def _gcloud_places(environ: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    gcloud = shutil.which("gcloud", path=environ.get("PATH", ""))
    if gcloud is None:
        yield "the Google Cloud SDK: no gcloud on PATH", None
        return
    beside = Path(gcloud).resolve().parent.parent / _IN_SDK
    yield f"{beside} (beside {gcloud}): no such file", beside
    # Asking takes gcloud a second; some packages put a wrapper on PATH, and then only gcloud knows.
    try:
        answer = subprocess.run(
            [gcloud, "info", "--format=value(installation.sdk_root)"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        yield f"gcloud info: {error}", None
        return
    told = Path(answer.stdout.strip()) / _IN_SDK
    yield f"{told} (the root that gcloud info tells): no such file", told


def _java_places(environ: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    if java_home := environ.get("JAVA_HOME"):
        path = Path(java_home) / "bin/java"
        yield f"{path} (JAVA_HOME): no such file", path
    else:
        yield "JAVA_HOME: not set", None
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    yield "PATH: no java", Path(on_path) if on_path else None


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or Path.home())


def _version(jar: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", jar.name))
