// A mark of the chart chooses what the table's button beside it chooses.
const form = document.getElementById("choose");
for (const mark of document.querySelectorAll("use[data-k]")) {
  mark.addEventListener("click", () => {
    const button = [...form.querySelectorAll("button[name=choice]")].find((one) => one.value === `${mark.dataset.method}@${mark.dataset.k}`);
    button?.click();
  });
}
