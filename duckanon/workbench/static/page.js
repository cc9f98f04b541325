// Forms are sent without leaving the page, parts that are worked on are asked for again, other windows are listened to.
"use strict";

const root = document.body.dataset.root;
const page = () => document.getElementById("page");

function tell(words) {
  const line = document.createElement("p");
  line.className = "alert";
  line.textContent = words + " ";
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = "Look again";
  line.append(link);
  document.getElementById("told").replaceChildren(line);
}

function show(html) {
  const focused = document.activeElement && document.activeElement.id;
  const fresh = new DOMParser().parseFromString(html, "text/html").getElementById("page");
  if (!fresh) return;
  const open = [...document.querySelectorAll("details[open][id]")].map((one) => one.id);
  page().replaceWith(fresh);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  const again = focused && document.getElementById(focused);
  if (again) again.focus({preventScroll: true});
  poll();
}

async function send(form, submitter) {
  page().setAttribute("aria-busy", "true");
  try {
    const body = new URLSearchParams(new FormData(form, submitter));
    show(await (await fetch(form.action, {method: "POST", body})).text());
  } catch {
    tell("The workbench does not answer: it was ended.");
  }
  page().removeAttribute("aria-busy");
}

const asked = new WeakSet();

function poll() {
  if (document.querySelector("[data-reload]")) return location.reload();  // it is whole: also where it came with the page
  for (const part of document.querySelectorAll("[data-poll]")) {
    if (asked.has(part)) continue;
    asked.add(part);
    setTimeout(async () => {
      if (!part.isConnected) return;
      try {
        const html = await (await fetch(part.dataset.poll)).text();
        const focused = document.activeElement && document.activeElement.id;
        const fresh = new DOMParser().parseFromString(html, "text/html").body.firstElementChild;
        if (!part.isConnected || !fresh) return;
        part.replaceWith(fresh);
        const again = focused && document.getElementById(focused);
        if (again) again.focus({preventScroll: true});
      } catch {
        tell("The workbench does not answer: it was ended.");
        return;
      }
      poll();
    }, 400);
  }
}

document.addEventListener("submit", (event) => {
  event.preventDefault();
  send(event.target, event.submitter);
});
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-send]")) event.target.form.requestSubmit();
});
document.addEventListener("input", (event) => {
  if (event.target.type === "range") event.target.parentElement.querySelector("output").textContent = event.target.value;
});

new EventSource(`${root}/events`).onmessage = (event) => {
  const now = JSON.parse(event.data);
  setTimeout(() => {  // an own change is shown by then
    const {version, refusals} = page().dataset;
    if (page().getAttribute("aria-busy")) return;
    if (version !== now.version) tell("The policy was changed in another window, or by another program.");
    else if (Number(refusals) < now.refusals) {
      page().dataset.refusals = now.refusals;
      tell("Another window tried to change an older version of the policy; that was refused.");
    }
  }, 700);
};

poll();
