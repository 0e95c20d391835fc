"""`token_key_rotate [--compromised]`: the next key that signs delegation tokens."""

from datetime import datetime
from typing import Any, ClassVar

from auditlog.vocabulary import Actor
from compliance.core.commands import ServiceCommand
from delegation.management.commands.token_key_list import describe
from delegation.token_keys import keys


class Command(ServiceCommand):
    help = (
        "Publish the next token key; it signs 15 minutes later, once verifiers have seen it. "
        "The first key of an environment signs at once."
    )
    takes_environment = True
    arguments: ClassVar = {
        "--compromised": {
            "action": "store_true",
            "help": "withdraw the active key with all its tokens, and sign with another at once",
        },
    }

    def run(self, *, now: datetime, **options: Any) -> dict[str, Any]:
        rotate = keys.replace_compromised if options["compromised"] else keys.rotate
        return describe(rotate(actor=Actor.system("command:token_key_rotate"), now=now))
