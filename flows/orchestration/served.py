"""The server's own process: Prefect's API on loopback, with credentials of its own, until nobody needs it.

`python -m flows.orchestration.served HOME IDLE` is started by `flows.server` with HOME as its working folder. It takes
the place of a server that is about to end, says who it is, and ends itself after IDLE seconds in which nobody asked for
it: neither a request, nor a command or a running flow that touched `last_used`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from flows.orchestration.home import ALIVE, LOCK, PREFECT, Running, began, forget, last_touched, locked, write_running
from flows.orchestration.settings import drop_settings, server_settings

OTHERS_END, LOCK_WAIT = 30.0, 60.0
OCCUPIED = 75
"""The exit code when another server still lives in the folder."""
Asgi = Callable[[Any, Any, Any], Awaitable[None]]


def main(home: Path, idle: float) -> int:
    """Serves until a signal or idleness ends it."""
    os.umask(0o077)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(home / ALIVE, OTHERS_END))
        except TimeoutError:
            return OCCUPIED
        _serve(home, idle)
    return 0


def _serve(home: Path, idle: float) -> None:
    (home / PREFECT).mkdir(exist_ok=True)
    auth = f"margrave:{secrets.token_urlsafe(32)}"
    with socket.create_server(("127.0.0.1", 0)) as door:
        itself = Running(os.getpid(), began(os.getpid()) or 0, door.getsockname()[1], version("prefect"), auth)
        write_running(home, itself)
        drop_settings(os.environ)
        os.environ.update(server_settings(home, auth))
        _run(door, Watch(home, idle))


def _run(door: socket.socket, watch: Watch) -> None:
    import uvicorn
    from prefect.server.api.server import create_app

    config = uvicorn.Config(
        watch.over(create_app()),
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    threading.Thread(target=watch.until_idle, args=(server,), daemon=True).start()
    server.run(sockets=[door])


class Watch:
    """Notes when the server was last asked for, and ends it when that is long ago."""

    def __init__(self, home: Path, idle: float) -> None:
        self._home, self._idle = home, idle
        self._asked = time.time()

    def over(self, app: Asgi) -> Asgi:
        """The same application, each request to it noted; a look at its health is no use of it."""

        async def noted(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "lifespan" and scope["path"] not in ("/api/health", "/api/admin/version"):
                self._asked = time.time()
            await app(scope, receive, send)

        return noted

    def until_idle(self, server: Any) -> None:
        """Waits until nobody needs the server, then ends it. Decided under the lock: no command counts on it."""
        while not server.should_exit:
            time.sleep(min(self._idle / 4, 15.0))
            if not server.started:
                self._asked = time.time()  # whoever started it is still waiting
            elif self._is_idle():
                self._end(server)

    def _is_idle(self) -> bool:
        return time.time() - max(self._asked, last_touched(self._home)) > self._idle

    def _end(self, server: Any) -> None:
        try:
            with locked(self._home / LOCK, LOCK_WAIT):
                if self._is_idle():
                    forget(self._home)
                    server.should_exit = True
        except TimeoutError:
            return  # somebody is starting or stopping a server all this time: asked again soon
        except OSError:
            server.should_exit = True  # the folder is gone, and with it everyone who could find this server


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), float(sys.argv[2])))
