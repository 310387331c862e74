// Before any page: what must never happen is written down.
window.__seen = [];
document.addEventListener("securitypolicyviolation", function (event) {
  window.__seen.push("CSP: " + event.violatedDirective + " " + event.blockedURI);
});
window.__ran = function (what) { window.__seen.push("ran: " + what); };
window.alert = window.confirm = window.prompt = function () { window.__seen.push("dialog"); };
