"use strict";
// What an owner manages: data sets, tokens, caps and the budget. The service refuses everybody else; this only hides the forms.
(function () {
  const by = (id) => document.getElementById(id);

  window.makeOwner = function (words, tools) {
    const { make, table, call, guarded, chosen, again } = tools;

    // What cannot be taken back is pressed twice.
    function twice(text, job, label) {
      const button = make("button", text, { type: "button", class: "plain", "aria-label": label });
      let asked = false;
      button.addEventListener("click", guarded(async () => {
        if (!asked) { asked = true; button.textContent = words.really; button.removeAttribute("aria-label"); return; }
        await job();
      }, by("manage")));
      return button;
    }

    const done = (note) => { by("managed").textContent = note ? `${words.done} ${note}` : words.done; };
    const amount = (id) => by(id).value.trim().replace(",", ".");
    const option = (text, value) => make("option", text, value === undefined ? {} : { value });

    async function datasets(all) {
      const files = await call("GET", "/v1/files");
      const rows = all.map((one) => [one.name, one.title, twice(words.take_out, async () => {
        await call("POST", "/v1/datasets/remove", { dataset: one.name });
        await again();
      }, `${words.take_out}: ${one.name}`)]);
      const out = files.taken_out.map((name) => {
        const button = make("button", words.put_back, { type: "button", class: "plain", "aria-label": `${words.put_back}: ${name}` });
        button.addEventListener("click", guarded(async () => { await call("POST", "/v1/datasets", { dataset: name }); await again(); }, by("manage")));
        return [name, words.taken_out, button];
      });
      by("hosted").replaceChildren(table("", [words.dataset, words.dataset_title, ""], [...rows, ...out]));
      by("add-dataset").hidden = !files.open;
      by("no-folder").hidden = files.open;
      by("new-file").replaceChildren(...files.tables.map((name) => option(name)));
      by("new-schema").replaceChildren(...files.schemas.map((name) => option(name)));
      by("token-dataset").replaceChildren(option(words.every_dataset, ""), ...all.map((one) => option(one.title, one.name)));
    }

    async function tokens() {
      const held = (await call("GET", "/v1/tokens")).tokens;
      by("tokens").replaceChildren(table("", [words.analyst, words.role, words.state, words.expires, words.dataset, ""], held.map((one) =>
        [one.analyst, words[one.role], words["state_" + one.state], one.expires || "–", one.datasets.join(", ") || words.every_dataset,
          one.state === "valid" ? twice(words.revoke, async () => {
            await call("POST", "/v1/tokens/revoke", { token: one.id });
            await tokens();
          }, `${words.revoke}: ${one.analyst}`) : ""])));
    }

    by("add-dataset").addEventListener("submit", guarded(async () => {
      const body = { dataset: by("new-name").value.trim(), file: by("new-file").value, schema: by("new-schema").value,
        title: by("new-title").value.trim(), version: by("new-version").value.trim() || "1" };
      body[by("new-measure").value] = amount("new-budget");
      await call("POST", "/v1/datasets", body);
      by("add-dataset").reset();
      await again();
    }, by("add-dataset")));

    by("add-token").addEventListener("submit", guarded(async () => {
      const body = { analyst: by("token-analyst").value.trim(), role: by("token-role").value };
      if (by("token-days").value.trim()) body.days = Number(by("token-days").value.trim().replace(",", "."));
      if (by("token-dataset").value) body.datasets = [by("token-dataset").value];
      const made = await call("POST", "/v1/tokens", body);
      by("new-token").replaceChildren(make("p", words.token_once), make("code", made.text));
      by("new-token").hidden = false;
      by("add-token").reset();
      await tokens();
      by("new-token").focus();
    }, by("add-token")));

    by("set-cap").addEventListener("submit", guarded(async () => {
      const told = await call("POST", "/v1/caps", { dataset: chosen().name, analyst: by("cap-analyst").value.trim(), cap: amount("cap-amount") });
      by("set-cap").reset();
      done(told.note);
      await tools.refresh();
    }, by("set-cap")));

    by("raise").addEventListener("submit", guarded(async () => {
      const told = await call("POST", "/v1/budget/raise", { dataset: chosen().name, total: amount("raise-total"), reason: by("raise-reason").value.trim() });
      by("raise").reset();
      done(told.note);
      await tools.refresh();
    }, by("raise")));

    return {
      async show(all, you) {
        by("manage").hidden = you.role !== "owner";
        by("manage-all").hidden = !you.manages;
        by("manage-one").hidden = !all.length;
        if (you.manages) { await datasets(all); await tokens(); }
      },
      hide() {
        by("manage").hidden = true;
        by("new-token").replaceChildren();
        by("new-token").hidden = true;
        by("managed").textContent = "";
      },
    };
  };
})();
