"""Sandboxes against code that wants out: a real container engine, real namespaces. A kind that is missing here is skipped."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.errors import ConfigError, MemArenaError, SetupError
from harness.sandbox.base import (
    ChannelClosed,
    ChannelTimeout,
    Completed,
    Image,
    Mount,
    Plan,
    Sandbox,
    SandboxError,
    SandboxLimits,
)
from harness.sandbox.docker import DockerSandbox
from harness.sandbox.files import copy_regular
from harness.sandbox.kinds import sandbox_kind

IMAGE = Image("memarena/sandbox-test:1", Path(__file__).parent / "image")
LIMITS = SandboxLimits(memory_mib=300, processes=40, scratch_mib=32, output_bytes=100_000)
OWNER = f"tests-{os.getpid()}"  # tests may run side by side
CONFINED = ("docker", "bubblewrap")


def open_kind(kind: str, workspace: Path, limits: SandboxLimits = LIMITS) -> Sandbox:
    made = sandbox_kind(kind)
    if problems := made.check(IMAGE):
        pytest.skip(f"no {kind} here: {problems[0].what}")
    target = str(workspace) if kind == "process" else "/workspace"
    try:
        return made.start(Plan(IMAGE, (Mount(workspace, target, writable=True),), limits, owner=OWNER))
    except SetupError as error:
        pytest.skip(f"no image here: {error}")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    folder.chmod(0o777)
    # pytest's folders are closed to others, and the code in the sandbox is somebody else
    for parent in list(folder.parents)[:3]:
        parent.chmod(0o755)
    return folder


@pytest.fixture(params=["docker", "bubblewrap", "process"])
def sandbox(request: pytest.FixtureRequest, workspace: Path) -> Iterator[Sandbox]:
    with open_kind(request.param, workspace) as opened:
        yield opened


@pytest.fixture(params=CONFINED)
def confined(request: pytest.FixtureRequest, workspace: Path) -> Iterator[Sandbox]:
    with open_kind(request.param, workspace) as opened:
        yield opened


def python(sandbox: Sandbox, code: str, timeout: float = 10, **options: str) -> Completed:
    return sandbox.run(["python3", "-c", textwrap.dedent(code)], timeout=timeout, **options)  # type: ignore[arg-type]


class TestEveryKind:
    def test_output_exit_code_and_input(self, sandbox: Sandbox) -> None:
        done = python(
            sandbox, "import sys; print(len(sys.stdin.read())); print('é', file=sys.stderr); sys.exit(3)", stdin="y" * 300_000
        )
        assert (done.stdout, done.stderr, done.exit, done.timed_out) == ("300000\n", "é\n", 3, False)

    def test_output_beyond_the_bound_is_dropped_and_said(self, sandbox: Sandbox) -> None:
        done = python(sandbox, "print('x' * 1_000_000)")
        assert done.truncated and len(done.stdout) == LIMITS.output_bytes and done.ok

    def test_an_endless_loop_ends_at_its_limit_and_the_next_command_runs(self, sandbox: Sandbox) -> None:
        start = time.monotonic()
        done = python(sandbox, "while True: pass", timeout=1)
        assert done.timed_out and done.exit is None and time.monotonic() - start < 8
        assert python(sandbox, "print(1)").stdout == "1\n"

    def test_a_time_out_kills_the_whole_tree(self, sandbox: Sandbox, workspace: Path) -> None:
        target = str(workspace) if sandbox.kind == "process" else "/workspace"
        done = python(
            sandbox,
            f"""
            import os, time
            if os.fork() == 0:
                while True:
                    open({target!r} + '/alive', 'w').write(str(time.time()))
                    time.sleep(0.05)
            time.sleep(60)
            """,
            timeout=1,
        )
        assert done.timed_out
        time.sleep(0.5)
        before = (workspace / "alive").read_text()
        time.sleep(0.5)
        assert (workspace / "alive").read_text() == before

    def test_a_memory_bomb_is_stopped(self, sandbox: Sandbox) -> None:
        done = python(sandbox, "a = bytearray(900 << 20); print(len(a))")
        assert not done.ok and "943718400" not in done.stdout
        assert python(sandbox, "print(1)").stdout == "1\n"

    def test_a_channel_keeps_its_state_and_a_late_answer_kills_it(self, sandbox: Sandbox) -> None:
        command = ["python3", "-u", "-c", "d = {}\nd['d'] = d\nwhile True: print(eval(input(), d))"]
        channel = sandbox.channel(command)
        assert channel.ask("d.update(x=41) or d['x']", timeout=10) == "41"
        assert channel.ask("x + 1", timeout=10) == "42"
        assert channel.ask("__import__('os').getpid() > 0", timeout=10) == "True"
        with pytest.raises(ChannelTimeout):
            channel.ask("__import__('time').sleep(60)", timeout=1)
        again = sandbox.channel(command)
        assert again.ask("6 * 7", timeout=10) == "42"
        with pytest.raises(ChannelClosed):
            again.ask("exit(3)", timeout=10)

    def test_keys_in_our_environment_are_not_seen_inside(self, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
        assert "secret-key" not in python(sandbox, "import os; print(dict(os.environ))").stdout


class TestEscapes:
    """What docker and bubblewrap must stop, and process must not be trusted with."""

    def test_no_network(self, confined: Sandbox) -> None:
        done = python(confined, "import socket; socket.create_connection(('127.0.0.1', 9), 2)")
        outside = python(
            confined,
            "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('10.1.2.3', 53)); print('out')",
        )
        assert not done.ok and not outside.ok

    @pytest.mark.parametrize("path", ["/usr/x", "/etc/passwd", "/x", "/lib/x"])
    def test_nothing_outside_can_be_written(self, confined: Sandbox, path: str) -> None:
        assert not python(confined, f"open({path!r}, 'a').write('x')").ok

    def test_other_files_of_this_machine_cannot_be_read(self, confined: Sandbox, tmp_path: Path) -> None:
        (tmp_path / "gold.txt").write_text("the gold answer")
        (tmp_path / "gold.txt").chmod(0o644)
        assert "gold answer" not in python(confined, f"print(open({str(tmp_path / 'gold.txt')!r}).read())").stdout

    def test_a_fork_bomb_is_bounded_and_the_next_command_runs(self, confined: Sandbox) -> None:
        done = python(confined, "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", timeout=2)
        assert done.timed_out
        assert python(confined, "print(1)").stdout == "1\n"

    def test_our_process_is_neither_seen_nor_killed(self, confined: Sandbox) -> None:
        done = python(confined, f"import os; os.kill({os.getpid()}, 9)")
        assert not done.ok
        python(confined, "import os\nfor pid in range(2, 5000):\n    try: os.kill(pid, 9)\n    except OSError: pass")
        assert python(confined, "print(1)").stdout == "1\n"

    def test_the_scratch_space_is_bounded(self, confined: Sandbox) -> None:
        assert not python(confined, "open('/tmp/big', 'wb').write(bytes(200 << 20))").ok

    def test_no_privileges(self, confined: Sandbox) -> None:
        done = python(confined, "import os; print(os.getuid(), [l for l in open('/proc/self/status') if l.startswith('CapEff')])")
        assert done.stdout.startswith("65534") and "0000000000000000" in done.stdout


class TestFiles:
    def test_only_regular_files_are_taken_from_a_workspace(self, tmp_path: Path) -> None:
        gold, source = tmp_path / "gold", tmp_path / "w"
        gold.write_text("gold")
        (source / "sub").mkdir(parents=True)
        (source / "sub" / "a.txt").write_text("a")
        (source / "link").symlink_to(gold)
        (source / "folder").symlink_to("/etc")
        os.link(gold, source / "hard")
        os.mkfifo(source / "pipe")
        (source / "big").write_bytes(bytes(2000))
        assert copy_regular(source, tmp_path / "copy", largest=1000) == ["big", "folder", "hard", "link", "pipe"]
        assert [str(p.relative_to(tmp_path / "copy")) for p in sorted((tmp_path / "copy").rglob("*"))] == ["sub", "sub/a.txt"]

    @pytest.mark.parametrize("name", ["v", "longer" * 10])
    def test_what_code_nests_too_deep_is_left_out_and_is_no_full_disk(self, tmp_path: Path, name: str) -> None:
        source, target, folder = tmp_path / "w", tmp_path / name, "d" * 200
        source.mkdir()
        (source / "a.txt").write_text("a")
        code = f"import os\nfor _ in range(60): os.mkdir({folder!r}); os.chdir({folder!r})"
        subprocess.run([sys.executable, "-c", code], cwd=source, check=True)
        try:
            (path,) = copy_regular(source, target)
            assert path.endswith(folder)
            assert (target / "a.txt").read_text() == "a"
        finally:
            subprocess.run(["rm", "-rf", str(source), str(target)], check=True)

    def test_files_of_holes_do_not_fill_the_disk(self, tmp_path: Path) -> None:
        source = tmp_path / "w"
        source.mkdir()
        for name in ("a", "b", "c"):
            with (source / name).open("wb") as file:
                file.truncate(4000)
        (source / "small").write_text("x")
        assert copy_regular(source, tmp_path / "copy", altogether=9000) == ["c"]

    def test_folders_are_counted_like_files(self, tmp_path: Path) -> None:
        for number in range(5):
            (tmp_path / "w" / str(number)).mkdir(parents=True)
        assert copy_regular(tmp_path / "w", tmp_path / "copy", most=3) == ["3", "4"]


class TestAnEngineThatIsGone:
    def test_every_call_says_so_in_a_typed_error(self, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import docker
        from requests.exceptions import ConnectionError as Gone

        with open_kind("docker", workspace) as sandbox:
            assert isinstance(sandbox, DockerSandbox)
            with monkeypatch.context() as patch:
                patch.setattr(docker.APIClient, "send", _raise(Gone("no such socket")))
                for call in (lambda: sandbox.run(["true"], timeout=5), lambda: sandbox.channel(["cat"]), sandbox._kill_all):
                    with pytest.raises(SandboxError, match="no such socket"):
                        call()
                with pytest.raises(SandboxError, match="cannot be started"):
                    DockerSandbox(sandbox._client, Plan(IMAGE, (), LIMITS, owner=OWNER))
                sandbox.close()  # removes nothing, and raises nothing
        assert not docker.from_env().containers.list(all=True, filters={"label": f"memarena.owner={OWNER}"})

    def test_it_is_a_problem_for_the_doctor(self, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import docker
        from requests.exceptions import ReadTimeout

        kind = sandbox_kind("docker")
        if kind.check(IMAGE):
            pytest.skip("no docker here")
        monkeypatch.setattr(docker.APIClient, "send", _raise(ReadTimeout("asleep")))
        (problem,) = kind.check(IMAGE)
        assert "does not answer" in problem.what and "DOCKER_HOST" in problem.fix


def _raise(error: Exception) -> Callable[..., object]:
    def call(*arguments: object, **options: object) -> object:
        raise error

    return call


class TestOrphans:
    def test_a_container_of_a_killed_process_is_removed_by_the_next_one(self, workspace: Path) -> None:
        open_kind("docker", workspace).close()
        code = f"""
            import os
            from pathlib import Path
            from tests.harness.sandbox.test_sandbox import IMAGE, LIMITS
            from harness.sandbox.base import Plan
            from harness.sandbox.docker import Docker
            sandbox = Docker().start(Plan(IMAGE, (), LIMITS, owner="orphan-{os.getpid()}"))
            print(sandbox._container.id, flush=True)
            os.kill(os.getpid(), 9)
        """
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
        identity = done.stdout.strip()
        import docker

        client = docker.from_env()
        assert client.containers.get(identity).status == "running"
        open_kind("docker", workspace).close()
        with pytest.raises(docker.errors.NotFound):
            client.containers.get(identity)

    def test_a_closed_sandbox_leaves_no_container(self, workspace: Path) -> None:
        with open_kind("docker", workspace):
            import docker

            client = docker.from_env()
            assert client.containers.list(all=True, filters={"label": f"memarena.owner={OWNER}"})
        assert not client.containers.list(all=True, filters={"label": f"memarena.owner={OWNER}"})


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(ConfigError, match="Did you mean docker"):
        sandbox_kind("dokcer")


def test_process_cannot_show_a_folder_under_another_name(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="sandbox=process cannot show"):
        sandbox_kind("process").start(Plan(IMAGE, (Mount(tmp_path, "/workspace"),)))


def test_no_engine_is_a_problem_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    (problem,) = sandbox_kind("docker").check(IMAGE)
    assert "No container engine answers" in problem.what and "sandbox=bubblewrap" in problem.fix
    with pytest.raises(MemArenaError):
        sandbox_kind("docker").start(Plan(IMAGE))
