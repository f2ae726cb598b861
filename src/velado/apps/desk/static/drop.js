// A file that is dropped or chosen is sent as it is; the page then shows how it was read.
import { ask } from "/static/desk.js";

const place = document.getElementById("drop"), chosen = document.getElementById("file"), sent = document.getElementById("sent");

async function send(file) {
  sent.textContent = place.dataset.sending;
  try {
    const said = await ask(`/open/upload/${encodeURIComponent(file.name)}`, file, "PUT");
    location.assign(said.go);
  } catch (error) {
    const said = error.said ?? {};
    sent.textContent = [said.what ?? place.dataset.failed, said.why, said.fix].filter(Boolean).join(" ");
    chosen.value = "";
  }
}

chosen.addEventListener("change", () => chosen.files.length && send(chosen.files[0]));
for (const name of ["dragenter", "dragover"]) {
  addEventListener(name, (event) => { event.preventDefault(); place.classList.add("over"); });
}
addEventListener("dragleave", () => place.classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  place.classList.remove("over");
  if (event.dataTransfer.files.length) send(event.dataTransfer.files[0]);
});
