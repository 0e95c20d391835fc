/* Starts Swagger UI, and adds what it leaves without a name or out of a keyboard's reach. */
(() => {
    const page = document.getElementById("swagger-ui");

    function nameChoice(choice) {
        const row = choice.closest("tr");
        const parameter = row?.dataset.paramName ?? row?.querySelector(".parameter__name")?.textContent;
        choice.ariaLabel = choice.id === "servers" ? "Server" : (parameter ?? "Example");
    }

    new MutationObserver(() => {
        page.querySelectorAll("select:not([aria-label])").forEach(nameChoice);
        page.querySelectorAll("pre:not([tabindex])").forEach((box) => { box.tabIndex = 0; });
        page.querySelectorAll("table[role=region]:not([aria-label])").forEach((table) => { table.ariaLabel = table.id.replaceAll("_", " "); });
    }).observe(page, { childList: true, subtree: true });

    SwaggerUIBundle({
        url: page.dataset.description,
        domNode: page,
        presets: [SwaggerUIBundle.presets.apis],
        layout: "BaseLayout",
        deepLinking: false, // its links to operations would stand inside the buttons that open them
    });
})();
