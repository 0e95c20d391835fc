// Keep the time left of running clocks current, without asking the server.
(() => {
    const minute = 60_000;

    function inWords(left) {
        const minutes = Math.floor(Math.abs(left) / minute);
        const [days, hours] = [Math.floor(minutes / 1440), Math.floor(minutes / 60) % 24];
        const text = days ? `${days} d ${hours} h` : `${hours} h ${minutes % 60} min`;
        return `${text} ${left > 0 ? "left" : "over"}`;
    }

    function refresh() {
        for (const clock of document.querySelectorAll("[data-due]")) {
            const label = clock.firstElementChild ?? clock;
            label.textContent = inWords(new Date(clock.dataset.due) - Date.now());
        }
    }

    document.addEventListener("DOMContentLoaded", () => {
        refresh();
        setInterval(refresh, minute / 2);
    });
})();
