"""mcp-hangar in front of a command, its tools under their own names; runs in an environment of its own."""

import json
import os
import sys
from pathlib import Path

if __name__ == "__main__":
    # YAML holds JSON. Without a principal it serves nothing under the tools' own names.
    settings = {
        "mcp_servers": {"fast": {"mode": "subprocess", "command": sys.argv[1:]}},
        "tool_access": {"mode": "front_door"},
        "rate_limit": {"rps": 1_000_000, "burst": 1_000_000},
        "auth": {"stdio": {"principal": {"id": "bench", "tenant_id": "bench", "roles": ["viewer"]}}},
    }
    Path("config.yaml").write_text(json.dumps(settings))
    program = str(Path(sys.executable).with_name("mcp-hangar"))
    os.execv(program, [program, "--config", "config.yaml", "serve", "--log-level", "ERROR"])
