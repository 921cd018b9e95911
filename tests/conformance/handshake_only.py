"""Makes a server of the handshake era, in one revision, from a server that speaks them all.

`python handshake_only.py REVISION COMMAND…`: between standard input and output and those of the command. What
came after the handshake era is answered as servers of that time do, and `initialize` asks for the revision.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import IO


def forward(lines: IO[bytes], to: IO[bytes]) -> None:
    for line in lines:
        to.write(line)
        to.flush()


def main(revision: str, *command: str) -> int:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        answers = threading.Thread(target=forward, args=(server.stdout, sys.stdout.buffer))
        answers.start()
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if message.get("method") == "server/discover":
                error = {"code": -32601, "message": "Method not found"}
                answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error})
                sys.stdout.buffer.write(answer.encode() + b"\n")
                sys.stdout.buffer.flush()
                continue
            if message.get("method") == "initialize":
                message["params"]["protocolVersion"] = revision
                line = json.dumps(message).encode() + b"\n"  # noqa: PLW2901 - it is another one now
            server.stdin.write(line)
            server.stdin.flush()
        server.stdin.close()
        answers.join()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
