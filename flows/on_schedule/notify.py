"""Tells whoever wants to be told of a failure, of a wait for approval, of a publication.

A hook is a command or an address. It gets one JSON object: the deployment, its run and edition, the event and a
sentence; nothing that was computed from a record. A hook that fails or is slow is said so and never stops a release.
"""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from flows.deployments.language import LOOPBACK, Command, Hook, Url
from flows.on_schedule.claims import Claim

COMMAND_SECONDS, URL_SECONDS = 60.0, 20.0
Tell = Callable[[str], None]


def notify(claim: Claim, event: str, sentence: str, *, run: str | None, tell: Tell) -> None:
    """Tells everyone who wants to know of an event; `tell` hears of hooks that failed."""
    message = {
        "deployment": claim.one.name,
        "run": run,
        "edition": claim.edition,
        "event": event,
        "sentence": sentence,
    }
    data = json.dumps(message).encode()
    for hook in claim.one.hooks(event):
        fault = _told(hook, data, claim.one.file.parent)
        if fault is not None:
            tell(f"{claim.one.name}: a hook for '{event}' {fault}; the release is not concerned")


def _told(hook: Hook, data: bytes, folder: Path) -> str | None:
    """Calls one hook; returns what went wrong."""
    try:
        if isinstance(hook, Command):
            _run(hook, data, folder)
        else:
            _post(hook, data)
    except subprocess.TimeoutExpired:
        return f"took more than {COMMAND_SECONDS:.0f} seconds and was ended"
    except subprocess.CalledProcessError as fault:
        return f"ended with exit code {fault.returncode}"
    except URLError as fault:
        return f"could not be reached ({fault.reason})"
    except (OSError, http.client.HTTPException) as fault:
        return f"failed ({getattr(fault, 'strerror', None) or type(fault).__name__})"
    return None


def _run(hook: Command, data: bytes, folder: Path) -> None:
    """Without a shell, in the folder of the deployments file; what it prints is nobody's."""
    subprocess.run(  # noqa: S603 - the words stand in the deployments file, and no shell reads them
        list(hook.words),
        input=data,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=COMMAND_SECONDS,
        check=True,
    )


def _post(hook: Url, data: bytes) -> None:
    request = Request(hook.address, data, {"Content-Type": "application/json"}, method="POST")  # noqa: S310 - checked as read
    with _opener(hook.address).open(request, timeout=URL_SECONDS) as answer:
        answer.read(1)


class _NoRedirect(HTTPRedirectHandler):
    """What is told to one address is not carried to another."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _opener(address: str) -> OpenerDirector:
    straight = (ProxyHandler({}),) if urlsplit(address).hostname in LOOPBACK else ()
    return build_opener(_NoRedirect, *straight)
