// Follows the events, and fetches the page anew where they may have changed what it shows.

const live = document.getElementById("live");
const table = document.querySelector("table.events");

function cell(text, name) {
  const found = document.createElement("td");
  found.textContent = text;
  if (name) found.className = name;
  return found;
}

function row(event) {
  const found = document.createElement("tr");
  found.className = "new";
  found.dataset.number = event.sequence;
  const what = document.createElement("td");
  const subject = document.createElement("code");
  subject.textContent = event.subject;
  what.append(subject, ` ${event.message}`);
  if (event.data.owners?.length) {
    const owners = document.createElement("span");
    owners.className = "dim";
    owners.textContent = ` (${event.data.owners.slice(0, 3).join(", ")})`;
    what.append(owners);
  }
  found.append(
    cell(event.sequence, "dim"),
    cell(event.hour),
    cell(event.kind, event.look),
    what,
  );
  return found;
}

function show(event) {
  const body = table?.tBodies[0];
  if (!body || body.querySelector(`[data-number="${event.sequence}"]`)) return;
  body.prepend(row(event));
  while (body.rows.length > Number(table.dataset.live)) body.lastElementChild.remove();
}

let due = 0;
function refresh() {
  // One event seldom comes alone.
  if (due || location.pathname.startsWith("/events")) return;
  due = setTimeout(async () => {
    due = 0;
    const answer = await fetch(location.href);
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const before = document.getElementById("find");
    const held = focused();
    document.querySelector("main").replaceChildren(...fresh.querySelector("main").childNodes);
    const find = document.getElementById("find");
    if (find && before) find.value = before.value;
    filter();
    held?.();
  }, 300);
}

// Whoever types or goes by the keyboard is where they were.
function focused() {
  const now = document.activeElement;
  if (!document.querySelector("main").contains(now)) return null;
  const { selectionStart: start, selectionEnd: end } = now;
  const href = now.getAttribute("href");
  const same = now.id ? `#${now.id}` : `main a[href="${CSS.escape(href ?? "")}"]`;
  return () => {
    const found = document.querySelector(same);
    found?.focus();
    if (typeof start === "number") found?.setSelectionRange(start, end);
  };
}

function filter() {
  const wanted = (document.getElementById("find")?.value ?? "").toLowerCase();
  for (const row of document.querySelectorAll("table.filtered tbody tr")) {
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
  }
}

document.addEventListener("input", (event) => {
  if (event.target.id === "find") filter();
});

function follow() {
  const query = new URLSearchParams();
  if (table?.dataset.kind) query.set("kind", table.dataset.kind);
  if (table?.dataset.about) query.set("about", table.dataset.about);
  const stream = new EventSource(`/api/v1/events/stream?${query}`);
  stream.onopen = () => {
    live.textContent = "live";
    live.className = "live on";
  };
  stream.onerror = () => {
    live.textContent = "not connected";
    live.className = "live off";
    // A browser asks again by itself, unless it was turned away: too many streams were open.
    if (stream.readyState === EventSource.CLOSED) setTimeout(follow, 5000);
  };
  stream.onmessage = (message) => {
    show(JSON.parse(message.data));
    refresh();
  };
}

follow();
setInterval(refresh, 30000);
