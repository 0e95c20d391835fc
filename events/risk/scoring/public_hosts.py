"""Public services that agents of many tenants use: an attack through one says nothing of the next visit.

A fixed list rather than what other tenants know, which the answer to a verdict would give away.
"""

from itertools import accumulate

SERVICES = frozenset({
    "gmail.com", "googlemail.com", "google.com", "googleapis.com", "outlook.com", "hotmail.com", "live.com",
    "office.com", "office365.com", "microsoft.com", "microsoftonline.com", "yahoo.com", "icloud.com",
    "apple.com", "proton.me", "protonmail.com", "gmx.net", "gmx.de", "github.com", "githubusercontent.com",
    "gitlab.com", "bitbucket.org", "pypi.org", "pythonhosted.org", "npmjs.com", "npmjs.org", "docker.io",
    "docker.com", "stackoverflow.com", "wikipedia.org", "slack.com", "zoom.us", "dropbox.com", "notion.so",
    "atlassian.com", "openai.com", "anthropic.com", "huggingface.co", "stripe.com", "paypal.com",
})  # fmt: skip
"""Services whose hosts, at any depth, belong to the service and not to one customer."""
SHARED_DOMAINS = frozenset({
    "amazonaws.com", "s3.amazonaws.com", "cloudfront.net", "azure.com", "windows.net",
    "blob.core.windows.net", "azurewebsites.net", "sharepoint.com", "github.io", "gitlab.io", "pages.dev",
    "workers.dev", "vercel.app", "netlify.app", "herokuapp.com", "web.app", "atlassian.net", "myshopify.com",
    "zendesk.com", "salesforce.com", "force.com",
})  # fmt: skip
"""Domains whose customers have hosts of their own, which may be marked; the bare domain may not."""


def is_public(host: str) -> bool:
    """Return whether a host is a public service's. An account or address at one is not its host."""
    labels = reversed(host.split("."))
    domains = accumulate(labels, lambda domain, label: f"{label}.{domain}")
    return host in SHARED_DOMAINS or not SERVICES.isdisjoint(domains)
