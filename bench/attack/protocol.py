"""Raw-socket cases: no unfinished body counts, errors are in the envelope, no connection gets out of step."""

import json
import time
from collections.abc import Callable
from uuid import uuid4

from bench.attack.core import Siege
from bench.attack.invariants import check
from bench.attack.protocol_cases import Case, End, Frame, cases
from bench.attack.wire import Garbled, Hang, Line, NoAnswer, Reply, call
from bench.attack.world import World, certified_agent

# The service waits ten seconds for a body; a case that is left unanswered is waited for a little longer.
PATIENCE_SECONDS = 13.0
SHORT_PATIENCE_SECONDS = 1.0
MORE_SECONDS = 0.1
"""How long a second answer, where there may be none, is waited for."""
SLOW_SECONDS = 30.0


def run(siege: Siege, world: World) -> None:
    """Every case on a connection of its own; a short run waits less for what is left open."""
    key = world.keys.live
    with Line(siege) as line:
        agent, _ = certified_agent(line, key)
        frame_of = _frames(line.host, agent, key)
        names = [case.name for case in cases(frame_of())]
        for name in siege.within(names, f"of {len(names)} cases"):
            frame = frame_of()
            case = next(found for found in cases(frame) if found.name == name)
            _play(siege, line, case, frame, agent, key)
        if not siege.is_short:
            _slow_senders(siege, line, frame_of)


def _frames(host: str, agent: str, key: str) -> Callable[[], Frame]:
    def made() -> Frame:
        mark = uuid4().hex
        event = {"agentId": agent, "actionType": "data_access", "details": {"tool": "read", "mark": mark}}
        raw = json.dumps(event).encode()
        return Frame(
            host=host.encode(), key=key.encode(), claim=mark.encode(), body=raw,
            lines=raw + b"\n" + raw + b"\n",
        )  # fmt: skip

    return made


def _play(siege: Siege, line: Line, case: Case, frame: Frame, agent: str, key: str) -> None:
    siege.sent()
    where = case.name
    with Line(siege) as own:
        own.send(case.octets)
        if case.end is End.CLOSE:
            own.close()
        elif case.end is End.RESET:
            own.reset()
        else:
            if case.end is End.HALF_CLOSE:
                own.half_close()
            _judge_answers(siege, own, case, where)
    if not case.is_whole:
        _expect_nothing(siege, line, frame, agent, key, case)
    _expect_service(siege, line, where)


def _judge_answers(siege: Siege, own: Line, case: Case, where: str) -> None:
    """Those that come: in the envelope, no more than there may be; then the line still answers right."""
    first = _answer(siege, own, case, where)
    if first is None:
        if not case.may_be_silent:
            siege.report("no answer", where, "a sound request")
        return
    if first.status not in case.allowed:
        siege.report(f"answered {first.status}", where, str(first))
    check(siege, first, where, where=where, is_layer=True)
    count, last = 1, first
    while not last.ends_connection:
        following = _quick(own)
        if following is None:
            break
        check(siege, following, where, where=where, is_layer=True)
        count, last = count + 1, following
    if count > case.answers:
        siege.report(f"{count} answers", where, str(last))
    if case.end is End.WAIT and not last.ends_connection and count >= case.answers:
        _expect_in_step(siege, own, case, where)


def _answer(siege: Siege, own: Line, case: Case, where: str) -> Reply | None:
    patience = SHORT_PATIENCE_SECONDS if siege.is_short and case.may_be_silent else PATIENCE_SECONDS
    try:
        return own.receive(method=case.method, timeout=patience)
    except NoAnswer:
        return None
    except Hang:
        if not siege.is_short:
            siege.report("a hang", where, f"nothing came in {patience:.0f} s")
        return None
    except Garbled as error:
        siege.report("no HTTP", where, str(error))
        return None


def _quick(own: Line) -> Reply | None:
    if not own.has_more(MORE_SECONDS):
        return None
    try:
        return own.receive(timeout=SHORT_PATIENCE_SECONDS)
    except (NoAnswer, Hang, Garbled):
        return None


def _expect_in_step(siege: Siege, own: Line, case: Case, where: str) -> None:
    """A question on the same line gets its own answer; a server that ended the line is in step, too."""
    asked = call("GET", "/health/live")
    try:
        reply = own.ask(asked)
    except (NoAnswer, Hang):
        return
    if reply.status == 200 and reply.json != {"status": "ok"}:
        siege.report("out of step", where, str(reply))


def _expect_nothing(siege: Siege, line: Line, frame: Frame, agent: str, key: str, case: Case) -> None:
    """Neither an event nor a claim of what was never sent whole."""
    newest = line.ask(call("GET", f"/v1/events?agent_id={agent}&limit=5", key=key))
    if case.end in (End.CLOSE, End.RESET):
        # Nobody waits for an answer: the request may be at work yet.
        time.sleep(0.05)
        newest = line.ask(call("GET", f"/v1/events?agent_id={agent}&limit=5", key=key))
    if frame.claim in newest.body:
        siege.report("an event of an unfinished body is stored", case.name, "")
    event = {"agentId": agent, "actionType": "data_access", "details": {"tool": "read"}}
    headers = {"Idempotency-Key": frame.claim.decode()}
    again = line.ask(call("POST", "/v1/events", key=key, body=event, headers=headers))
    if again.status != 201:
        siege.report("its Idempotency-Key is claimed", case.name, str(again))


def _expect_service(siege: Siege, line: Line, where: str) -> None:
    try:
        reply = line.ask(call("GET", "/health/live"))
    except (NoAnswer, Hang) as error:
        siege.report("the service is away afterwards", where, type(error).__name__)
        return
    if reply.status != 200:
        siege.report("the service is away afterwards", where, str(reply))


def _slow_senders(siege: Siege, line: Line, frame_of: Callable[[], Frame]) -> None:
    """Headers and bodies that trickle are ended in bounded time."""
    frame = frame_of()
    senders = [
        ("slow headers", frame.get()[:-2]),
        ("a slow request line", b"GET /hea"),
        ("a slow body", frame.head(frame.length) + frame.body[:10]),
        ("slow chunks", frame.head(b"Transfer-Encoding: chunked") + b"5\r\n{"),
    ]
    for name, octets in siege.within(senders, "slow senders"):
        siege.sent()
        began = time.monotonic()
        with Line(siege) as own:
            own.send(octets)
            try:
                reply = own.receive(timeout=SLOW_SECONDS)
                check(siege, reply, name, where=name, is_layer=True)
            except NoAnswer:
                pass
            except Hang:
                siege.report("a slow sender is kept", name, f"for {time.monotonic() - began:.0f} s and more")
        _expect_service(siege, line, name)
