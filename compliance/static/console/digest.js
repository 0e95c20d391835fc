// Fill in name, size and SHA-256 of a chosen file. The file stays in the browser.
(() => {
    async function fill(form, file) {
        const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await file.arrayBuffer()));
        form.elements.name.value = file.name;
        form.elements.size.value = file.size;
        form.elements.sha256.value = [...digest].map((octet) => octet.toString(16).padStart(2, "0")).join("");
    }

    document.addEventListener("DOMContentLoaded", () => {
        const digest = document.querySelector("input[name=sha256]");
        // Browsers offer digests to pages over TLS and on localhost only.
        if (!digest || !window.crypto?.subtle) return;
        const form = digest.form;
        const label = document.createElement("label");
        label.className = "console-file";
        label.textContent = "Choose the file: its digest is computed here, and the file is not sent.";
        const chooser = document.createElement("input");
        chooser.type = "file";
        chooser.addEventListener("change", () => chooser.files[0] && fill(form, chooser.files[0]));
        label.append(chooser);
        form.querySelector("dl").after(label);
    });
})();
