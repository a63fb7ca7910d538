"""The private local server: started once, kept for later runs, closed to everyone else, gone when nobody needs it."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from flows import server
from flows.cli import main
from flows.orchestration import life, served
from flows.orchestration.home import (
    ALIVE,
    LOCK,
    LOG,
    STATE,
    Running,
    began,
    locked,
    read_running,
    server_home,
    write_running,
)
from flows.orchestration.settings import drop_settings
from flows.server import Api, enter, environment, in_use, local_api, running_server, start_early
from flows.terminal import UserError

ROOT = Path(__file__).parents[2]
A_FLOW = """
import json, sys
from prefect import flow, task
import prefect.settings
settings = prefect.settings.get_current_settings()
@task
def double(number: int) -> int:
    return 2 * number
@flow(name=sys.argv[1])
def doubled() -> int:
    return double(21)
told = {"answer": doubled(), "api": settings.api.url, "ephemeral": settings.server.ephemeral.enabled,
        "persist": settings.results.persist_by_default, "analytics": settings.server.analytics_enabled,
        "retries": settings.tasks.default_retries, "home": str(settings.home)}
print(json.dumps(told))
"""
START = """
import sys
from pathlib import Path
from flows.server import local_api
api = local_api(Path(sys.argv[1]), tell=lambda text: None)
print(api.started, api.url)
"""


@pytest.fixture(autouse=True)
def nobody_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server is named in the environment."""
    monkeypatch.delenv("PREFECT_API_URL", raising=False)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is no server."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as asleep:
        yield asleep
        asleep.kill()


def ask(api: Api, path: str, *, auth: str | None, body: dict[str, object] | None = None) -> tuple[int, object]:
    """What the server answers to a request with these credentials."""
    address, _, _ = api.url.removeprefix("http://").partition("/")
    asked = http.client.HTTPConnection(address, timeout=20)
    headers = {"Content-Type": "application/json"}
    if auth is not None:
        headers["Authorization"] = f"Basic {base64.b64encode(auth.encode()).decode()}"
    asked.request("POST", f"/api/{path}", body=json.dumps(body or {}), headers=headers)
    answer = asked.getresponse()
    return answer.status, json.loads(answer.read())


def listening(pid: int) -> set[str]:
    """The addresses, as the kernel writes them, at which a process listens."""
    doors = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{table}").read_text(encoding="utf-8").splitlines()[1:]
    ]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in doors}


def wait_until(done: Callable[[], bool], seconds: float = 30) -> bool:
    """Whether something comes true in time."""
    until = time.monotonic() + seconds
    while not done() and time.monotonic() < until:
        time.sleep(0.1)
    return done()


def as_running(pid: int, prefect: str) -> Running:
    """A process, described as if it were our server."""
    return Running(pid, began(pid) or 0, 9, prefect, "margrave:x")


def test_a_flow_in_another_process_reports_to_the_server(
    prefect_api: Api, flow_environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "prefect.toml").write_text("[server.ephemeral]\nenabled = true\n[results]\npersist_by_default = true\n")
    done = subprocess.run(
        [sys.executable, "-c", A_FLOW, "doubled-twice"],
        env=flow_environment,
        cwd=tmp_path,
        capture_output=True,
        check=False,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "answer": 42,
        "api": prefect_api.url,
        "ephemeral": False,
        "persist": False,
        "analytics": False,
        "retries": 0,
        "home": str(prefect_api.home / "prefect"),
    }
    assert done.stderr == ""
    wanted = {"flows": {"name": {"any_": ["doubled-twice"]}}}
    status, runs = ask(prefect_api, "flow_runs/filter", auth=prefect_api.auth, body=wanted)
    assert (status, [run["state_type"] for run in runs]) == (200, ["COMPLETED"])


def test_a_second_command_finds_the_server_that_runs(prefect_api: Api) -> None:
    told: list[str] = []
    again = local_api(prefect_api.home, tell=told.append)
    assert (again.url, again.auth, again.started, told) == (prefect_api.url, prefect_api.auth, False, [])
    assert start_early(prefect_api.home).wait(told.append) == again


def test_only_who_knows_the_credentials_is_let_in(prefect_api: Api) -> None:
    assert ask(prefect_api, "flow_runs/count", auth=prefect_api.auth)[0] == 200
    assert ask(prefect_api, "flow_runs/count", auth=None)[0] == 401
    assert ask(prefect_api, "flow_runs/count", auth="margrave:guess")[0] == 401
    assert prefect_api.auth is not None
    assert prefect_api.auth not in repr(prefect_api) + repr(read_running(prefect_api.home))


