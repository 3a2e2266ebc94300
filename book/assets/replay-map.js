// The live figure of chapter 6: how many tokens are replayed, and which rows are right. A custom element without a library.
// What is exact and how far the rest is off is computed by fp4kv at build and stands in the element's JSON; here it is looked up.
(() => {
const SVG = "http://www.w3.org/2000/svg";
const LEFT = 66, TOP = 30, PITCH = 19, ROW = 50;

const svg = (name, attributes = {}, text) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
};

const tokens = (n) => `${n} ${n === 1 ? "token" : "tokens"}`;

const panel = (id, least, last) => `<div class="panel">
  <div class="canvas"></div>
  <p class="key"><span><i class="exact"></i> exact</span><span><i class="wrong"></i> off, a larger dot farther</span><span><i class="old"></i> not replayed</span></p>
  <p class="words"></p>
  <label class="slider" for="${id}-n">Replay <output for="${id}-n"></output></label>
  <input type="range" id="${id}-n" min="${least}" max="${last}" step="1">
  <details><summary>Errors of the rows that are kept</summary><div class="numbers" tabindex="0" role="region" aria-label="relative error of each kept row"></div></details>
  <p class="visually-hidden" aria-live="polite"></p></div>`;

class ReplayMap extends HTMLElement {
  connectedCallback() {
    if (this.data) return;
    this.data = JSON.parse(this.querySelector("script[type='application/json']").textContent);
    this.name = `replay-map-${document.querySelectorAll(this.localName).length}`;
    this.querySelector(".still").remove();
    const { steps, start } = this.data;
    this.insertAdjacentHTML("beforeend", panel(this.name, steps[0].n, steps[steps.length - 1].n));
    for (const [name, selector] of Object.entries({ input: "input[type=range]", output: "output", words: ".words", numbers: ".numbers", live: "[aria-live]" }))
      this[name] = this.querySelector(selector);
    this.querySelector(".canvas").append(this.draw());
    this.addEventListener("input", () => this.update());
    this.set(steps[start].n);
  }

  x(position) { return LEFT + (position - this.data.first) * PITCH; }

  draw() {
    const { layers, hit, first, window: w, label } = this.data, bottom = TOP + layers * ROW;
    const picture = svg("svg", { viewBox: `0 0 ${this.x(hit) + 24} ${bottom + 48}`, role: "img", "aria-labelledby": this.name });
    picture.append(svg("title", { id: this.name }, label.split(".")[0] + ", one mark for each row that is rebuilt."));
    picture.append(svg("rect", { class: "kept", x: this.x(hit - w + 1) - 1, y: TOP - 4, width: (w - 1) * PITCH + 1, height: layers * ROW + 2 }),
      svg("text", { class: "label", x: this.x(hit), y: TOP - 11 }, "rows that are kept"));
    this.marks = [];
    for (let layer = 0; layer < layers; layer++) {
      const y = TOP + layer * ROW;
      picture.append(svg("text", { class: "layer", x: LEFT - 10, y: y + 26 }, layer));
      this.marks.push(Array.from({ length: hit - first }, (_, i) => {
        const x = this.x(first + i), box = svg("rect", { x: x + 1.5, y: y + 2, width: PITCH - 4, height: ROW - 10, rx: 2 });
        const dot = svg("circle", { class: "dot", cx: x + PITCH / 2 - 0.5, cy: y + ROW / 2 - 3 });
        picture.append(box, dot);
        return { box, dot };
      }));
    }
    for (let position = first; position <= hit; position += 8)
      picture.append(svg("text", { class: "tick", x: this.x(position) + PITCH / 2, y: bottom + 16 }, position === hit ? "H" : position));
    picture.append(svg("text", { class: "axis", x: (LEFT + this.x(hit)) / 2, y: bottom + 40 }, "position"),
      svg("text", { class: "axis side", x: 0, y: 0, transform: `translate(22 ${TOP + layers * ROW / 2}) rotate(-90)` }, "layer"),
      svg("line", { class: "boundary", x1: this.x(hit), x2: this.x(hit), y1: TOP - 6, y2: bottom }));
    return picture;
  }

  set(n) { this.input.value = n; this.update(); }

  update() {
    const { steps, first, hit, window: w } = this.data, step = steps[this.input.value - steps[0].n];
    this.marks.forEach((row, layer) => row.forEach(({ box, dot }, i) => {
      const column = first + i - (hit - step.n), error = column < 0 ? 0 : step.errors[layer][column];
      const kind = column < 0 ? "old" : step.exact[layer][column] ? "exact" : "wrong";
      box.setAttribute("class", kind);
      dot.setAttribute("r", kind === "wrong" ? Math.max(1.6, Math.min(7, 5.5 * Math.sqrt(error))) : 0);
    }));
    const kept = step.exact.map((row) => row.slice(1 - w));
    this.dataset.n = step.n;
    this.dataset.kept = kept.flat().reduce((sum, one) => sum + one, 0);
    this.describe(step, kept);
  }

  describe(step, kept) {
    const w = this.data.window, all = kept.length * (w - 1), right = Number(this.dataset.kept);
    const top = step.errors[step.errors.length - 1].slice(1 - w), worst = Math.max(...top).toFixed(2);
    const many = right === all ? "All" : `${right} of`, tail = right === all ? "." : `; in the last layer a row is off by up to ${worst} times its length.`;
    this.output.textContent = tokens(step.n);
    this.words.innerHTML = `<b>${many} ${all} rows that are kept are exact</b>${tail}`;
    this.input.setAttribute("aria-valuetext", tokens(step.n));
    const rows = step.errors.map((row, layer) => `<tr><th scope="row">layer ${layer}</th>${row.slice(1 - w).map((error, i) => `<td>${kept[layer][i] ? "0" : error.toFixed(3)}</td>`).join("")}</tr>`);
    const head = top.map((_, i) => `<th scope="col">${this.data.hit - w + 1 + i}</th>`).join("");
    this.numbers.innerHTML = `<table><thead><tr><th scope="col">position</th>${head}</tr></thead><tbody>${rows.join("")}</tbody></table>`;
    clearTimeout(this.timer);                       // spoken politely, once the reader pauses
    this.timer = setTimeout(() => { this.live.textContent = `Replaying ${tokens(step.n)}: ${this.words.textContent}`; }, 350);
  }
}

customElements.define("replay-map", ReplayMap);
})();
