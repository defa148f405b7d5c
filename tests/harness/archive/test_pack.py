"""`memarena pack` and `unpack`: complete, deterministic, without secrets; and a pack that is not what it says is refused."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.archive.packing import pack
from harness.archive.replaying import replay
from harness.archive.secrets import Redactor
from harness.archive.unpacking import unpack
from harness.cli import main
from harness.errors import RunBusyError, UserError
from harness.store import canonical
from harness.store.database import Store
from harness.store.events import EventLog, read_events
from harness.store.identity import digest
from tests.support.build import played, scripted

KEY = "sk-proj-" + "Zq8" * 12  # made up; the shape of a key
PASSWORD = "correct.horse.battery"
RECORD = {"replay": {"mode": "record"}}


def unpacked_text(file: Path) -> bytes:
    with zipfile.ZipFile(file) as archive:
        return b"\n".join(archive.read(name) for name in archive.namelist())


def log(directory: Path, **content: Any) -> None:
    with EventLog(directory / "events.jsonl") as events:
        events.append("note", content)


class TestPacking:
    def test_what_was_packed_comes_back_and_replays(self, recorded: Path, tmp_path: Path) -> None:
        made = pack([recorded], tmp_path / "a.zip")
        found = unpack(tmp_path / "a.zip", tmp_path / "to")
        assert found == {"file": str(tmp_path / "a.zip"), "digest": made["digest"], "runs": [str(tmp_path / "to" / "r")]}
        assert canonical.digest(tmp_path / "to" / "r") == canonical.digest(recorded)
        assert (tmp_path / "to/r/events.jsonl").read_bytes() == (recorded / "events.jsonl").read_bytes()
        assert replay(tmp_path / "to" / "r")[0]["identical"]
        assert replay(tmp_path / "a.zip")[0]["identical"]

    def test_the_same_runs_make_the_same_bytes_also_after_a_journey(self, recorded: Path, tmp_path: Path) -> None:
        other = played(tmp_path / "runs", run={**RECORD, "name": "other"})
        first = pack([recorded, other], tmp_path / "a.zip")
        second = pack([other, recorded], tmp_path / "b.zip")
        assert first["sha256"] == second["sha256"]
        unpack(tmp_path / "a.zip", tmp_path / "to")
        third = pack([tmp_path / "to" / "r", tmp_path / "to" / "other"], tmp_path / "c.zip")
        assert third["sha256"] == first["sha256"]

    def test_only_the_recordings_that_a_replay_needs_are_packed(self, recorded: Path, tmp_path: Path) -> None:
        with sqlite3.connect(recorded / "recordings.sqlite") as db:
            db.execute("INSERT INTO recording VALUES ('orphan', 0, 'm', 'of an aborted attempt', NULL, '{}', '{}', NULL)")
        pack([recorded], tmp_path / "a.zip")
        assert b"of an aborted attempt" not in unpacked_text(tmp_path / "a.zip")

    def test_a_run_without_recordings_is_packed_and_said(self, tmp_path: Path) -> None:
        found = pack([played(tmp_path)], tmp_path / "a.zip")
        assert found["notes"][0].endswith("can be read but not replayed (run.replay.mode=record makes them)")
        with pytest.raises(UserError, match="was not recorded"):
            replay(tmp_path / "a.zip")

    def test_nothing_is_overwritten(self, recorded: Path, tmp_path: Path) -> None:
        pack([recorded], tmp_path / "a.zip")
        before = (tmp_path / "a.zip").read_bytes()
        with pytest.raises(UserError, match=r"a\.zip exists"):
            pack([recorded], tmp_path / "a.zip")
        assert (tmp_path / "a.zip").read_bytes() == before
        with pytest.raises(UserError, match="r exists"):
            unpack(tmp_path / "a.zip", recorded.parent)
        assert sorted(path.name for path in recorded.parent.iterdir()) == ["r"]

    def test_two_runs_of_one_name_are_told_apart(self, tmp_path: Path) -> None:
        runs = [played(tmp_path / "a", run={"name": "x"}), played(tmp_path / "b", run={"name": "x", "seed": 1})]
        names = [run["name"] for run in pack(runs, tmp_path / "p.zip")["runs"]]
        assert len(set(names)) == 2 and all(name.startswith("x-") for name in names)
        with pytest.raises(UserError, match="The run x is named twice"):
            pack([runs[0], runs[0]], tmp_path / "q.zip")

    def test_a_run_in_play_is_refused(self, recorded: Path, tmp_path: Path) -> None:
        with Store(recorded), pytest.raises(RunBusyError, match="Another process is playing"):
            pack([recorded], tmp_path / "a.zip")
        assert list(tmp_path.glob("*.zip")) == []

    def test_the_command_says_what_it_made(self, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file = str(tmp_path / "a.zip")
        assert main(["pack", "r", "--root", str(recorded.parent), "-o", file, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["sha256"] == hashlib.sha256(Path(file).read_bytes()).hexdigest()
        assert main(["unpack", file, "--to", str(tmp_path / "to")]) == 0
        assert f"{file}: verified, 1 run\n  {tmp_path / 'to' / 'r'}\n" == capsys.readouterr().out


class TestSecrets:
    def test_planted_secrets_are_masked_and_the_replay_does_not_mind(
        self, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "plain-looking.value")
        monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
        with EventLog(recorded / "events.jsonl") as events:
            offset = events.offset
        log(
            recorded,
            headers={"Authorization": "Bearer abcdefghij0123456789xyz"},
            said=[f"with {PASSWORD}"],
            key="plain-looking.value",
        )
        log(recorded, url="http://admin:pa55wd@shop.example/x", error=f"wrong key {KEY}", place=f"{recorded.parent}/r/x")
        with sqlite3.connect(recorded / "stream.sqlite") as db:
            db.execute("UPDATE attempt SET error = ? WHERE position = 0", (f"401 for {KEY}",))
            db.execute("UPDATE run SET value = ? WHERE key = 'events_offset'", (str((recorded / "events.jsonl").stat().st_size),))
        content = json.loads((recorded / "manifest.json").read_text())
        content["environment"]["provenance"]["note"] = f"from {Path.cwd()} with {PASSWORD}"
        (recorded / "manifest.json").write_text(json.dumps(content))
        pack([recorded], tmp_path / "a.zip")
        text = unpacked_text(tmp_path / "a.zip")
        for secret in (
            KEY,
            PASSWORD,
            "plain-looking.value",
            "pa55wd",
            "abcdefghij0123456789",
            str(Path.cwd()),
            str(recorded.parent),
        ):
            assert secret.encode() not in text, secret
        unpack(tmp_path / "a.zip", tmp_path / "to")
        notes = [event for event in read_events(tmp_path / "to/r/events.jsonl") if event["event"] == "note"]
        assert notes[0] == {
            "event": "note",
            "headers": {"Authorization": "[removed: Authorization]"},
            "said": ["with [removed: SHOP_PASSWORD]"],
            "key": "[removed: OPENAI_API_KEY]",
        }
        assert notes[1]["url"] == "http://[removed: a password in an address]@shop.example/x"
        assert notes[1]["place"] == "<runs>/r/x"
        # the log and the database fit together again: nothing of it is taken for an aborted attempt
        with sqlite3.connect(tmp_path / "to/r/stream.sqlite") as db:
            (moved,) = db.execute("SELECT value FROM run WHERE key = 'events_offset'").fetchone()
        assert int(moved) == (tmp_path / "to/r/events.jsonl").stat().st_size > offset
        assert replay(tmp_path / "a.zip")[0]["identical"]

    def test_a_field_is_known_by_its_name_whatever_stands_in_it(self, recorded: Path, tmp_path: Path) -> None:
        log(
            recorded,
            request={"x-api-key": "hunter2", "cookie": "a=b", "max_tokens": "7", "key": "actor"},
            text="curl -H 'Authorization: Bearer 0123456789abcdefghij'",
        )
        pack([recorded], tmp_path / "a.zip")
        unpack(tmp_path / "a.zip", tmp_path / "to")
        (note,) = (event for event in read_events(tmp_path / "to/r/events.jsonl") if event["event"] == "note")
        assert note["request"] == {
            "x-api-key": "[removed: x-api-key]",
            "cookie": "[removed: cookie]",
            "max_tokens": "7",
            "key": "actor",
        }
        assert note["text"] == "curl -H 'Authorization: Bearer [removed: a key in a header]'"

    @pytest.mark.parametrize("lookalikes", [False, True])
    def test_a_secret_in_a_recorded_reply_refuses_the_pack(self, tmp_path: Path, lookalikes: bool) -> None:
        directory = played(tmp_path, models=scripted("replies", replies=[f"my key is {KEY}"]), run={**RECORD, "name": "leak"})
        if lookalikes:
            assert pack([directory], tmp_path / "a.zip", lookalikes=True)["runs"]
            return
        with pytest.raises(
            UserError, match=r"cannot be packed: .* holds text that looks like a key\..*--allow-lookalikes"
        ) as caught:
            pack([directory], tmp_path / "a.zip")
        assert KEY not in str(caught.value)
        assert list(tmp_path.glob("*.zip")) == []

    def test_the_value_of_a_key_is_refused_even_where_lookalikes_are_allowed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        directory = played(tmp_path, models=scripted("replies", replies=[f"it is {PASSWORD}"]), run={**RECORD, "name": "leak"})
        monkeypatch.setenv("MY_API_KEY", PASSWORD)
        with pytest.raises(UserError, match=r"holds the value of MY_API_KEY"):
            pack([directory], tmp_path / "a.zip", lookalikes=True)

    @pytest.mark.parametrize(("name", "value"), [("token", "hunter2"), ("anything", KEY)])
    def test_a_secret_in_the_configuration_is_refused_with_its_place(self, tmp_path: Path, name: str, value: str) -> None:
        models = scripted()
        models["endpoints"]["main"]["extra_body"] = {name: value}
        directory = played(tmp_path, models=models, run={"name": "leak"})
        with pytest.raises(UserError, match=rf"manifest\.json, cell\.models\.endpoints\.main\.extra_body\.{name} holds"):
            pack([directory], tmp_path / "a.zip")

    def test_a_secret_that_json_escapes_is_found_too(
        self, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        secret = 'pass"word\\ü'
        monkeypatch.setenv("MY_PASSWORD", secret)
        log(recorded, said=f"<{secret}>")
        pack([recorded], tmp_path / "a.zip")
        unpack(tmp_path / "a.zip", tmp_path / "to")
        (note,) = (event for event in read_events(tmp_path / "to/r/events.jsonl") if event["event"] == "note")
        assert note["said"] == "<[removed: MY_PASSWORD]>"

    @pytest.mark.parametrize("spelt", [1, 2])
    def test_a_secret_within_json_refuses_what_the_replay_needs(
        self, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelt: int
    ) -> None:
        text = secret = 'pass"word\\ü\nand more'
        monkeypatch.setenv("MY_PASSWORD", secret)
        for _ in range(spelt):
            text = json.dumps(text)
        db = sqlite3.connect(recorded / "stream.sqlite")
        with db:
            db.execute("UPDATE task SET metrics = ? WHERE position = 0", (text,))
        db.close()
        with pytest.raises(UserError, match=r"task\.metrics, row 1 .* holds the value of MY_PASSWORD\."):
            pack([recorded], tmp_path / "a.zip")

    def test_a_passphrase_of_letters_is_a_secret(self) -> None:
        redactor = Redactor.of_this_machine([], environ={"MY_PASSWORD": "correcthorsebattery", "HOME": "/"})
        assert redactor.masked("say correcthorsebattery") == "say [removed: MY_PASSWORD]"

    def test_ordinary_text_stays(self) -> None:
        redactor = Redactor.of_this_machine([], environ={"AUTH_MODE": "disabled", "TOKEN_LIMIT": "40000000", "HOME": "/"})
        for text in (
            "disabled",
            "40000000",
            "a / b",
            "press red: key 3",
            "http://host:8080/path?a=b@c",
            "sk-learn is a library",
            "task-management-system-of-the-shop",
        ):
            assert redactor.masked(text) == text


class TestTampering:
    @pytest.fixture
    def made(self, recorded: Path, tmp_path: Path) -> Path:
        pack([recorded], tmp_path / "a.zip")
        return tmp_path / "a.zip"

    def refused(self, file: Path, match: str) -> None:
        to = file.parent / "to"
        with pytest.raises(UserError, match=match):
            unpack(file, to)
        assert not to.exists()

    @pytest.mark.parametrize(
        "member", ["runs/r/stream.sqlite", "runs/r/events.jsonl", "runs/r/manifest.json", "runs/r/recordings.sqlite"]
    )
    def test_a_changed_file_is_named(self, made: Path, member: str) -> None:
        def spoil(name: str, data: bytes) -> bytes:
            return data[:-9] + b"x" + data[-8:] if name == member else data

        self.refused(rewritten(made, spoil), rf"is refused: {member} was changed: its sha256 is another than listed")

    def test_bytes_changed_in_place(self, made: Path) -> None:
        data = bytearray(made.read_bytes())
        with zipfile.ZipFile(made) as archive:
            info = archive.getinfo("runs/r/events.jsonl")
        data[info.header_offset + 200] ^= 0xFF
        made.write_bytes(data)
        self.refused(made, r"refused: runs/r/events\.jsonl (is damaged|was changed)")

    def test_a_file_that_was_cut_off(self, made: Path) -> None:
        made.write_bytes(made.read_bytes()[:-400])
        self.refused(made, "is no pack, cut off or damaged")

    def test_no_zip_at_all(self, tmp_path: Path) -> None:
        (tmp_path / "x.zip").write_text("hello")
        self.refused(tmp_path / "x.zip", "is no pack")
        with pytest.raises(UserError, match="There is no file"):
            unpack(tmp_path / "nowhere.zip", tmp_path / "to")

    def test_an_unknown_schema_version(self, made: Path) -> None:
        self.refused(reindexed(made, lambda index: index.update(schema_version=2)), "schema version 2, this version reads 1")

    def test_a_list_that_was_changed(self, made: Path) -> None:
        self.refused(
            reindexed(made, lambda index: index["runs"][0].update(identity="0" * 64)), "its digest is not that of its list"
        )

    @pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../b", "a\\..\\b", "", "."])
    def test_a_name_that_leads_out_of_the_folder(self, made: Path, name: str) -> None:
        def lead_out(index: dict[str, Any]) -> None:
            index["runs"][0]["name"] = name
            index["digest"] = digest(index["runs"])

        self.refused(reindexed(made, lead_out), "which is no place below a folder")

    def test_a_member_that_is_not_listed(self, made: Path) -> None:
        with zipfile.ZipFile(made, "a") as archive:
            archive.writestr("../../evil", "x")
        self.refused(made, r"\.\./\.\./evil is not in its list")

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    def test_a_member_that_is_there_twice(self, made: Path) -> None:
        with zipfile.ZipFile(made, "a") as archive:
            archive.writestr("runs/r/manifest.json", archive.read("runs/r/manifest.json"))
        self.refused(made, r"runs/r/manifest\.json is there twice")

    def test_a_bomb(self, made: Path) -> None:
        zeros = bytes(32 << 20)

        def swell(name: str, data: bytes) -> bytes:
            return zeros if name.endswith("events.jsonl") else data

        def list_it(index: dict[str, Any]) -> None:
            index["runs"][0]["files"]["events.jsonl"] = {"bytes": len(zeros), "sha256": hashlib.sha256(zeros).hexdigest()}
            index["digest"] = digest(index["runs"])

        self.refused(reindexed(rewritten(made, swell), list_it), r"events\.jsonl swells from \d+ to 33554432 bytes")

    def test_results_of_another_cell(self, made: Path, tmp_path: Path) -> None:
        other = played(tmp_path / "o", run={**RECORD, "name": "r", "seed": 1})
        pack([other], tmp_path / "o.zip")
        with zipfile.ZipFile(tmp_path / "o.zip") as archive:
            data = archive.read("runs/r/stream.sqlite")

        def list_it(index: dict[str, Any]) -> None:
            index["runs"][0]["files"]["stream.sqlite"] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            index["digest"] = digest(index["runs"])

        mixed = reindexed(rewritten(made, lambda name, old: data if name.endswith("stream.sqlite") else old), list_it)
        self.refused(mixed, "stream.sqlite holds the results of another cell")

    def test_a_tampered_pack_is_not_replayed(self, made: Path, capsys: pytest.CaptureFixture[str]) -> None:
        spoilt = rewritten(made, lambda name, data: data + b"\n" if name.endswith("events.jsonl") else data)
        assert main(["replay", str(spoilt)]) == 2
        assert "runs/r/events.jsonl has" in capsys.readouterr().err


def rewritten(file: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """The pack with its members changed and its list as it was."""
    fresh = file.with_name("fresh.zip")
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    shutil.move(fresh, file)
    return file


def reindexed(file: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    def apply(name: str, data: bytes) -> bytes:
        if name != "pack.json":
            return data
        index = json.loads(data)
        change(index)
        return json.dumps(index).encode()

    return rewritten(file, apply)
