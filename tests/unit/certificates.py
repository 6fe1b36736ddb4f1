"""Certificates for tests of TLS on the loopback."""

from __future__ import annotations

import subprocess
from pathlib import Path

__all__ = ["make_certificate"]


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a certificate of 127.0.0.1 that signs itself; return it and its key, ``name.pem`` and ``name.key``."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    kind = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    whose = ["-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*kind, *whose, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key
