"""Starts the API of the bench and becomes what calls it: Portbook with a tool of it, or our client alone.

This process becomes the one that is measured, so that its processor time has nothing of the API's.
"""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["TABLE", "main"]

TABLE = """
[http.api]
base_url = "{url}"
[http.api.tools.echo]
description = "Say it again."
method = "GET"
path = "/echo"
input = {{ type = "object", required = ["text"], properties = {{ text = {{ type = "string" }} }} }}
output = {{ type = "object", required = ["text"], properties = {{ text = {{ type = "string" }} }} }}
"""


def main() -> None:
    """Become the command that is named, with the settings of this folder; without one, the client alone."""
    here = Path(__file__).parent
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)  # held by what is measured: the API ends with it
    subprocess.Popen([sys.executable, str(here / "echo_api.py"), str(port)], stdin=reading, stdout=2)
    os.close(reading)
    _wait_for(port)
    url = f"http://127.0.0.1:{port}"
    command = sys.argv[1:] or [sys.executable, str(here / "api_client.py"), url]
    with Path("portbook.toml").open("a") as settings:
        settings.write(TABLE.format(url=url))
    os.execv(command[0], command)


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
