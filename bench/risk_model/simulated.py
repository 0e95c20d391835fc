"""Simulated agents at ordinary work: what each kind does, whom it writes to, and its days.

Every call is reported in three ways: in our vocabulary, as `{tool, args}`, and so with other names.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import NamedTuple

from events.risk.evaluation.backtest import LOW, Agents, Learned, StreamEvent
from events.risk.scoring.contract import Context, normal_actions
from events.risk.scoring.habits.baseline import Baseline, pool
from events.risk.scoring.habits.state import AgentState
from events.risk.scoring.model import fold

HOME = "acme.example"
START = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)
OPENS, CLOSES = 9, 17
TASKS_A_DAY = 5
NEW_CONTACTS = 0.02
"""Share of an ordinary agent's messages and payments that go to somebody new."""
USUAL_USD, SPREAD = 400.0, 0.5
Spelling = Callable[["Call"], object]


class Call(NamedTuple):
    """A call of a tool: its arguments as called, and what our vocabulary says of it."""

    action_type: str
    tool: str
    args: dict[str, object]
    told: dict[str, object]


def in_our_words(call: Call) -> object:
    """The details by our vocabulary."""
    return {"tool": call.tool, **call.told, "status": "ok"}


def verbatim(call: Call) -> object:
    """The details of an integrator who knows nothing of our vocabulary."""
    return {"tool": call.tool, "args": call.args, "status": "ok"}


def in_other_words(call: Call) -> object:
    """The same, where tools have a namespace and names are written in camel case."""
    args = {OTHER_NAMES.get(name, _camel(name)): value for name, value in call.args.items()}
    return {"toolName": f"mcp__office__{_camel(call.tool)}", "arguments": args, "status": "success"}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


OTHER_NAMES = {
    "recipients": "toAddresses",
    "recipient": "beneficiaryAccount",
    "url": "targetUrl",
    "path": "filePath",
    "table": "tableName",
}
SPELLINGS: dict[str, Spelling] = {
    "in our words": in_our_words,
    "verbatim": verbatim,
    "in other words": in_other_words,
}


def message(tool: str, recipients: list[str]) -> Call:
    """A message to some addresses."""
    host = recipients[0].rpartition("@")[2]
    args: dict[str, object] = {"recipients": recipients, "subject": "Update", "body": "As agreed."}
    return Call("api_call", tool, args, {"targets": recipients, "host": host})


def reading(tool: str, key: str, resource: str) -> Call:
    """A look at something."""
    return Call("data_access", tool, {key: resource}, {"resource": f"{key}:{resource}"})


def change(tool: str, key: str, resource: str) -> Call:
    """A change of something."""
    return Call("data_mutation", tool, {key: resource}, {"resource": f"{key}:{resource}"})


def payment(payee: str, amount: float) -> Call:
    """A payment in dollars."""
    args: dict[str, object] = {"recipient": payee, "amount": round(amount, 2), "subject": "Invoice"}
    told: dict[str, object] = {"targets": [payee], "amount_usd": round(amount, 2)}
    return Call("transaction_initiated", "send_money", args, told)


def upload(host: str, name: str) -> Call:
    """A file sent to a server."""
    url = f"https://{host}/in/{name}"
    return Call("api_call", "upload_file", {"url": url}, {"host": host, "resource": url})


class Circle:
    """Whom and what an agent has to do with, the first of each most of all.

    `staff` has accounts and salaries in dollars.
    """

    def __init__(self, rng: Random, new_contacts: float = NEW_CONTACTS) -> None:
        self.rng = rng
        self.new_contacts = new_contacts
        self.count = 0
        self.colleagues = [f"{self.name()}@{HOME}" for _ in range(10)]
        self.people = [*self.colleagues, *(self.stranger() for _ in range(6))]
        self.payees = [self.account() for _ in range(12)]
        self.things = [f"{self.name()}-main" for _ in range(9)]
        self.hosts = [f"{self.name()}.example" for _ in range(2)]
        self.staff: list[tuple[str, float]] = []
        self.subscribers: list[str] = []

    def name(self) -> str:
        """A name that nothing else has."""
        self.count += 1
        return f"{self.rng.choice('bdfglmnprst')}{self.rng.randrange(10**6):06}n{self.count}"

    def stranger(self) -> str:
        """The address of somebody whom nobody knows."""
        return f"{self.name()}@{self.name()}.example"

    def account(self) -> str:
        """An account that nobody knows."""
        return f"DE{self.rng.randrange(10**18):020}"

    def one_of(self, known: list[str], new: Callable[[], str]) -> str:
        """One of the known, the first most often, or now and then a new one, who is known from then on."""
        if self.rng.random() < self.new_contacts:
            known.append(new())
            return known[-1]
        return self.rng.choices(known, [1 / (place + 1) for place in range(len(known))])[0]

    def person(self) -> str:
        """Somebody to write to."""
        return self.one_of(self.people, self.stranger)

    def thing(self) -> str:
        """A file, table or repository."""
        return self.one_of(self.things, self.name)

    def usd(self) -> float:
        """A usual amount."""
        return USUAL_USD * self.rng.lognormvariate(0.0, SPREAD)


