"""Runs the command line of Portbook without the bounds on the time of a batch and of a turn.

For callgrind, which takes fifty times as long: what is a batch otherwise would be one call there.
"""

from portbook.cli.main import cli
from portbook.doors import ndjson
from portbook.doors.http.server import held_replies, turns

if __name__ == "__main__":
    vars(ndjson)["_BATCH_S"] = 60.0
    vars(held_replies)["_MOST_S"] = 60.0
    vars(turns)["_TURN_S"] = 60.0
    cli()
