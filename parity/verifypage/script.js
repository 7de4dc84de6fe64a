// A filter of cells, and one button that opens or closes those that are shown.
(() => {
  const filter = document.getElementById("filter");
  const words = document.getElementById("words");
  const shown = document.getElementById("shown");
  const rows = [...document.querySelectorAll("#matrix tbody tr")].map((row) => ({ row, marks: [...row.querySelectorAll(".mark")] }));
  const marks = new Map(rows.flatMap(({ marks }) => marks.map((mark) => [mark.getAttribute("href").slice(1), mark])));
  const cells = [...document.querySelectorAll("details.cell")].map((details) =>
    ({ details, mark: marks.get(details.dataset.cell), text: (details.dataset.name + " " + details.dataset.verdict).toLowerCase() }));
  const choices = [...filter.querySelectorAll("select")];

  function apply() {
    const wanted = words.value.toLowerCase().split(/\s+/);
    let count = 0;
    for (const { details, mark, text } of cells) {
      const good = choices.every((c) => !c.value || details.dataset[c.name] === c.value) && wanted.every((word) => text.includes(word));
      details.hidden = mark.hidden = !good;
      count += good;
    }
    for (const { row, marks } of rows) row.hidden = marks.every((mark) => mark.hidden);
    shown.textContent = `${count} of ${cells.length} cells`;
  }

  if (cells.length > 1) {
    filter.hidden = false;
    filter.addEventListener("input", apply);
    filter.addEventListener("submit", (event) => event.preventDefault());
    apply();
  }

  const all = document.createElement("button");
  all.type = "button";
  all.className = "button";
  const closed = () => cells.filter(({ details }) => !details.hidden && !details.open);
  const say = () => { all.textContent = closed().length ? "open all that are shown" : "close all"; };
  all.addEventListener("click", () => {
    const opening = closed();
    for (const { details } of opening.length ? opening : cells) details.open = opening.length > 0;
    say();
  });
  for (const { details } of cells) details.addEventListener("toggle", say);
  filter.addEventListener("input", say);
  say();
  document.getElementById("each-cell").after(all);
})();
