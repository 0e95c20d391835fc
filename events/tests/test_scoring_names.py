"""Names of tools: one spelling for all reports, and nothing permitted that was not declared."""

import pytest
from hypothesis import given, strategies as st

from events.risk.scoring.contract import Context, Event, FinancialScope, normal_actions
from events.risk.scoring.details import read
from events.risk.scoring.names import habit_name, keys_of, normal_name, scope_of
from events.risk.scoring.rules import undeclared_action
from events.risk.scoring.state import AgentState
from events.tests.assessments import Assessment, assess

NOON = 1_700_049_600.0
NAMES = st.text(alphabet="aAzZ09_-.:/ \u017f\u212a\u0456", max_size=14) | st.lists(
    st.sampled_from(["mcp", "tool", "post_office", "delete_all", "set", "a", "", "_", ".", "/"]), max_size=7
).map("".join)


def permits(declared: list[str], name: str) -> bool:
    return scope_of(normal_actions(declared)).permits(normal_name(name))


@pytest.mark.parametrize(
    "name",
    [
        "send-email", "sendEmail", "SendEmail", "SEND_EMAIL", "sendemail", " send email ", "gmail.send_email",
        "mcp__gmail__send_email", "functions.send_email", "server/send_email", "server:sendEmail",
        "gmail::send_email", "default_api.send_email", "com.acme.mail.send_email",
        "mcp__post-office__send_email", "mcp__PostOffice__sendEmail", "mcp.post_office.mail.send_email",
        "functions.mcp__post-office__send_email", "/send_email", "/gmail/send_email",
    ],
)  # fmt: skip
def test_spelling_makes_no_difference(name: str) -> None:
    assert permits(["send_email"], name)
    assert permits([name], name)


@pytest.mark.parametrize(
    "name",
    [
        "send_email_to_all", "bulk_send_email", "resend_email", "send_emails", "delete.send_email",
        "mcp__delete_all__send_email", "DeleteAll/sendEmail", "send_email.delete", "send_email.",
        ".send_email", "_send_email", "send_email_", "gmail..send_email", "\u017fend_email",
        "send_ema\u0456l", "\uff53end_email", "send\u200b_email", "send_email\x00", "send_email()",
        "send_email;rm", "send", "email", "",
        "post_office.send_email", "set_user.send_email", "mcp__post__send_email", "delete_all.send_email",
        "mcp__post-office__delete__send_email", "mcp__mail__set_user__send_email", "mcp__post-office",
        "tools.post_office.send_email", "mcp.tools.post_office.send_email", "//send_email", "/send_email/",
        "/delete/send_email", "__send_email", "mcp____send_email",
    ],
)  # fmt: skip
def test_other_name_is_not_permitted(name: str) -> None:
    assert not permits(["send_email"], name)


@pytest.mark.parametrize(
    ("declared", "name", "is_permitted"),
    [
        ("mail.send_email", "mail.send_email", True),
        ("mail.send_email", "mcp__mail__sendEmail", True),
        ("mail.send_email", "mail_send_email", True),
        ("mail.send_email", "functions.send_email", True),
        ("mail.send_email", "acme.mail.send_email", True),
        ("mail.send_email", "other.send_email", False),
        ("mail.send_email", "mailer.send_email", False),
        ("mail.send_email", "wipe.mail.send_email", False),
        ("mail.delete", "mail.delete", True),
        ("mail.delete", "files.delete", False),
        ("mail.delete", "delete", False),
        ("send", "payments.send", False),
        ("search", "tavily.search", True),
        ("mail.send_email", "mcp__post-office__send_email", False),
        ("mail.send_email", "mcp__post-office__mail__send_email", True),
        ("post_office.send_email", "mcp__post-office__send_email", True),
        ("mcp__post-office__send_email", "post_office.send_email", True),
        ("mcp__post-office__send_email", "mcp__set-user__send_email", False),
        ("delete", "mcp__post-office__delete", False),
    ],
)
def test_declared_namespace_is_binding(declared: str, name: str, is_permitted: bool) -> None:
    assert permits([declared], name) is is_permitted


@given(NAMES)
def test_normal_name_is_its_own(name: str) -> None:
    assert normal_name(normal_name(name)) == normal_name(name)


@given(st.lists(NAMES, max_size=3), NAMES)
def test_permitted_name_has_the_letters_of_a_declared_one_at_its_end(declared: list[str], name: str) -> None:
    def letters(text: str) -> str:
        return "".join(one.lower() if one.isascii() else one for one in text if one not in "_-.:/ ")

    if permits(declared, name):
        seen, known = letters(name), [letters(one) for one in declared if one.strip()]
        assert any(seen.endswith(one) or one.endswith(seen) for one in known)


@pytest.mark.parametrize(
    ("name", "habit"),
    [
        ("gmail.send_email", "send_email"),
        ("mail.delete", "mail.delete"),
        ("delete_all.send_email", "delete_all.send_email"),
        (".send_email", ".send_email"),
        ("mcp.post_office.send_email", "send_email"),
        ("mcp.post_office.search", "post_office.search"),
    ],
)
def test_habits_leave_out_a_namespace_that_only_says_whose_tool_it_is(name: str, habit: str) -> None:
    assert habit_name(name) == habit


def after(*names: str, context: Context) -> AgentState:
    state = AgentState()
    for minute, name in enumerate(names):
        state = assess(state, Event("api_call", NOON + 60 * minute, {"tool": name}), context).state
    return state


