"""Runs the command line of Portbook without bounds on time: of a batch, of a turn, between looks at files.

For callgrind, which takes fifty times as long, and longer on a busy machine: what is a batch otherwise would
be one call there, and what happens once a millisecond or once a second would happen every few calls. What
counts single steps takes longer still, and says how much in `SLOWER`.
"""

import os

from portbook.audit import journal
from portbook.cli.main import cli
from portbook.doors import ndjson
from portbook.doors.http.server import connection_limits_deadlines_and_overload as overload
from portbook.doors.http.server import response_writer as replies_until_recorded
from portbook.doors.http.server.connection_limits_deadlines_and_overload import Deadlines
from portbook.net import http_connection
from portbook.stages import recorder

_SLOWER = float(os.environ.get("SLOWER", "50"))


def main() -> None:
    """Run the command line."""
    vars(ndjson)["_BATCH_S"] = 3600.0
    vars(journal)["_LOOK_S"] = 3600.0
    vars(replies_until_recorded)["_MOST_S"] = 60.0
    vars(overload)["_TURN_S"] = 60.0
    vars(http_connection)["_IDLE_S"] = 3600.0
    begin = Deadlines.__init__
    begin.__defaults__ = (*(begin.__defaults__ or ())[:-1], 3600.0)  # the last is `sweep_s`
    vars(recorder)["_MOMENT_S"] = 3600.0
    vars(recorder)["_US_PER_S"] /= _SLOWER  # most calls take less than a millisecond
    cli()


if __name__ == "__main__":
    main()
