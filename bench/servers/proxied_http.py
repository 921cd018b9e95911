"""A proxy that checks nothing, in front of the bare HTTP server: what one more hop costs.

This process becomes the proxy, so that its processor time is the proxy's alone.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["main"]

_TRAEFIK = """
[http.routers.all]
rule = "PathPrefix(`/`)"
service = "stub"
[[http.services.stub.loadBalancer.servers]]
url = "http://127.0.0.1:{port}"
"""


def main() -> None:
    """Start the stub and become the proxy: `caddy` or `traefik`, and the port to listen on."""
    name, port = sys.argv[1], sys.argv[2]
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        behind = str(found.getsockname()[1])
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)  # held by the proxy: the stub ends with it
    stub = [sys.executable, str(Path(__file__).with_name("bare_http.py")), behind, "--behind"]
    subprocess.Popen(stub, stdin=reading)
    os.close(reading)
    _wait_for(int(behind))
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    program = shutil.which(name)
    assert program is not None
    if name == "caddy":
        options = ["reverse-proxy", "--from", f"http://127.0.0.1:{port}", "--to", f"127.0.0.1:{behind}"]
    else:
        Path("routes.toml").write_text(_TRAEFIK.format(port=behind))
        options = [f"--entrypoints.web.address=127.0.0.1:{port}", "--providers.file.filename=routes.toml"]
    os.execv(program, [program, *options])


def _wait_for(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=10).close()
        except OSError:
            time.sleep(0.01)
        else:
            return


if __name__ == "__main__":
    main()
