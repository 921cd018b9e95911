"""What a confined program may always read: itself, its interpreter, and what every program needs to run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

__all__ = ["ALWAYS_WRITABLE", "always_readable"]

ALWAYS_READABLE: Final = (
    # the loader and its libraries
    *("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/local/lib"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives"),
    # certificates, and what TLS libraries read
    # (not their folders as a whole: private keys lie beside them)
    *("/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/ca-certificates"),
    *("/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf", "/etc/pki/ca-trust"),
    *("/etc/crypto-policies", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates"),
    # names and times
    *("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf"),
    *("/etc/services", "/etc/protocols", "/etc/localtime", "/usr/share/zoneinfo", "/usr/share/locale"),
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"),
)
ALWAYS_WRITABLE: Final = ("/dev/null", "/dev/full")

# Variables that name files with certificates.
_CA_VARIABLES: Final = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
)
_PARTS_OF_A_PREFIX: Final = ("bin", "sbin", "lib", "lib64", "libexec")
_MAX_INTERPRETERS: Final = 4
_SHEBANG_BYTES: Final = 256


def always_readable(command: Sequence[str], environ: Mapping[str, str], folder: Path) -> tuple[str, ...]:
    """Return the paths that `command`, started in `folder`, may read whatever the settings say.

    Those that do not exist are left out.
    """
    named = (*ALWAYS_READABLE, *(environ.get(name, "") for name in _CA_VARIABLES))
    found = dict.fromkeys(path for path in named if path and Path(path).exists())
    # A virtual environment has programs that the Python it was made with has not.
    installed = (path for path in _of_program(command[0], environ, folder) if path.exists())
    found.update(dict.fromkeys(map(str, installed)))
    found.update(dict.fromkeys(str(path) for path in _named_files(command[1:], folder)))
    return tuple(found)


def _of_program(name: str, environ: Mapping[str, str], folder: Path) -> Iterator[Path]:
    """Yield where a program is installed, and the interpreters that its first line names."""
    for _ in range(_MAX_INTERPRETERS):
        path = _found(name, environ, folder)
        if path is None:
            return
        for step in _steps(path):
            yield from _installation(step)
        interpreter = _interpreter(path)
        if interpreter is None:
            return
        name = interpreter


def _found(name: str, environ: Mapping[str, str], folder: Path) -> Path | None:
    if os.sep in name:
        path = folder / name
        return path if path.is_file() else None
    found = shutil.which(name, path=environ.get("PATH", os.defpath))
    return None if found is None else Path(found)


def _steps(path: Path) -> Iterator[Path]:
    """Yield a path and what each of its links leads to: `node` may be one to another installation."""
    seen: set[Path] = set()
    while path not in seen:
        seen.add(path)
        yield path
        if path.is_symlink():
            path = Path(os.path.normpath(path.parent / path.readlink()))
        elif path.parent.resolve() != path.parent:
            path = path.resolve()


def _installation(path: Path) -> Iterator[Path]:
    """Yield the prefix of a program in a `bin` folder, and of the one that made a virtual environment."""
    yield path
    if path.parent.name not in ("bin", "sbin"):
        return
    prefix = path.parent.parent
    if _is_too_wide(prefix):
        yield from (prefix / part for part in _PARTS_OF_A_PREFIX if (prefix / part).is_dir())
    else:
        yield prefix
    try:
        lines = (prefix / "pyvenv.cfg").read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        key, _, value = line.partition("=")
        home = Path(value.strip())
        if key.strip() == "home" and home.is_dir():
            yield from _installation(home / path.name)


def _is_too_wide(prefix: Path) -> bool:
    """Return whether a person's own files lie below a prefix: those of `/bin`, `~/bin` and `~/.local/bin`."""
    home = Path.home()
    return prefix in (home, home / ".local") or prefix in home.parents


def _interpreter(path: Path) -> str | None:
    """Return the program that the first line of a script names, if it is one."""
    try:
        with path.open("rb") as file:
            first = file.read(_SHEBANG_BYTES).split(b"\n", 1)[0]
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    words = first[2:].decode("utf-8", "replace").split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else None


def _named_files(arguments: Sequence[str], folder: Path) -> Iterator[Path]:
    """Yield the files that a command names: its script. Folders are data, and need to be granted."""
    for argument in arguments:
        path = folder / argument
        try:
            is_file = path.is_file()
        except (OSError, ValueError):
            continue
        if is_file:
            yield path
