"""A choice of a row that is looked up as one types."""

from typing import Any

from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import ValidationError


class KnownChoice(AutocompleteSelect):
    """Shows a submitted key of the wrong form as no choice; Django's widget would fail at it."""

    def optgroups(self, name: str, value: Any, attr: Any = None) -> Any:
        return super().optgroups(name, [key for key in value if self._may_be_key(key)], attr)

    def _may_be_key(self, key: Any) -> bool:
        try:
            self.field.target_field.to_python(key)
        except ValidationError:
            return False
        return True
