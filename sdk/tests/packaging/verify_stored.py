"""Runs with the installed package alone: verifies a stored token, and refuses it changed."""

import asyncio
import importlib.metadata
import json
import pkgutil
import sys
from datetime import UTC, datetime

import agentid
from agentid.verify import NotValid, TokenRules, verify_token
from agentid.verify.key_sets import read_keys

NEED_EXTRAS = ("agentid.mcp", "agentid.adapters", "agentid.middleware.django")

for module in pkgutil.walk_packages(agentid.__path__, "agentid.", onerror=lambda name: None):
    if not module.name.startswith(NEED_EXTRAS) and not module.name.endswith("__main__"):
        __import__(module.name)

stored = json.load(sys.stdin)
rules = TokenRules(stored["issuer"], stored["audience"])
keys = read_keys(stored["jwks"])
now = datetime.fromtimestamp(stored["at"], UTC)
found = verify_token(stored["token"], keys=keys, rules=rules, now=now)
try:
    verify_token(stored["token"][:-4] + "AAAA", keys=keys, rules=rules, now=now)
except NotValid as refused:
    reason = refused.reason.value


async def play() -> None:
    async with agentid.AsyncClient("https://service.example"):
        pass


asyncio.run(play())
installed = sorted(each.metadata["Name"].lower() for each in importlib.metadata.distributions())
sys.stdout.write(json.dumps({"principal": found.principal, "reason": reason, "installed": installed}))
