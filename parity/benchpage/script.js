// A filter of cells.
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
})();
