/* Swagger UI's choice of a server has a label that it does not belong to. */
new MutationObserver(() => {
    const servers = document.getElementById("servers");
    if (servers && !servers.ariaLabel) {
        servers.ariaLabel = "Server";
    }
}).observe(document.getElementById("swagger-ui"), { childList: true, subtree: true });
