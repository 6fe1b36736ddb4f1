"""Bytes made to hurt the receiver: a complaint at most, never an exception, in bounded memory and time."""

from __future__ import annotations

import asyncio
import io
import random
import resource
import socket
import struct
import time
import tracemalloc
import zlib
from contextlib import suppress

import msgpack
import numpy as np
import pytest
from unit.fleet_samples import SECOND, Served, conversation, served
from unit.sink_samples import sample_alert
from unit.test_recording_hostile import EVIL

import tracer.fleet.connection
import tracer.fleet.node
import tracer.fleet.receiver
from tracer.alerts.record import alert_record
from tracer.fleet.connection import Connection
from tracer.fleet.deadman import silence
from tracer.fleet.receiver import Limits, Receiver
from tracer.recording import FrameEncoder, read_frame
from tracer.recording.frames import HEAD_BYTES, PREAMBLE, Kind, pack_frame
from tracer.recording.greeting import Hello, read_nonce
from tracer.window import Window

MUTANTS = 20_000
MEBIBYTE = 1 << 20
NONCE = "0" * 32
SMALL = (("cpustate", "time"), ("runqueue", "worst"), ("softirq", "run"))


class FakeTransport(asyncio.Transport):
    """Where a Connection writes in these tests."""

    def __init__(self):
        super().__init__()
        self.open, self.written = True, b""

    def get_extra_info(self, name, default=None):
        return ("192.0.2.1", 1234)

    def write(self, data):
        self.written += data

    def close(self):
        self.open = False

    abort = close


@pytest.fixture(autouse=True)
def known_nonce(monkeypatch):
    monkeypatch.setattr(tracer.fleet.connection, "new_nonce", lambda: NONCE)


def feed(receiver, pieces):
    """Give a new connection these bytes until it is closed; return its transport."""
    connection, transport = Connection(receiver), FakeTransport()
    connection.connection_made(transport)
    for piece in pieces:
        connection.data_received(piece)
        if not transport.open:
            break
    connection.connection_lost(None)
    return transport


def receiver(**limits):
    said, told = [], []
    made = Receiver(Limits(**limits), None, None, told.append, said.append)
    return made, said, told


def repacked(raw, change):
    """Return a frame whose payload ``change`` has changed, with a head that fits."""
    body = raw[HEAD_BYTES:]
    payload = zlib.decompress(body) if raw[9] else bytes(body)
    (length,) = struct.unpack_from("<I", payload)
    structure, columns = msgpack.unpackb(payload[4 : 4 + length]), payload[4 + length :]
    structure, columns = change(structure, columns)
    packed = msgpack.packb(structure)
    payload = struct.pack("<I", len(packed)) + packed + columns
    head = struct.pack("<IBB", len(payload), raw[8], 0)
    head += struct.pack("<H", zlib.crc32(head) & 0xFFFF)
    return struct.pack("<I", zlib.crc32(payload, zlib.crc32(head))) + head + payload


def evil(structure, columns, chance):
    """Put something evil somewhere into a frame's map, or change its columns' bytes."""
    if columns and chance.random() < 0.2:
        place = chance.randrange(len(columns))
        return structure, columns[:place] + bytes([chance.randrange(256)]) + columns[place + chance.randrange(2) :]
    inside = structure
    while True:
        places = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
        if not places:
            return structure, columns
        place = chance.choice(places)
        if isinstance(inside[place], (dict, list)) and chance.random() < 0.8:
            inside = inside[place]
            continue
        inside[place] = chance.choice(EVIL)
        return structure, columns


def mutate(frames, chance):
    """Return the frames with one of them changed, the rest as they were."""
    frames = list(frames)
    place = chance.randrange(len(frames))
    raw = frames[place]
    match chance.randrange(6):
        case 0:
            at = chance.randrange(len(raw))
            frames[place] = raw[:at] + bytes([raw[at] ^ 1 << chance.randrange(8)]) + raw[at + 1 :]
        case 1:
            frames[place] = raw[: chance.randrange(len(raw))]
        case 2:
            frames[place] = chance.randbytes(chance.randrange(200))
        case 3:
            frames.insert(place, frames[chance.randrange(len(frames))])
        case _:
            start = len(PREAMBLE) if place == 0 else 0
            frames[place] = raw[:start] + repacked(raw[start:], lambda *parts: evil(*parts, chance))
    return frames


