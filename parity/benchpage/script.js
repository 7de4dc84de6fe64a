// The page is whole without this: it adds a filter and tables that sort.
"use strict";
(() => {
  const filter = document.getElementById("filter");
  const words = document.getElementById("words");
  const shown = document.getElementById("shown");
  const rows = [...document.querySelectorAll("#cells tbody tr")];
  const details = [...document.querySelectorAll("main details")];
  const plots = [...document.querySelectorAll("svg.rows")];

  function passes(name, precision) {
    const wanted = document.querySelector("input[name=precision]:checked");
    return (!wanted || !wanted.value || wanted.value === precision) &&
      words.value.toLowerCase().split(/\s+/).every((word) => name.toLowerCase().includes(word));
  }

  function apply() {
    let count = 0;
    for (const row of rows) {
      const good = passes(row.firstElementChild.textContent, row.dataset.precision);
      row.hidden = !good;
      count += good;
    }
    for (const cell of details) cell.hidden = !passes(cell.dataset.name, cell.dataset.precision);
    for (const plot of plots)
      for (const row of plot.querySelectorAll(".row")) row.style.opacity = passes(row.dataset.name, row.dataset.precision) ? 1 : 0.08;
    shown.textContent = `${count} of ${rows.length} cells`;
  }

  if (rows.length > 1) {
    filter.hidden = false;
    filter.addEventListener("input", apply);
    filter.addEventListener("submit", (event) => event.preventDefault());
    apply();
  }

  function open() {
    const cell = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (cell && cell.tagName === "DETAILS") cell.open = true;
  }
  addEventListener("hashchange", open);
  open();

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.querySelectorAll("thead th")];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
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
})();
