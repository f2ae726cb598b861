// The page is asked for again every two seconds while somebody looks, and its table takes the place of the old one.
const place = () => document.getElementById("streams");
async function again() {
  if (document.visibilityState !== "visible" || place().contains(document.activeElement)) return;
  try {
    const reply = await fetch(location.href, { credentials: "same-origin" });
    if (!reply.ok) return;
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    const fresh = page.getElementById("streams");
    if (fresh) place().replaceWith(document.importNode(fresh, true));
  } catch {
    // The desk was ended or is starting anew; the next look tries again.
  }
}
setInterval(again, 2000);
