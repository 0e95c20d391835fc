"""The console's appearance and navigation, which django-unfold draws."""

from typing import Any

from django.templatetags.static import static
from django.urls import reverse

from compliance.settings.service import SERVICE_TITLE

# White on 600, 600 on white and 500 on the dark background have a contrast of WCAG AA (4.5:1).
_PRIMARY = {
    "50": "oklch(96.2% .018 272.3)",
    "100": "oklch(93% .034 272.8)",
    "200": "oklch(87% .065 274)",
    "300": "oklch(78.5% .115 274.7)",
    "400": "oklch(74% .14 275.5)",
    "500": "oklch(67.3% .182 276.9)",
    "600": "oklch(51.1% .215 276.9)",
    "700": "oklch(45.7% .19 277)",
    "800": "oklch(39.8% .155 277.4)",
    "900": "oklch(35.9% .12 278.7)",
    "950": "oklch(25.7% .09 281.3)",
}

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": SERVICE_TITLE,
    "SITE_HEADER": "Agent Compliance",
    "SITE_SUBHEADER": "Identity · certificates · risk",
    "SITE_SYMBOL": "verified_user",
    "SITE_URL": None,
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("console/favicon.svg")}
    ],
    "SHOW_VIEW_ON_SITE": False,
    "BORDER_RADIUS": "8px",
    "STYLES": [
        lambda request: static("console/console.css"),
        lambda request: static("console/access.css"),
    ],
    "SCRIPTS": [lambda request: static("console/access.js")],
    "GLOBAL_CALLBACK": "compliance.console.context.environment_of_page",
    "ENVIRONMENT_TITLE_PREFIX": "compliance.console.context.title_prefix",
    "DASHBOARD_CALLBACK": "ops.dashboard.first_page",
    "SIDEBAR": {
        "show_search": True,
        "command_search": True,
        "navigation": "ops.console_urls.sidebar",
    },
    "ACCOUNT": {
        "navigation": [
            {"title": "Your account", "link": lambda request: reverse("mfa_index")},
            {"title": "Change password", "link": lambda request: reverse("account_change_password")},
        ]
    },
    "COLORS": {"primary": _PRIMARY},
}
