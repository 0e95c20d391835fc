/* What Unfold's templates leave to the mouse and to the eye, for keyboards and screen readers. */

(() => {
    const CLICKABLE = "[x-on\\:click]:not(a[href], button, input, select, textarea, summary, label)";
    /* The names of controls that show only an icon. */
    const NAMES = { close: "Close", more_horiz: "More actions", more_vert: "More about this field", chevron_right: "Show or hide" };

    /* Icons are words drawn as pictures by their font: a screen reader would read the words. */
    function silence(icon) {
        const control = icon.matches(CLICKABLE) ? icon : icon.closest("a, button, " + CLICKABLE);
        if (control && !control.title && !control.ariaLabel && control.textContent.trim() === icon.textContent.trim()) {
            control.ariaLabel = NAMES[icon.textContent.trim()] ?? icon.textContent.trim().replaceAll("_", " ");
        }
        if (icon !== control) {
            icon.ariaHidden = "true";
        }
    }

    /* What reacts to a click becomes a button that can be reached and pressed. */
    function openToKeys(element) {
        if (element.role) {
            return;
        }
        if (element.id === "changelist-filter-close") {
            element.ariaLabel = "Close the filters";
        }
        element.role = "button";
        element.tabIndex = 0;
        element.addEventListener("keydown", (event) => {
            if (event.target === element && (event.key === "Enter" || event.key === " ")) {
                event.preventDefault();
                element.click();
            }
        });
    }

    /* A box that scrolls is reached by the arrow keys once it has the focus. It is no landmark. */
    function reachScrolling(box) {
        if (box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX !== "visible") {
            box.tabIndex = 0;
        }
    }

    /* select2 hides the select that the label belongs to. */
    function nameChoice(choice) {
        const label = choice.previousElementSibling?.labels?.[0]?.textContent.trim();
        choice.querySelectorAll("[role=combobox], [role=textbox]").forEach((part) => { part.ariaLabel = label ?? "Choice"; });
    }

    function mend(root) {
        root.querySelectorAll(CLICKABLE).forEach(openToKeys);
        root.querySelectorAll(".material-symbols-outlined:not([aria-hidden])").forEach(silence);
        root.querySelectorAll("#nav-sidebar-apps a.active").forEach((link) => { link.ariaCurrent = "page"; });
        root.querySelectorAll(".simplebar-content-wrapper[role=region]").forEach((box) => { box.role = "group"; });
        root.querySelectorAll(".select2-container").forEach(nameChoice);
        root.querySelectorAll(".console-panel, .readonly, .console-scroll").forEach(reachScrolling);
    }

    document.addEventListener("DOMContentLoaded", () => {
        const observed = { childList: true, subtree: true };
        const observer = new MutationObserver(() => {
            observer.disconnect();
            mend(document);
            observer.observe(document.body, observed);
        });
        mend(document);
        observer.observe(document.body, observed);
        addEventListener("resize", () => mend(document));
    });
})();
