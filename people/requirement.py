"""Who must sign in with a second factor; without models, for the system checks as well."""

from enum import StrEnum


class Requirement(StrEnum):
    """The values of SECOND_FACTOR: who must have a second factor."""

    OPERATORS = "operators"
    EVERYONE = "everyone"
    NOBODY = "nobody"
