// What every page needs: the token for requests of its own, a form's fields as a body, and jobs that are watched.
export const token = document.querySelector('meta[name="desk-token"]')?.content ?? "";

export async function ask(address, body, method = "POST") {
  const reply = await fetch(address, {
    method,
    body,
    headers: { "accept": "application/json", "x-desk-token": token },
  });
  const said = await reply.json().catch(() => ({}));
  if (!reply.ok) throw Object.assign(new Error(said.what ?? String(reply.status)), { said });
  return said;
}

export function fields(form) {
  return new URLSearchParams(new FormData(form));
}

export function later(work, pause = 120) {
  // The last call within the pause is the one that is done.
  let waiting = 0;
  return (...given) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => work(...given), pause);
  };
}

const job = document.querySelector("[data-job]");
if (job) watch(job);

async function watch(place) {
  const bar = place.querySelector("progress"), doing = place.querySelector(".doing");
  for (;;) {
    await new Promise((done) => setTimeout(done, 300));
    try {
      const reply = await fetch(`/jobs/${place.dataset.job}`, { headers: { accept: "application/json" } });
      const said = await reply.json();
      if (said.state !== "running") break;
      bar.value = said.share;
      if (said.doing) doing.textContent = said.doing;
    } catch { /* the server may be starting again: asked once more */ }
  }
  location.reload();
}

// A form that was sent once is not sent twice by an impatient hand; what the button says still goes along.
document.addEventListener("submit", (event) => {
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
});
addEventListener("pageshow", () => document.querySelectorAll("form").forEach((form) => delete form.dataset.sent));
