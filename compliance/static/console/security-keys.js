// A form with `data-security-key` (`get` or `create`) asks the browser for a key and sends what it answers.
"use strict";

(() => {
    const SAID = {
        NotAllowedError: "Nothing was used: it was cancelled, took too long, or this key is not registered here.",
        InvalidStateError: "This key is registered already.",
        SecurityError: "Keys do not work at this address: open the console under its usual one.",
        NotSupportedError: "This key cannot be used here: it knows none of the algorithms that the service takes.",
    };
    const UNKNOWN = "The key did not answer. Try again, or use another way.";
    const UNABLE = "This browser cannot use security keys here.";

    const isAble = () =>
        window.PublicKeyCredential?.parseRequestOptionsFromJSON && window.PublicKeyCredential.prototype.toJSON;

    function ask(kind) {
        const options = JSON.parse(document.getElementById("key-options").textContent);
        const create = options.creation_options?.publicKey;
        const get = options.request_options?.publicKey;
        return kind === "create"
            ? navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(create) })
            : navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(get) });
    }

    async function use(form, button) {
        const said = form.querySelector("[data-said]");
        if (!isAble()) {
            said.textContent = UNABLE;
            return;
        }
        button.disabled = true;
        said.textContent = "Follow your browser: touch the key, or unlock the passkey.";
        try {
            const credential = await ask(form.dataset.securityKey);
            form.elements.credential.value = JSON.stringify(credential);
            form.submit();
        } catch (error) {
            said.textContent = SAID[error.name] || UNKNOWN;
            button.disabled = false;
            button.focus();
        }
    }

    for (const form of document.querySelectorAll("form[data-security-key]")) {
        const isNew = form.dataset.securityKey === "create";
        const button = form.querySelector(isNew ? "[type=submit]" : "[data-asks]");
        const said = form.querySelector("[data-said]");
        if (said.textContent) {
            // A screen reader reads what was there when the page was loaded only if it gets the focus.
            said.tabIndex = -1;
            said.focus();
        }
        if (!button) continue;
        if (isNew) {
            form.addEventListener("submit", (event) => {
                event.preventDefault();
                if (form.reportValidity()) use(form, button);
            });
        } else {
            button.hidden = false;
            button.addEventListener("click", () => use(form, button));
        }
    }
})();