def test_twenty_thousand_mutants_raise_nothing(monkeypatch):
    monkeypatch.setattr(tracer.fleet.node, "_BURST", 1e9)  # all are one node's
    # A few windows of the real recording are as good as all, and 20,000 of them take seconds.
    whole, small = conversation(NONCE, None, intervals=2), conversation(NONCE, None, intervals=1, tables=SMALL)
    del small[1]
    chance, (hub, said, told) = random.Random(3), receiver(nodes=16, budget=4 * MEBIBYTE)
    good = 0

    def try_some(count):
        nonlocal good
        for number in range(count):
            good += feed(hub, mutate(whole if number % 50 == 0 else small, chance)).open
            if number % 100 == 0:
                hub.tick()
            if number % 10 == 0:
                silence(chance.choice(list(hub.roster.nodes.values())), time.monotonic_ns())

    tracemalloc.start()
    try_some(MUTANTS // 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 48 * MEBIBYTE
    before = resident()
    try_some(MUTANTS - MUTANTS // 20)
    assert resident() - before < 48 * MEBIBYTE
    assert 0 < good < MUTANTS / 2 and hub.complaints.total > MUTANTS / 3
    assert told and len(said) < 200
    assert all(line.isprintable() for line in said)
    assert hub._held == 0 and not hub._connections and hub.roster.size <= 4 * MEBIBYTE
    assert feed(hub, whole).open  # it still works


def resident():
    """Return how many bytes of this process are in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_frames_may_arrive_in_any_pieces(size):
    hub, said, told = receiver()
    data = b"".join(conversation(NONCE, None))
    assert feed(hub, [data[at : at + size] for at in range(0, len(data), size)]).open
    assert said == [] and len(told) == 1 and len(hub.roster.nodes["cu39"].kept) == 3


def test_only_a_short_greeting_is_waited_for():
    for data in (
        b"GET / HTTP/1.1\r\n\r\n",
        PREAMBLE + pack_frame(Kind.HEADER, {"x": "y"}),
        PREAMBLE + pack_frame(Kind.HELLO, {"node": random.Random(1).randbytes(4096)}),
        PREAMBLE + b"\xff" * HEAD_BYTES,
    ):
        hub, said, _ = receiver()
        transport = feed(hub, [data])
        assert not transport.open and len(said) == 1 and hub.roster.nodes == {}
        assert b"refused" in transport.written


@pytest.mark.parametrize("value", EVIL)
@pytest.mark.parametrize("key", ["node", "boot_id", "source", "interval_ns", "dropped", "machine", "proof"])
def test_a_greeting_that_is_wrong_anywhere_is_refused_or_harmless(key, value):
    hub, _, _ = receiver()
    hub.token = "token"
    right = {**Hello("n", "b", "agent", SECOND).__dict__, "proof": ""}
    with suppress(ValueError):
        feed(hub, [PREAMBLE + pack_frame(Kind.HELLO, {**right, key: value})])
    assert hub.roster.nodes == {}


@pytest.mark.parametrize("machine", [7, None, b"x", ["x"], "x" * 256])
def test_a_machine_that_is_none_is_refused(machine):
    hub, said, _ = receiver()
    right = {**Hello("n", "b", "agent", SECOND).__dict__, "machine": machine}
    assert not feed(hub, [PREAMBLE + pack_frame(Kind.HELLO, right)]).open
    assert hub.roster.nodes == {} and "its machine is none" in said[0]


def test_names_that_pretend_to_be_another_machines_replace_no_node():
    hub, said, _ = receiver()
    for node, machine in (("n", "m1"), ("n (m2)", "m3"), ("n (m2 b)", "m4"), ("n", "m2")):
        feed(hub, [Hello(node, "b", "agent", SECOND, machine=machine).packed(NONCE, None)])
    assert list(hub.roster.nodes) == ["n", "n (m2)", "n (m2 b)"] and "its name is taken" in said[0]


def test_a_node_can_speak_only_for_itself():
    hub, _, told = receiver()
    frames = conversation(NONCE, None, node="other")
    feed(hub, frames)
    assert [alert.node for alert in told] == ["other"]


def test_descriptions_without_end_are_cut_off():
    hub, said, _ = receiver()
    hello = conversation(NONCE, None)[0]
    rows = [[f"{'x' * 100}{field}", "u4", []] for field in range(200)]
    described = [
        pack_frame(Kind.WINDOWS, {"sequence": number, "forget": True, "layouts": [rows], "windows": []})
        for number in range(100)
    ]
    assert not feed(hub, [hello, *described]).open
    assert "too many kinds of rows" in said[0]


def test_a_node_of_many_cpus_is_let_in():
    hub, said, _ = receiver()
    rows = np.zeros(20_000, [("cpu", "u4"), ("sum", "u8")])
    rows["sum"] = np.random.default_rng(1).integers(0, 1 << 60, len(rows))
    frame = FrameEncoder().windows([Window("softirq", "run", 0, 1, rows)])
    assert len(frame) > 128 << 10
    assert feed(hub, [conversation(NONCE, None)[0], frame]).open and said == []


def test_unknown_kinds_are_skipped_and_nothing_follows_a_goodbye():
    hub, said, _ = receiver()
    frames = conversation(NONCE, None)
    assert feed(hub, [frames[0], pack_frame(77, {"of": "later"}), *frames[1:]]).open and said == []
    assert not feed(hub, [*frames, frames[-2]]).open
    assert "goes on after its goodbye" in said[0]


def test_unfinished_frames_of_all_together_are_bounded(monkeypatch):
    monkeypatch.setattr(tracer.fleet.receiver, "_MOST_HELD", 4 * MEBIBYTE)
    hub, said, _ = receiver()
    hello, head = conversation(NONCE, None)[0], struct.pack("<IBB", 16 * MEBIBYTE, Kind.WINDOWS, 0)
    head = b"\0\0\0\0" + head + struct.pack("<H", zlib.crc32(head) & 0xFFFF)
    transports = []
    for _ in range(40):
        connection, transport = Connection(hub), FakeTransport()
        connection.connection_made(transport)
        connection.data_received(hello + head + bytes(256 << 10))
        transports.append((connection, transport))
        for closed, its in transports:
            if not its.open and closed in hub._connections:
                closed.connection_lost(None)
        assert hub._held <= 4 * MEBIBYTE
    assert "too much" in said[0]


# On real sockets


def raw_connection(there):
    made = socket.create_connection(("127.0.0.1", there.port), timeout=5)
    made.recv(4096)
    return made


def closed(made, seconds=5.0):
    made.settimeout(seconds)
    with suppress(ConnectionResetError):
        while made.recv(4096):
            pass
    made.close()


def test_slow_ones_are_closed(monkeypatch):
    monkeypatch.setattr(tracer.fleet.connection, "_GREETING_NS", SECOND // 2)
    monkeypatch.setattr(tracer.fleet.connection, "_FRAME_NS", SECOND // 2)
    with served(Served()) as there:
        frames = conversation(NONCE, None)
        silent, dripping, unfinished = (raw_connection(there) for _ in range(3))
        unfinished.sendall(frames[0] + frames[1][:50])
        began = time.monotonic()
        with suppress(OSError):
            for at in range(100):
                dripping.sendall(frames[0][at : at + 1])
                time.sleep(0.05)
                if time.monotonic() - began > 3:
                    break
        for made in (silent, dripping, unfinished):
            closed(made)
        assert len([line for line in there.said if "too slow" in line]) == 3


def test_too_many_connections_are_refused_and_the_oldest_stranger_gives_way(monkeypatch):
    monkeypatch.setattr(tracer.fleet.receiver, "_STRANGERS", 4)
    with served(Served(Limits(connections=8))) as there:
        frames = conversation(NONCE, None)
        strangers = [raw_connection(there) for _ in range(10)]
        known = raw_connection(there)
        known.sendall(frames[0])
        assert b"welcome" in known.recv(4096)
        for made in strangers[:6]:
            closed(made)
        assert any("have not said who they are" in line for line in there.said)
        for made in (known, *strangers):
            made.close()


def test_a_storm_of_connections_leaves_the_receiver_working():
    with served(Served()) as there:
        for number in range(300):
            with socket.create_connection(("127.0.0.1", there.port), timeout=5) as made:
                made.sendall(random.Random(number).randbytes(200))
        frames = conversation(NONCE, None)
        with raw_connection(there) as made:
            made.sendall(b"".join(frames))
            give_up = time.monotonic() + 5
            while not there.alerts and time.monotonic() < give_up:
                time.sleep(0.01)
        assert there.alerts and len(there.said) < 30


def test_memory_that_is_full_is_said():
    hub, said, _ = receiver(budget=4096)
    feed(hub, conversation(NONCE, None))
    hub.tick()
    hub.tick()
    assert len(said) == 1 and said[0].startswith("4 KiB are full: ") and hub.roster.size <= 4096


def test_an_alert_that_is_too_large_is_refused():
    hub, said, told = receiver()
    alert = sample_alert(stack=("x" * 4000,) * 128)
    frame = pack_frame(Kind.ALERT, alert_record(alert))
    assert not feed(hub, [conversation(NONCE, None)[0], frame]).open
    assert told == [] and "longer than it may be" in said[0]


def test_who_sends_too_much_is_left_out_and_slowed_down_and_others_are_not():
    beats = pack_frame(Kind.BEAT, {"dropped": 0}) * 1000
    with served(Served(token="a-token-of-the-tests-own-0123456789")) as there:

        def greeted(node):
            made = socket.create_connection(("127.0.0.1", there.port), timeout=5)
            nonce = read_nonce(read_frame(io.BytesIO(made.recv(4096)[len(PREAMBLE) :]).read))
            made.sendall(Hello(node, "b007", "agent", SECOND).packed(nonce, there.receiver.token))
            assert b"welcome" in made.recv(4096)
            made.setblocking(False)
            return made

        fast, calm = greeted("fast"), greeted("calm")
        began, sent = time.monotonic(), 0
        while time.monotonic() < began + 3:
            with suppress(BlockingIOError):
                sent += fast.send(beats)
            time.sleep(0.002)
        calm.send(pack_frame(Kind.ALERT, alert_record(sample_alert())))
        until(lambda: there.alerts)
        fast.setblocking(True)
        fast.settimeout(10)
        frames, left_out = there.receiver.frames, there.receiver.left_out
        assert frames < 256 + 4 * 20 + 10
        assert left_out > 1000 and sent > 10 * len(beats)
        # One piece of what was sent is looked at in a second.
        assert left_out < 4 * (256 << 10) / (len(beats) / 1000)
        assert [line for line in there.said if "too fast" in line] == there.said and len(there.said) == 1
        assert f"{left_out} more left out" in there.receiver.totals
        for made in (fast, calm):
            made.close()


def test_too_many_windows_do_not_keep_alerts_out():
    hub, said, told = receiver()
    alert, beat = pack_frame(Kind.ALERT, alert_record(sample_alert())), pack_frame(Kind.BEAT, {"dropped": 0})

    async def run():
        connection, transport = Connection(hub), FakeTransport()
        transport.pause_reading = transport.resume_reading = lambda: None
        connection.connection_made(transport)
        connection.data_received(conversation(NONCE, None)[0] + 1000 * beat + alert + FrameEncoder().end())
        assert transport.open

    asyncio.run(run())
    assert len(told) == 1 and hub.left_out > 700 and len(said) == 1
    assert not hub.roster.nodes["cu39"].expected, "its goodbye was heard"


def test_short_intervals_may_send_more():
    hub, _, _ = receiver()
    hub.roster.greet(Hello("cu39", "b007", "agent", SECOND // 100), 0)
    node, now_ns = hub.roster.nodes["cu39"], time.monotonic_ns()
    taken = sum(node.admits(Kind.WINDOWS, now_ns + tick * SECOND // 1000) for tick in range(10_000))
    assert taken == pytest.approx(256 + 10 * 400, rel=0.02)


def until(true, seconds=10.0):
    give_up = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < give_up
        time.sleep(0.02)
