"""What a page owes to those who use it without a mouse, or without seeing it all at once.

axe-core checks WCAG 2.2, levels A and AA, and the landmarks; the console's own promises are checked besides.
"""

from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, ViewportSize

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
LANDMARKS = ["landmark-one-main", "landmark-unique", "page-has-heading-one"]
# The rules whose outcome depends on colours: all that differs between light and dark.
COLOUR_RULES = ["color-contrast", "link-in-text-block"]
RUN = "options => axe.run(document, options)"
DESKTOP, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)

# Icons whose words a screen reader would read, and what only a mouse can press.
UNREACHED = """() => [
    ...[...document.querySelectorAll(".material-symbols-outlined")]
        .filter(icon => !icon.closest("[aria-hidden=true], [aria-label], [title]"))
        .map(icon => "icon is read out: " + icon.outerHTML),
    ...[...document.querySelectorAll("[x-on\\\\:click], [onclick]")]
        .filter(control => control.tabIndex < 0)
        .map(control => "no key reaches: " + control.outerHTML.slice(0, 200)),
]"""
WIDER = """() => document.documentElement.scrollWidth > innerWidth
    ? ["the page is wider than the screen: " + document.documentElement.scrollWidth] : []"""
# The scripts that follow the size of the window have run.
DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
# What fades in or out has done so.
STILL = """() => Promise.all(document.getAnimations()
    .filter(one => one.effect?.getComputedTiming().endTime !== Infinity)
    .map(one => one.finished.catch(() => 0)))"""
SWITCH = """theme => window.Alpine && document.documentElement.hasAttribute("x-data")
    && Alpine.$data(document.documentElement).switchTheme(theme)"""


def violations(
    page: Page, *, only: list[str] | None = None, also: list[str] | None = None
) -> list[str]:
    """Return a line for each violation: the rule, what is wrong, the element.

    `only` names the rules to check instead of WCAG's, `also` further ones.
    """
    if not page.evaluate("() => 'axe' in window"):
        # Evaluated by the debugger, which the page's content security policy does not bind.
        page.evaluate(AXE_SCRIPT)
    page.evaluate(DRAWN)
    page.evaluate(STILL)
    chosen: dict[str, Any] = {"type": "rule", "values": only} if only else {"type": "tag", "values": TAGS}
    further = {rule: {"enabled": True} for rule in also or ()}
    found = page.evaluate(RUN, {"runOnly": chosen, "rules": further, "resultTypes": ["violations"]})
    return [
        f"{violation['id']}: {violation['help']}: {node['html'][:200]} {_because(node)}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]


def _because(node: dict[str, Any]) -> str:
    checks = [*node["any"], *node["all"], *node["none"]]
    return "; ".join(check["message"] for check in checks)[:300]


def assert_usable_by_all(page: Page) -> None:
    """Check the page in light, in dark, and on a phone; nothing else changes between them."""
    show(page, "light")
    found = {"light": [*violations(page, also=LANDMARKS), *page.evaluate(UNREACHED)]}
    show(page, "dark")
    found["dark"] = violations(page, only=COLOUR_RULES)
    page.set_viewport_size(PHONE)
    found["phone"] = [*violations(page), *page.evaluate(WIDER)]
    show(page, "light")
    wrong = [f"{look}: {what}" for look, all_of_it in found.items() for what in all_of_it]
    assert not wrong, "\n".join([page.url, *wrong])


def show(page: Page, theme: str) -> None:
    """Show the page in a theme, on a desktop's screen."""
    page.set_viewport_size(DESKTOP)
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
    page.evaluate(SWITCH, theme)
