"""The pages where those who need a second factor set up their first one, before they have a session."""

from base64 import b64encode
from collections.abc import Callable
from typing import Any

from allauth.account.internal.decorators import login_stage_required
from allauth.account.internal.flows.login import record_authentication
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.signals import authenticator_added
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.internal.auth import TOTP, clear_totp_secret
from allauth.mfa.webauthn.internal import auth
from allauth.mfa.webauthn.internal.auth import WebAuthn
from django.contrib.auth.models import User
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.generic import FormView

from compliance.core import environments
from compliance.core.environments import Environment
from people.doors.key_forms import AddKeyForm
from people.doors.second_factor import has_second_factor
from people.doors.stages import EnrolmentStage


@method_decorator(login_stage_required(EnrolmentStage.key, "account_login"), name="dispatch")
class FirstFactorView(FormView):
    """A page of the stage; `activate` stores the factor that the form proved."""

    activate: Callable[[User, Any], Authenticator]

    @property
    def stage(self) -> Any:
        return self.request._login_stage  # type: ignore[attr-defined]

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "user": self.stage.login.user}

    def form_valid(self, form: Any) -> HttpResponse:
        user = self.stage.login.user
        with environments.use(Environment.LIVE), environments.atomic():
            User.objects.select_for_update(no_key=True).get(pk=user.pk)
            # The password alone sets up no second one.
            if has_second_factor(user):
                return HttpResponseRedirect(reverse("account_login"))
            authenticator = self.activate(user, form)
            RecoveryCodes.activate(user)
            given = {"request": self.request, "user": user, "authenticator": authenticator}
            authenticator_added.send(sender=Authenticator, **given)
        record_authentication(self.request, user, "mfa", type=authenticator.type, reauthenticated=True)
        self.stage.login.redirect_url = reverse("mfa_view_recovery_codes")
        answer: HttpResponse = self.stage.exit()
        return answer


class FirstAppView(FirstFactorView):
    form_class = ActivateTOTPForm
    template_name = "admin/people/sign_in_enrol.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        adapter = get_adapter()
        address = adapter.build_totp_url(self.stage.login.user, context["form"].secret)
        picture = b64encode(adapter.build_totp_svg(address).encode()).decode()
        return {**context, "totp_svg_data_uri": f"data:image/svg+xml;base64,{picture}"}

    def activate(self, user: User, form: Any) -> Authenticator:
        clear_totp_secret(self.request)
        made: Authenticator = TOTP.activate(user, form.secret).instance
        return made


class FirstKeyView(FirstFactorView):
    form_class = AddKeyForm
    template_name = "admin/people/keys/sign_in_enrol.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        options = auth.begin_registration(self.stage.login.user, False)
        return super().get_context_data(js_data={"creation_options": options}, **kwargs)

    def activate(self, user: User, form: Any) -> Authenticator:
        made: Authenticator = WebAuthn.add(
            user, form.cleaned_data["name"], form.cleaned_data["credential"]
        ).instance
        return made
