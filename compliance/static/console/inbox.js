/* Keys of the review inbox. Each key presses what carries it in `data-key`; nothing works only by key. */
(() => {
    "use strict";

    const STORED = "console-inbox-keys";
    const fields = "input, textarea, select, [contenteditable]";
    const pressed = (key) => document.querySelector(`[data-key="${CSS.escape(key)}"]`);
    const isOff = () => localStorage.getItem(STORED) === "off";

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
        if ("jkcds?".includes(event.key) && act(event.key)) event.preventDefault();
    });

    const toggle = document.getElementById("inbox-keys-switch");
    if (toggle) {
        const show = () => { toggle.textContent = isOff() ? "Turn keys on" : "Turn keys off"; };
        toggle.hidden = false;
        toggle.addEventListener("click", () => {
            localStorage.setItem(STORED, isOff() ? "on" : "off");
            show();
        });
        show();
    }
})();
