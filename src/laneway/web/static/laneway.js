// Keeps pages current and remembers the theme. Everything works without it, by reloading.
(function () {
  "use strict";
  var POLL_SECONDS = 5, POLL_WITH_STREAM_SECONDS = 15;
  var streaming = false, skipped = false, lostSince = null, lastPoll = Date.now();
  // The server's answers are up to two seconds old: what a hint told of may be in the next one.
  var FOLLOW_SECONDS = 2.5, followAt = null;

  // ---- theme
  function shownTheme() {
    var chosen = document.documentElement.dataset.theme;
    return chosen || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  }
  function setUpTheme() {
    var button = document.getElementById("theme");
    if (!button) return;
    function label() { button.textContent = shownTheme() === "dark" ? "Light" : "Dark"; }
    button.hidden = false;
    label();
    button.addEventListener("click", function () {
      var next = shownTheme() === "dark" ? "light" : "dark";
      document.documentElement.dataset.theme = next;
      try { localStorage.setItem("laneway-theme", next); } catch (error) { /* only for this page */ }
      label();
      drawCharts(document, true);
    });
  }

  // ---- regions fetch themselves again, unless somebody is using them
  function inUse(region) {
    var active = document.activeElement;
    if (active && region.contains(active) && active.matches("input:not([type=hidden]), select, textarea")) return true;
    if (region.querySelector("details[open]")) return true;
    var selection = getSelection();
    return Boolean(selection && !selection.isCollapsed && region.contains(selection.anchorNode));
  }
  function say(text) {
    var place = document.getElementById("liveness");
    if (place) place.textContent = text;
  }
  // Where the focus was, by what stands there: a new copy of the element takes it over.
  function label(element) {
    return [element.tagName, element.getAttribute("href"), element.name, element.textContent.trim(),
      element.form ? new URLSearchParams(new FormData(element.form)).toString() : ""].join("\n");
  }
  function focusable(region) { return Array.from(region.querySelectorAll("a[href], button, summary")); }

  var focused = null;
  document.addEventListener("htmx:beforeRequest", function (event) {
    var region = event.target;
    if (!region.classList || !region.classList.contains("region")) return;
    if (document.hidden) { event.preventDefault(); return; }
    if (inUse(region)) { event.preventDefault(); skipped = true; say("updates wait while you use this part"); }
  });
  document.addEventListener("htmx:beforeSwap", function (event) {
    var region = event.detail.elt, active = document.activeElement;
    if (event.detail.xhr.status >= 400) event.detail.shouldSwap = false;
    // Somebody may have begun to use it while the answer was under way.
    if (region && region.classList && region.classList.contains("region") && inUse(region)) event.detail.shouldSwap = false;
    focused = region && active && region.contains(active) ? label(active) : null;
  });
  document.addEventListener("htmx:afterSettle", function (event) {
    drawCharts(document, false);
    if (focused === null) return;
    var region = document.getElementById(event.detail.elt.id) || document;
    var same = focusable(region).find(function (element) { return label(element) === focused; });
    focused = null;
    if (same) same.focus({ preventScroll: true });
  });

  // ---- a lost connection is said aloud, with the time of the numbers
  function lost() {
    if (lostSince === null) lostSince = new Date();
    var notice = document.getElementById("connection");
    notice.textContent = "No connection to the dashboard since " + lostSince.toISOString().slice(11, 19) +
      " UTC: what you see is from before. Trying again.";
    notice.hidden = false;
    document.body.classList.add("lost");
  }
  function found() {
    if (lostSince === null) return;
    lostSince = null;
    document.getElementById("connection").hidden = true;
    document.body.classList.remove("lost");
  }
  document.addEventListener("htmx:sendError", lost);
  document.addEventListener("htmx:timeout", lost);
  document.addEventListener("htmx:afterRequest", function (event) {
    var status = event.detail.xhr ? event.detail.xhr.status : 0;
    if (event.detail.successful) { found(); say("updated " + new Date().toISOString().slice(11, 19)); }
    else if (status === 401) location.reload();
    else if (status === 403) say("you may no longer see this page");
    else if (status >= 500) say("the server could not answer; trying again");
  });
  document.addEventListener("htmx:sseOpen", function () { streaming = true; found(); poll(); });
  document.addEventListener("htmx:sseMessage", function () { followAt = Date.now() + FOLLOW_SECONDS * 1000; });
  document.addEventListener("htmx:sseError", function () { streaming = false; });
  document.addEventListener("htmx:sseClose", function () { streaming = false; });
  function poll() {
    lastPoll = Date.now();
    skipped = false;
    followAt = null;
    if (!document.hidden) document.body.dispatchEvent(new CustomEvent("poll"));
  }
  function tick() {
    var every = lostSince !== null ? 2 : streaming ? POLL_WITH_STREAM_SECONDS : POLL_SECONDS;
    if (skipped && !Array.from(document.querySelectorAll(".region")).some(inUse)) poll();
    else if (followAt !== null && Date.now() >= followAt) poll();
    else if (Date.now() - lastPoll >= every * 1000) poll();
  }
  document.addEventListener("visibilitychange", function () { if (!document.hidden) poll(); });

  // ---- charts: a drawing from the server until scripts run, then one to read values from
  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function clock(seconds) { return new Date(seconds * 1000).toISOString().slice(11, 16); }
  function readOut(figure, data, index) {
    var place = figure.querySelector(".readout");
    if (!place) return;
    place.textContent = index === null || index === undefined ? "last hour" : clock(data.at[index]) + "  " +
      data.lines.map(function (line) { return line.name + " " + (line.values[index] === null ? "not counted" : line.values[index].toLocaleString("en")); }).join(", ");
  }
  function drawCharts(root, again) {
    if (typeof uPlot === "undefined") return;
    root.querySelectorAll("[data-chart]").forEach(function (figure) {
      var place = figure.querySelector(".plot");
      if (!place || (place.dataset.drawn && !again)) return;
      var data = JSON.parse(figure.dataset.chart);
      if (data.at.length < 2 || !place.querySelector("svg, .uplot")) return;
      place.textContent = "";
      place.dataset.drawn = "yes";
      var series = [{ label: "at" }].concat(data.lines.map(function (line, i) {
        return { label: line.name, stroke: colour("--series-" + (i + 1)), width: 1.5, points: { show: false } };
      }));
      function hours(u, ticks) { return ticks.map(function (t) { return clock(t); }); }
      var axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
      new uPlot({
        width: place.clientWidth, height: 150, tzDate: function (t) { return uPlot.tzDate(new Date(t * 1000), "Etc/UTC"); },
        series: series, axes: [Object.assign({ values: hours, size: 26 }, axis), Object.assign({ size: 46 }, axis)],
        scales: { y: { range: function (u, low, high) { return [0, Math.max(high * 1.1, 1)]; } } },
        legend: { show: false }, cursor: { drag: { x: false, y: false } },
        hooks: { setCursor: [function (u) { readOut(figure, data, u.cursor.idx); }] }
      }, [data.at].concat(data.lines.map(function (line) { return line.values; })), place);
    });
  }

  // ---- start
  document.addEventListener("DOMContentLoaded", function () {
    setUpTheme();
    drawCharts(document, false);
    // The result is shown once: a reload or a bookmark must not show it again.
    var address = new URL(location.href);
    if (address.searchParams.has("done")) {
      address.searchParams.delete("done");
      history.replaceState(null, "", address.pathname.split("/").pop() + address.search || "./");
    }
    setInterval(tick, 1000);
  });
})();
