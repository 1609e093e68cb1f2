// What the pages do beyond links and forms: live parts are replaced by what the server sends, times grow older, and a form is sent once.
"use strict";

const units = (document.body.dataset.units || "").split("|");
const stale = document.querySelector(".stale");
const signedOut = document.querySelector(".signed-out");

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

// What these attributes say comes from the page: what somebody opened or sent, and when an age was told.
const kept = new Set(["open", "data-told", "data-sent", "aria-busy"]);

// Makes `old` like `fresh`, and touches nothing that is already so: what somebody has open, has chosen, plays or reads stays where it is.
function change(old, fresh) {
  for (const { name } of [...old.attributes]) {
    if (!kept.has(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (!kept.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  changeParts(old, fresh);
}

// Two elements are the same one if they have the same id or, without one, the same kind and the same address.
function keyOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return String(node.nodeType);
  if (node.id) return "#" + node.id;
  const link = node.matches("a[href], form[action]") ? node : node.localName === "tr" && node.querySelector("a[href]");
  return node.localName + (link ? " " + (link.getAttribute("href") || link.getAttribute("action")) : "");
}

function changeParts(old, fresh) {
  const known = new Map();
  for (const child of old.childNodes) {
    const key = keyOf(child);
    known.set(key, [...(known.get(key) || []), child]);
  }
  const pairs = [...fresh.childNodes].map((child) => [child, (known.get(keyOf(child)) || []).shift()]);
  for (const left of known.values()) for (const gone of left) gone.remove();
  let next = old.firstChild;
  for (const [child, same] of pairs) {
    if (same && same === next) next = next.nextSibling;
    else old.insertBefore(same || child, next);
    if (!same) continue;
    if (same.nodeType === Node.ELEMENT_NODE) change(same, child);
    else if (same.data !== child.data) same.data = child.data;
  }
}

function replace(region, html) {
  const focused = region.contains(document.activeElement) ? document.activeElement : null;
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  changeParts(region, fresh.content);
  // What changed its place has lost the focus.
  if (focused && focused.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
  noteAges(region);
}

// Something comes every 5 seconds, if only a heartbeat. A cable that was pulled says nothing at all.
const LONGEST_SILENCE = 20000;

function watch(region) {
  let source = null;
  let isOver = false;
  let silence = 0;
  const listen = () => {
    clearTimeout(silence);
    silence = setTimeout(() => {
      stale.hidden = false;
      end();
      begin();
    }, LONGEST_SILENCE);
  };
  const begin = () => {
    if (source || isOver || document.hidden) return;
    source = new EventSource(region.dataset.live);
    listen();
    const show = (event) => {
      listen();
      replace(region, event.data);
      stale.hidden = true;
    };
    source.onmessage = show;
    source.addEventListener("heartbeat", listen);
    // The server is there, but cannot look.
    source.addEventListener("stale", () => {
      listen();
      stale.hidden = false;
    });
    source.addEventListener("last", (event) => {
      show(event);
      isOver = true;
      end();
    });
    source.addEventListener("signed-out", () => {
      stale.hidden = true;
      signedOut.hidden = false;
      isOver = true;
      end();
    });
    source.onerror = () => {
      stale.hidden = false;
      // What was refused is not asked for again by the browser itself.
      if (source && source.readyState === EventSource.CLOSED) {
        end();
        setTimeout(begin, 5000);
      }
    };
  };
  const end = () => {
    clearTimeout(silence);
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