def last(state: AgentState, name: str, context: Context) -> Assessment:
    return assess(state, Event("api_call", NOON + 86_400, {"tool": name}), context)


def test_changed_spelling_is_no_new_tool() -> None:
    names = ["read_file", "send_email", "list_files"] * 20
    state = after(*names, context=Context())

    same = last(state, "mcp__gmail__sendEmail", Context())
    other = last(state, "mcp__gmail__sendLetter", Context())

    assert same.score == last(state, "send_email", Context()).score
    assert same.score < other.score


SCOPE = Context(permitted_actions=normal_actions(["read_file", "send_email"]))


def test_name_outside_the_scope_is_a_mismatch_until_a_permitted_one_was_used() -> None:
    before = last(after("Mailer", "Mailer", context=SCOPE), "wipe_disk", SCOPE)
    since = last(after("Mailer", "files.readFile", context=SCOPE), "wipe_disk", SCOPE)

    assert (before.band, before.reasons[0].name) == ("medium", "scope_mismatch")
    assert (since.band, since.reasons[0].name) == ("high", "off_scope")


def test_mismatch_ends_after_the_first_fifty_events() -> None:
    bands = [last(after(*["Mailer"] * count, context=SCOPE), "Mailer", SCOPE).band for count in (0, 49, 50)]

    assert bands == ["medium", "medium", "high"]


def test_event_with_a_permitted_name_beside_the_other_is_no_mismatch() -> None:
    details = {"tool": "read_file", "action": "wipe_disk"}

    assert assess(AgentState(), Event("api_call", NOON, details), SCOPE).band == "high"


@pytest.mark.parametrize("permitted", [frozenset[str](), frozenset({"data_access"})])
def test_scope_of_nothing_or_of_types_is_never_misnamed(permitted: frozenset[str]) -> None:
    assert last(AgentState(), "wipe_disk", Context(permitted_actions=permitted)).band == "high"


def test_reason_tells_the_nearest_names_and_how_many_more() -> None:
    names = ["send_email", "read_file", "list_files", "search_web", "get_weather"]
    context = Context(permitted_actions=normal_actions(names))
    state = after("read_file", context=context)

    reason = last(state, "send_letter", context).reasons[0]

    assert reason.observed == "send_letter"
    assert reason.expected == "send_email, get_weather, list_files or 2 more"


def test_no_action_hides_behind_many_permitted_ones() -> None:
    calls = [{"name": "read_file"} for _ in range(200)]
    state = after("read_file", context=SCOPE)

    verdict = assess(state, Event("api_call", NOON + 60, {"tool_calls": [*calls, {"name": "wipe"}]}), SCOPE)

    assert verdict.band == "high"


def test_tool_and_verb_are_permitted_together_only_as_declared() -> None:
    scope = Context(permitted_actions=normal_actions(["calendar.create_event", "read_file"]))
    state = after("read_file", context=scope)

    def band(tool: str, action: str) -> str:
        return assess(state, Event("api_call", NOON + 60, {"tool": tool, "action": action}), scope).band

    assert band("Calendar", "createEvent") == "low"
    assert band("payments", "read_file") == "high"
    assert band("mail", "create_event") == "high"


@pytest.mark.parametrize(
    ("details", "named"),
    [
        ({"tool": ["calendar", "wire_money"], "action": "create_event"}, "wire_money"),
        ({"tool": "calendar", "action": ["create_event", "wire_money"]}, "wire_money"),
        ({"tool": "payments", "tool_name": "payments", "action": "refund"}, None),
        ({"tool": "payments", "function": "refund", "action": "refund"}, None),
        ({"tool": "calendar", "action": "create_event", "operation": "insert"}, None),
    ],
)
def test_pair_that_is_permitted_together_permits_nothing_beside_it(
    details: dict[str, object], named: str | None
) -> None:
    permitted, facts = normal_actions(["calendar.create_event", "payments.refund"]), read(details)

    assert undeclared_action("api_call", permitted, facts.tools, facts.verbs) == named


def test_expected_name_is_told_whatever_weighs_more() -> None:
    limits = FinancialScope(10, 20, ("BTC-USD",), ("kraken",), leverage_permitted=False)
    scope = Context(permitted_actions=SCOPE.permitted_actions, financial_scope=limits)
    trade = {"instrument": "ETH-USD", "venue": "nowhere", "leverage": 5, "amount_usd": 1_000}

    misnamed, broken = (
        assess(state, Event("transaction_initiated", NOON + 90, {"tool": "wipe_disk", **trade}), scope)
        for state in (AgentState(), after("read_file", context=scope))
    )

    assert [verdict.reasons[-1].name for verdict in (misnamed, broken)] == ["scope_mismatch", "off_scope"]
    assert {verdict.reasons[-1].expected for verdict in (misnamed, broken)} == {"read_file, send_email"}
    assert [len(verdict.reasons) for verdict in (misnamed, broken)] == [3, 3]


@given(NAMES, NAMES)
def test_names_that_a_scope_permits_or_states_share_a_key_with_it(stated: str, reported: str) -> None:
    stated, reported = normal_name(stated), normal_name(reported)
    scope = scope_of(frozenset((stated,)))

    for name in (reported, stated, f"{reported}.{stated}", f"{stated}.{reported}", stated.rpartition(".")[2]):
        if scope.permits(name) or scope.states(name):
            assert keys_of(stated, is_stated=True) & keys_of(name)
