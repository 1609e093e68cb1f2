// What the pages do beyond links and forms: live parts are replaced by what the server sends, times grow older, and a form is sent once.
"use strict";

const units = (document.body.dataset.units || "").split("|");
const stale = document.querySelector(".stale");

// The same steps as `times.rs`.
function ago(seconds) {
  const [unit, size] = seconds < 120 ? [0, 1] : seconds < 7200 ? [1, 60] : seconds < 172800 ? [2, 3600] : [3, 86400];
  return units[unit].replace("{n}", String(Math.floor(Math.max(0, seconds) / size)));
}

// The clock of the browser may be wrong: the server says how old something is, and the browser only how long ago it said so.
function noteAges(root) {
  for (const time of root.querySelectorAll("time.ago")) time.dataset.told = String(performance.now());
}

function growOlder() {
  for (const time of document.querySelectorAll("time.ago")) {
    const age = Number(time.dataset.age) + (performance.now() - Number(time.dataset.told)) / 1000;
    if (age >= 0) time.textContent = ago(age);
  }
}

// Puts the new part in place, and leaves open what was open and the focus where it was.
function replace(region, html) {
  const open = [...region.querySelectorAll("details[open]")].map((one) => one.id);
  const focused = region.contains(document.activeElement) ? document.activeElement : null;
  const inside = focused && (focused.id || (focused.closest("details") || {}).id);
  // The same link may stand there more than once.
  const address = focused && focused.getAttribute("href");
  const same = () => [...region.querySelectorAll("a[href]")].filter((link) => link.getAttribute("href") === address);
  const place = address ? same().indexOf(focused) : -1;
  region.innerHTML = html;
  for (const id of open) {
    const details = document.getElementById(id);
    if (details) details.open = true;
  }
  if (inside) {
    const again = document.getElementById(inside);
    const target = again && again.matches("details") ? again.querySelector("summary") : again;
    if (target) target.focus({ preventScroll: true });
  } else if (place >= 0) {
    const links = same();
    if (links.length) links[Math.min(place, links.length - 1)].focus({ preventScroll: true });
  }
  noteAges(region);
}

function watch(region) {
  let source = null;
  let isOver = false;
  const begin = () => {
    if (source || isOver || document.hidden) return;
    source = new EventSource(region.dataset.live);
    const show = (event) => {
      replace(region, event.data);
      stale.hidden = true;
    };
    source.onmessage = show;
    // The server is there, but cannot look.
    source.addEventListener("stale", () => { stale.hidden = false; });
    source.addEventListener("last", (event) => {
      show(event);
      isOver = true;
      end();
    });
    source.onerror = () => {
      stale.hidden = false;
      // Whoever is signed out, or refused, is not asked again by the browser itself.
      if (source && source.readyState === EventSource.CLOSED) {
        end();
        setTimeout(begin, 5000);
      }
    };
  };
  const end = () => {
    if (source) source.close();
    source = null;
  };
  // Nobody looks at a hidden page.
  document.addEventListener("visibilitychange", () => (document.hidden ? end() : begin()));
  window.addEventListener("pagehide", end);
  begin();
}

for (const region of document.querySelectorAll("[data-live]")) watch(region);
noteAges(document);
setInterval(growOlder, 5000);

// Whatever takes longer than a second says so, until the next page is there.
const waiting = document.querySelector(".waiting");
let waitingTimer = 0;
function leave() {
  clearTimeout(waitingTimer);
  waitingTimer = setTimeout(() => { waiting.hidden = false; }, 1000);
}
function stay() {
  clearTimeout(waitingTimer);
  waiting.hidden = true;
}
document.addEventListener("click", (event) => {
  const link = event.target.closest && event.target.closest("a[href]");
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey;
  if (!link || !isPlain || link.target || link.hasAttribute("download") || link.getAttribute("href").startsWith("#")) return;
  leave();
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  leave();
  if (form.method !== "post") return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "yes";
  const button = form.querySelector("button");
  if (button) button.setAttribute("aria-busy", "true");
});
// A page that the browser had kept is as it was before.
window.addEventListener("pageshow", () => {
  stay();
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    const button = form.querySelector("button");
    if (button) button.removeAttribute("aria-busy");
  }
});