Task = Callable[[Circle], list[Call]]


class Kind(NamedTuple):
    """A kind of agent: the tools that attacks use as well, and one of its tasks."""

    messenger: str
    reader: tuple[str, str]
    task: Task
    others: tuple[str, ...]

    @property
    def context(self) -> Context:
        """What it is permitted, and its company's domain."""
        tools = (self.messenger, self.reader[0], *self.others, "grant_role", "dump_database")
        return Context(permitted_actions=normal_actions(tools), home_domain=HOME)

    def message(self, recipients: list[str]) -> Call:
        """A message by the tool it uses every day."""
        return message(self.messenger, recipients)

    def read(self, resource: str) -> Call:
        """A look at something by the tool it uses every day."""
        return reading(*self.reader, resource)


def _mail_task(circle: Circle) -> list[Call]:
    found = [
        Call("data_access", "get_received_emails", {}, {}),
        reading("read_email", "email_id", str(circle.rng.randrange(10**6))),
    ]
    if circle.rng.random() < 0.3:
        found.append(reading("read_file", "path", circle.thing()))
    return [*found, message("send_email", [circle.person() for _ in range(circle.rng.choice((1, 1, 2)))])]


def _payments_task(circle: Circle) -> list[Call]:
    payee = circle.one_of(circle.payees, circle.account)
    found = [
        reading("get_invoice", "invoice_id", str(circle.rng.randrange(10**6))),
        payment(payee, circle.usd()),
    ]
    if circle.rng.random() < 0.4:
        found.append(message("send_receipt", [circle.person()]))
    return found


def _repository_task(circle: Circle) -> list[Call]:
    repository = circle.thing()
    found = [
        reading("get_issue", "issue_id", str(circle.rng.randrange(10**4))),
        reading("read_file", "path", f"{repository}/src/{circle.rng.randrange(30)}.py"),
        change("git_push", "repo_name", repository),
    ]
    if circle.rng.random() < 0.5:
        found.append(message("notify_reviewers", [circle.person()]))
    return found


def _pipeline_task(circle: Circle) -> list[Call]:
    table = circle.thing()
    found = [
        reading("query_table", "table", table),
        change("write_table", "table", f"{table}_daily"),
        upload(circle.one_of(circle.hosts, lambda: f"{circle.name()}.example"), f"{table}.csv"),
    ]
    if circle.rng.random() < 0.4:
        found.append(message("send_report", [circle.person()]))
    return found


KINDS = {
    "mail": Kind("send_email", ("read_file", "path"), _mail_task, ("get_received_emails", "read_email")),
    "payments": Kind("send_receipt", ("get_invoice", "invoice_id"), _payments_task, ("send_money",)),
    "repository": Kind(
        "notify_reviewers", ("read_file", "path"), _repository_task, ("get_issue", "git_push")
    ),
    "pipeline": Kind("send_report", ("query_table", "table"), _pipeline_task, ("write_table", "upload_file")),
}


def working_day(day: int, circle: Circle, task: Task, tasks: int) -> list[tuple[datetime, Call]]:
    """A day's calls with their times: tasks at any time of the working day, calls half a minute apart."""
    found = []
    for _ in range(tasks):
        at = START + day * DAY + timedelta(hours=circle.rng.uniform(OPENS, CLOSES))
        for call in task(circle):
            found.append((at, call))
            at += timedelta(seconds=circle.rng.uniform(5, 60))
    return sorted(found, key=lambda one: one[0])


def row(agent: str, at: datetime, call: Call, spelling: Spelling, *, attack: bool = False) -> StreamEvent:
    """The call as a line of a stream."""
    return StreamEvent(
        agent, at, call.action_type, spelling(call), label_event="attack" if attack else "benign"
    )


def lived(rows: Iterable[StreamEvent], agents: Agents) -> Learned:
    """What agents and their tenants have learned from scoring these events."""
    states: defaultdict[str, AgentState] = defaultdict(AgentState)
    baselines: defaultdict[str, Baseline] = defaultdict(Baseline)
    for one in rows:
        baseline = baselines[agents.tenants[one.agent]]
        if fold(states[one.agent], one.event, agents.contexts[one.agent], baseline).band == LOW:
            pool(baseline, one.event, agent=one.agent)
    return Learned(states, baselines)
