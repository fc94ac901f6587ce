"""The driver worker: a process of its own that looks at one card, again and again.

A call into a driver can hang for ever, and nothing but the end of its process ends it. So no call
is made in berthd itself. The worker paces itself and pushes what it sees; berthd tells it to look
faster or slower, and kills it when it has been silent for too long (`probes/core.py`).
"""

import signal
from multiprocessing.connection import Connection

from berth.parentage import die_with_parent
from berth.probes.source import CardSpec, Source, open_source
from berth.readings import Look, Unknown, Unmeasured
from berth.units import Seconds


def watch_card(spec: CardSpec, pipe: "Connection[Look, float]", pace: float) -> None:
    """Look at a card until the pipe is closed: every `pace` seconds, or as told over the pipe.

    Runs as a spawned process. A pace that arrives is followed at once by a look.
    """
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source: Source | None = None
    wait = Seconds(pace)
    while True:
        source, look = _look(source, spec)
        try:
            pipe.send(look)
            if pipe.poll(wait):
                wait = Seconds(pipe.recv())
        except (EOFError, OSError):
            return


def _look(source: Source | None, spec: CardSpec) -> tuple[Source | None, Look]:
    """Look once. Whatever a driver throws is a card that could not be read, and is opened anew."""
    try:
        opened = source or open_source(spec)
        return opened, opened.read()
    except Exception as error:  # noqa: BLE001 -- a driver may break in any way
        return None, Unmeasured(Unknown.FAILED, f"{type(error).__name__}: {error}")
