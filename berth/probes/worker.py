"""The driver worker: a process of its own that looks at one card, again and again.

A call into a driver can hang for ever, and nothing but the end of its process ends it. So no call
is made in berthd itself. The worker paces itself and pushes what it sees; berthd tells it to look
faster or slower, and kills it when it has been silent for too long (`probes/core.py`).
"""

import signal
from multiprocessing.connection import Connection

from berth.parentage import die_with_parent
from berth.probes.source import CardSpec, Pace, Sight, Source, open_source
from berth.readings import Unknown, Unmeasured


def watch_card(spec: CardSpec, pipe: "Connection[Sight, Pace]", pace: Pace) -> None:
    """Look at a card until the pipe is closed: at that pace, or as told over the pipe.

    Runs as a spawned process. A pace that arrives is followed at once by a look.
    """
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source: Source | None = None
    while True:
        source, sight = _look(source, spec, wake=pace.wake)
        try:
            pipe.send(sight)
            if pipe.poll(pace.every):
                pace = pipe.recv()
        except (EOFError, OSError):
            return


def _look(source: Source | None, spec: CardSpec, *, wake: bool) -> tuple[Source | None, Sight]:
    """Look once. Whatever a driver throws is a card that could not be read, and is opened anew."""
    try:
        opened = source or open_source(spec)
        look = opened.read(wake=wake)
        return opened, Sight(look, opened.take_xids(), opened.stale_library)
    except Exception as error:  # noqa: BLE001 -- a driver may break in any way
        return None, Sight(Unmeasured(Unknown.FAILED, f"{type(error).__name__}: {error}"))
