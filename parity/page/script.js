// The page is whole without this: it adds tables that sort, buttons that copy, and opens what a link leads to.
"use strict";
(() => {
  function open() {
    let id = location.hash.slice(1);
    try {
      id = decodeURIComponent(id);
    } catch { /* somebody's own % */ }
    const at = id && document.getElementById(id);
    for (let node = at; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    if (at) at.scrollIntoView();
  }
  addEventListener("hashchange", open);
  open();

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.querySelectorAll("thead th")];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const key = (row) => row.children[column].dataset.sort;
        const sorted = [...body.rows].sort((a, b) => {
          const x = key(a), y = key(b), numbers = Number(x) - Number(y);
          return Number.isNaN(numbers) ? x.localeCompare(y) : numbers;
        });
        body.append(...(down ? sorted.reverse() : sorted));
      });
    });
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch { // pages of files may not, in some browsers
      const area = document.createElement("textarea");
      area.value = text;
      area.setAttribute("aria-hidden", "true");
      area.className = "unseen";
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  const said = document.createElement("p"); // for who does not see the button
  said.className = "unseen";
  said.setAttribute("role", "status");
  document.body.append(said);
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const done = await copy(button.previousElementSibling.textContent);
    said.textContent = button.textContent = done ? "copied" : "not copied";
    button.focus();
    setTimeout(() => { button.textContent = "copy"; }, 2000);
  });
  for (const command of document.querySelectorAll("code.command")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "copy";
    command.after(" ", button);
  }
})();