def test_the_server_listens_on_loopback_alone(prefect_api: Api) -> None:
    running = read_running(prefect_api.home)
    assert running is not None
    assert listening(running.pid) == {"0100007F"}


def test_nobody_else_can_read_what_the_server_keeps(prefect_api: Api) -> None:
    kept = [path for path in prefect_api.home.rglob("*") if "storage" not in path.parts]  # that is where flows write
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in kept}
    assert {STATE, LOG, LOCK, ALIVE, "prefect.db"} <= modes.keys()
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}
    assert stat.S_IMODE(prefect_api.home.stat().st_mode) == 0o700


def test_the_verb_tells_of_the_server_and_never_its_credentials(
    prefect_api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    for deed, state in (("start", "running"), ("status", "running")):
        assert main(["server", deed, "--json", "--home", str(prefect_api.home)]) == 0
        told = capsys.readouterr().out
        assert json.loads(told)["server"] == state
        assert json.loads(told)["url"] == prefect_api.url
        assert prefect_api.auth is not None
        assert prefect_api.auth not in told


def test_four_commands_at_once_start_one_server_and_stop_ends_it(
    tmp_path: Path, furnish: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home with spaces?"
    furnish(home)
    environ = dict(os.environ) | {"PYTHONPATH": str(ROOT)}
    drop_settings(environ)
    command = [sys.executable, "-c", START, str(home)]
    commands = [subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    told = [asked.communicate(timeout=150)[0].split() for asked in commands]
    assert sorted(started for started, _ in told) == ["False", "False", "False", "True"]
    assert len({url for _, url in told}) == 1
    running = running_server(home)
    assert running is not None
    assert main(["server", "stop", "--home", str(home)]) == 0
    assert began(running.pid) is None
    assert not (home / STATE).exists()
    capsys.readouterr()
    assert main(["server", "status", "--home", str(home)]) == 1
    assert main(["server", "stop", "--home", str(home)]) == 0
    assert capsys.readouterr().out.count("No local Prefect server") == 2


def test_a_stale_word_is_replaced_and_a_server_ends_itself_only_when_idle(
    tmp_path: Path,
    furnish: Callable[[Path], None],
    sleeper: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = server_home(tmp_path / "home")
    furnish(home)
    write_running(home, Running(sleeper.pid, began(sleeper.pid) - 1, 9, version("prefect"), "margrave:x"))
    told: list[str] = []
    api = start_early(home, idle=2).wait(told.append)
    assert api.started
    assert "Waiting for the local Prefect server" in told[0]
    assert sleeper.poll() is None  # its id was reused: it is not ours to end
    running = read_running(home)
    assert running is not None
    monkeypatch.setattr(server, "HEARTBEAT", 0.2)
    with in_use(api):
        time.sleep(4)
        assert running_server(home) == running
    assert wait_until(lambda: began(running.pid) is None), (home / LOG).read_text()
    assert not (home / STATE).exists()


@pytest.mark.parametrize("prefect", ["0.0.1", version("prefect")])
def test_a_server_of_another_version_or_that_does_not_answer_is_ended(
    prefect: str, tmp_path: Path, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = server_home(tmp_path / "home")
    write_running(home, as_running(sleeper.pid, prefect))
    os.utime(home / STATE, (1, 1))
    monkeypatch.setattr(server, "ANSWER", 0.5)
    assert server._usable(home) is None
    assert sleeper.wait(5) == -signal.SIGTERM
    assert not (home / STATE).exists()


def test_what_a_dead_process_or_a_torn_file_says_is_not_believed(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    home = server_home(tmp_path / "home")
    running = as_running(sleeper.pid, "1")
    write_running(home, running)
    assert read_running(home) == running
    assert stat.S_IMODE((home / STATE).stat().st_mode) == 0o600
    (home / STATE).write_text((home / STATE).read_text()[:-9])
    assert read_running(home) is None
    write_running(home, running)
    sleeper.kill()
    assert wait_until(lambda: read_running(home) is None)


def test_a_server_that_cannot_start_is_told_with_its_log(tmp_path: Path) -> None:
    home = server_home(tmp_path / "home")
    (home / "prefect").write_text("in the way")
    told: list[str] = []
    with pytest.raises(UserError, match=r"ended as it started \(exit code 1\); see .*server\.log"):
        local_api(home, tell=told.append)
    assert told == ["Starting the local Prefect server, which makes its database the first time ..."]
    with pytest.raises(UserError, match="ended as it started"):
        start_early(home).wait(told.append)


def test_a_server_that_is_too_slow_to_answer_is_ended_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = server_home(tmp_path / "home")
    monkeypatch.setattr(life, "START", 0.5)
    with pytest.raises(UserError, match=r"did not answer within 0 seconds; see .*server\.log"):
        local_api(home, tell=lambda text: None)
    assert read_running(home) is None
    with locked(home / ALIVE, 0):
        assert not (home / STATE).exists()


def test_two_servers_never_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = server_home(tmp_path / "home")
    monkeypatch.setattr(served, "OTHERS_END", 0.1)
    before = os.umask(0o077)
    with locked(home / ALIVE, 1):
        assert served.main(home, 60) == served.OCCUPIED
    os.umask(before)
    with subprocess.Popen([sys.executable, "-c", f"raise SystemExit({served.OCCUPIED})"]) as child:
        child.wait()
        assert "a server that nobody knows of still runs in" in str(life._unstarted(home, child))


def test_a_lock_that_is_held_for_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = server_home(tmp_path / "home")
    monkeypatch.setattr(server, "START", 0.0)
    monkeypatch.setattr(server, "END", 0.1)
    with locked(home / LOCK, 1), pytest.raises(UserError, match="a command has been starting or stopping the server"):
        local_api(home, tell=lambda text: None)


def test_a_named_server_is_used_and_none_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://prefect.example/api")
    api = local_api(tmp_path / "home", tell=lambda text: None)
    assert (api.url, api.auth, api.started) == ("http://prefect.example/api", None, False)
    assert not (tmp_path / "home" / STATE).exists()
    settings = environment(api)
    assert settings["PREFECT_API_URL"] == "http://prefect.example/api"
    assert settings["PREFECT_SERVER_EPHEMERAL_ENABLED"] == "false"
    assert not {"PREFECT_HOME", "PREFECT_API_AUTH_STRING"} & settings.keys()  # the office's own stand
    assert main(["server", "start", "--home", str(tmp_path / "home")]) == 2
    assert "names a server, http://prefect.example/api: runs use it" in capsys.readouterr().err


def test_of_other_settings_none_outlives_the_private_server(tmp_path: Path) -> None:
    environ = {"PREFECT_API_KEY": "k", "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "true", "HOME": "h"}
    enter(Api("http://127.0.0.1:1/api", "margrave:x", started=False, home=tmp_path), environ)
    assert "PREFECT_API_KEY" not in environ
    assert environ["PREFECT_RESULTS_PERSIST_BY_DEFAULT"] == "false"
    assert environ["HOME"] == "h"


def test_a_proxy_never_hears_the_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "intranet.example")
    monkeypatch.delenv("no_proxy", raising=False)
    settings = environment(Api("http://127.0.0.1:1/api", "margrave:x", started=False, home=tmp_path))
    assert settings["no_proxy"] == settings["NO_PROXY"] == "intranet.example,127.0.0.1,localhost"


def test_settings_that_come_too_late_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prefect", sys)
    with pytest.raises(RuntimeError, match="Prefect is already imported"):
        enter(Api("http://127.0.0.1:1/api", "margrave:x", started=False, home=tmp_path))


def test_the_folder_is_ours_alone_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(server_home(tmp_path / "closed"))
    (tmp_path / "file").touch()
    for name, words in (("open", "has mode 0755"), ("link", "not a folder"), ("file", "File exists")):
        with pytest.raises(UserError, match=words):
            server_home(tmp_path / name)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(UserError, match="belongs to somebody else"):
        server_home(tmp_path / "closed")


def test_the_folder_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("MARGRAVE_SERVER_HOME", raising=False)
    assert server_home() == tmp_path / "state" / "margrave" / "server"
    monkeypatch.setenv("MARGRAVE_SERVER_HOME", str(tmp_path / "named"))
    assert server_home() == tmp_path / "named"
    assert stat.S_IMODE((tmp_path / "named").stat().st_mode) == 0o700


@pytest.mark.parametrize("words", [["restart"], ["start", "--idle", "never"], ["start", "--idle", "0"]])
def test_a_deed_or_a_time_that_makes_no_sense_is_refused(words: list[str], tmp_path: Path) -> None:
    assert main(["server", *words, "--home", str(tmp_path / "home")]) == 2
    assert not (tmp_path / "home").exists()
