/* Keys of the inboxes of reviews and approvals and of access reviews, and ten seconds in which a verdict can be undone.

Each key presses what carries it in `data-key`; nothing works only by key. The service never deletes a review, so
the browser holds a verdict back. Without this script the form sends it at once. */
(() => {
    "use strict";

    const STORED = "console-inbox-keys", HELD_FOR = 10_000, VERDICTS = /^(dismiss|confirm)/;
    const fields = "input, textarea, select, [contenteditable]";
    const isOff = () => localStorage.getItem(STORED) === "off";
    const pressed = (key) => document.querySelector(`[data-key="${CSS.escape(key)}"]:not([hidden])`);

    function act(key) {
        const found = pressed(key);
        if (!found) return false;
        if (found.tagName === "DETAILS") {
            found.open = !(key === "?" && found.open);
            const note = document.getElementById("inbox-note");
            if (key === "?") found.querySelector("summary").focus();
            else if (note && !note.value.trim()) note.focus();
            else found.querySelector("button").focus();
        } else {
            found.click();
        }
        return true;
    }

    document.addEventListener("keydown", (event) => {
        if (event.key === "Escape" && event.target.matches(fields)) event.target.blur();
        if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || isOff()) return;
        if (event.target.matches(fields) && event.target.type !== "checkbox") return;
        if ("jkacdersu?".includes(event.key) && act(event.key)) event.preventDefault();
    });

    function showSwitch() {
        const toggle = document.getElementById("inbox-keys-switch");
        if (!toggle) return;
        toggle.hidden = false;
        toggle.textContent = isOff() ? "Turn keys on" : "Turn keys off";
        toggle.onclick = () => {
            localStorage.setItem(STORED, isOff() ? "on" : "off");
            showSwitch();
        };
    }
    showSwitch();

    const notice = document.getElementById("inbox-held");
    if (!notice) return;
    const [undo, close] = notice.querySelectorAll("button");
    const inbox = () => document.querySelector(".inbox");
    let held = null;  // the verdict that is not sent yet, with the page that it was given on

    function tell(...said) {
        const focused = notice.contains(document.activeElement) && document.activeElement;
        notice.firstElementChild.replaceChildren(...said);
        notice.classList.toggle("on", said.length > 0);
        undo.hidden = !held;
        close.hidden = !said.length;
        close.textContent = held ? "Send now" : "Close";
        if (focused && (focused.hidden || !focused.isConnected)) (close.hidden ? focusEvent() : close.focus());
    }

    function focusEvent() {
        scrollTo(0, 0);
        (document.getElementById("inbox-event") || document.getElementById("main-content")).focus();
    }

    function show(content) {
        inbox().replaceWith(content);
        showSwitch();
        focusEvent();
    }

    function release() {
        const given = held;
        clearTimeout(given?.timer);
        held = null;
        return given;
    }

    const post = ({ url, body }, redirect) => fetch(url, { method: "POST", body, redirect, keepalive: true });
    const parsed = async (answer) => new DOMParser().parseFromString(await answer.text(), "text/html");

    function bringBack(given) {
        given.isBack = true;
        given.before.inert = false;
    }

    /* Say why, and bring the row back beside the event that is shown by now. */
    function refuse(given, page) {
        const found = page?.querySelector("#console-messages .errornote, .inbox-error");
        const why = found ? found.textContent.trim().replace(/\.$/, "") : "the service did not take it";
        tell(`Not recorded: ${why}. ${given.named} `, ...(held?.told ?? []));
        bringBack(given);
        if (given.before.isConnected) return;
        const source = page?.querySelector(".inbox") || given.before;
        const queue = document.querySelector(".inbox-queue"), back = source.querySelector(".inbox-queue");
        if (!queue) show(source);
        else if (back) queue.replaceWith(back);
        showSwitch();
    }

    async function send(given) {
        if (!held) tell(given.named);
        const page = await post(given, "follow").then(parsed).catch(() => null);
        const told = page?.querySelectorAll("#console-messages li > div") ?? [];
        if (!told.length || page.querySelector("#console-messages .errornote")) refuse(given, page);
        else if (!held) tell(...told);
    }

    /* Send what is held, then do what leads away; what the service says of it stands on the next page. */
    async function leave(go) {
        const given = release();
        tell(given.named);
        const answer = await post(given, "manual").catch(() => null);
        if (answer?.type === "opaqueredirect") go();
        else refuse(given);
    }

    async function hold(form, button) {
        const earlier = release(), data = new FormData(form, button), next = new URL(form.action);
        const ids = button.value.endsWith("_ticked") ? data.getAll("ticked").join() : data.get("event");
        const name = document.getElementById("inbox-event").innerText.replace(/\s+/g, " ");
        const what = ids.includes(",") ? `${ids.split(",").length} events of ${name.split(" by ").pop()}` : name;
        const named = `${button.firstChild.textContent.trim()}: ${what}.`;
        const mine = { url: form.action, body: new URLSearchParams(data), before: inbox(), named, address: location.href };
        mine.timer = setTimeout(() => send(release()), HELD_FOR);
        mine.before.inert = true;
        document.querySelector("#console-messages ul")?.remove();
        held = mine;
        const page = document.getElementById("inbox-event-page").cloneNode(true);
        page.removeAttribute("id");
        page.textContent = "event's page";
        mine.told = [named, " Sent in ten seconds; the ", page, " can change it later."];
        tell(...mine.told);
        if (earlier) await send(earlier);
        next.searchParams.delete("event");
        next.searchParams.set("after", data.get("event"));
        next.searchParams.set("held", ids);
        const content = await fetch(next).then(parsed).then((found) => found.querySelector(".inbox")).catch(() => null);
        if (mine.isBack) return;
        if (!content) return held === mine ? refuse(release()) : location.reload();
        show(content);
        history.replaceState(null, "", document.getElementById("inbox-decide")?.action || next.pathname);
    }

    undo.addEventListener("click", () => {
        const given = release();
        bringBack(given);
        history.replaceState(null, "", given.address);
        tell(`Undone, nothing was recorded. ${given.named}`);
        show(given.before);
    });
    close.addEventListener("click", () => (held ? send(release()) : tell()));
    document.addEventListener("submit", (event) => {
        const { target, submitter } = event, isVerdict = VERDICTS.test(submitter?.value);
        if (target.closest("[inert]")) return event.preventDefault();
        const isTicked = !submitter?.value?.endsWith("_ticked") || new FormData(target).has("ticked");
        if (target.id === "inbox-decide" && isVerdict && isTicked) {
            event.preventDefault();
            hold(target, submitter);
        } else if (held) {
            event.preventDefault();
            leave(() => target.requestSubmit(submitter));
        }
    });
    document.addEventListener("click", (event) => {
        const link = event.target.closest("a[href]");
        if (!held || !link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
        if (link.target === "_blank" || link.getAttribute("href").startsWith("#")) return;
        event.preventDefault();
        leave(() => location.assign(link.href));
    });
    addEventListener("pagehide", () => {
        if (held) post(release(), "manual");
        tell();
    });
})();
