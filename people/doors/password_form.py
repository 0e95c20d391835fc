"""The form of one's own new password, where the current one is no easier to guess than at the sign-in."""

from allauth.account.adapter import get_adapter
from allauth.account.forms import ChangePasswordForm


class OwnPasswordForm(ChangePasswordForm):
    def clean_oldpassword(self) -> str:
        adapter, shown = get_adapter(), self.cleaned_data.get("oldpassword", "")
        if not adapter.reauthenticate(self.user, shown):
            raise adapter.validation_error("enter_current_password")
        return str(shown)
