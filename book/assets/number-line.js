// The live E2M1 number line: a custom element without a library.
// Values, codes and ties are computed by fp4kv at build and stand in the element's JSON; here they are looked up.
(() => {
const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 680, EDGE = 20, LIMIT = 7, STEPS_PER_UNIT = 20;

const svg = (name, attributes = {}, text) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
};

const x = (value) => EDGE + (value + LIMIT) / (2 * LIMIT) * (WIDTH - 2 * EDGE);
const fromX = (at) => (at - EDGE) / (WIDTH - 2 * EDGE) * 2 * LIMIT - LIMIT;

const signed = (value, digits = Number.isInteger(value) ? 0 : 2) =>
  (value < 0 ? "\u2212" : "") + Math.abs(value).toFixed(digits).replace(/(\.\d)0$/, "$1");

const PANEL = `<div class="panel">
  <div class="canvas"></div>
  <label class="slider"><span class="visually-hidden">Value to store in four bits</span>
    <input type="range" min="${-LIMIT}" max="${LIMIT}" step="${1 / STEPS_PER_UNIT}"></label>
  <div class="readout"><div class="bits" aria-hidden="true"></div><p class="words"></p></div>
  <div class="controls"><button type="button" data-go="tie">Next tie</button>
    <button type="button" data-go="flip">Change sign</button>
    <span class="hint">Arrow keys move by 0.05, Page keys by 1.4.</span></div>
  <p class="visually-hidden" aria-live="polite"></p></div>`;

class NumberLine extends HTMLElement {
  connectedCallback() {
    if (this.data) return;
    this.data = JSON.parse(this.querySelector("script[type='application/json']").textContent);
    this.querySelector(".still").remove();
    this.insertAdjacentHTML("beforeend", PANEL);
    for (const [name, selector] of Object.entries({ input: "input", words: ".words", bits: ".bits", live: "[aria-live]" }))
      this[name] = this.querySelector(selector);
    this.querySelector(".canvas").append(this.draw());
    this.listen();
    this.set(this.data.start);
  }

  draw() {
    const id = `number-line-${document.querySelectorAll(this.localName).length}`;
    const picture = this.picture = svg("svg", { viewBox: `0 0 ${WIDTH} 122`, role: "img", "aria-labelledby": id });
    picture.append(svg("title", { id }, this.data.label), svg("line", { class: "axis", x1: EDGE, x2: WIDTH - EDGE, y1: 78, y2: 78 }));
    for (const { at } of this.data.ties) picture.append(svg("line", { class: "tie", x1: x(at), x2: x(at), y1: 74, y2: 82 }));
    this.steps = this.data.grid.map(({ value }) => {
      const step = svg("g", { class: "step" });
      const place = Number.isInteger(value) ? { y: 97 } : { y: 114, class: "half" };
      step.append(svg("line", { x1: x(value), x2: x(value), y1: 58, y2: 78 }), svg("text", { x: x(value), ...place }, signed(value)));
      picture.append(step);
      return step;
    });
    this.arc = svg("path", { class: "arc" });
    this.dot = svg("circle", { class: "dot", r: 8, cy: 78 });
    this.tag = svg("text", { class: "value", y: 18 });
    picture.append(this.arc, this.dot, this.tag);
    return picture;
  }

  listen() {
    this.input.addEventListener("input", () => this.update());
    const drag = (event) => {
      const box = this.picture.getBoundingClientRect();
      this.set(fromX((event.clientX - box.left) / box.width * WIDTH));
    };
    this.picture.addEventListener("pointerdown", (event) => {
      this.picture.setPointerCapture(event.pointerId);
      this.picture.onpointermove = drag;
      drag(event);
    });
    this.picture.addEventListener("pointerup", () => { this.picture.onpointermove = null; });
    this.addEventListener("click", ({ target }) => {
      if (target.dataset?.go === "tie") this.set((this.data.ties.find(({ at }) => at > this.value + 1e-9) ?? this.data.ties[0]).at);
      if (target.dataset?.go === "flip") this.set(-this.value);
    });
  }

  get value() { return Math.round(this.input.value * STEPS_PER_UNIT) / STEPS_PER_UNIT; }

  set(value) {
    this.input.value = Math.max(-LIMIT, Math.min(LIMIT, value));
    this.update();
  }

  // The grid entry that a value is stored as: a look-up between ties, no arithmetic of our own.
  answer(value) {
    const { grid, ties } = this.data;
    const tie = ties.find(({ at }) => at === value);
    if (tie) return grid.find(({ code }) => code === tie.code) ?? grid.find((entry) => entry.value === 0);
    return grid[ties.filter(({ at }) => value > at).length];
  }

  place(value, stored) {
    const { grid, ties } = this.data;
    const below = grid.filter((entry) => entry.value <= value).at(-1);
    const above = grid.find((entry) => entry.value >= value);
    const between = below && above ? `between ${signed(below.value)} and ${signed(above.value)}` : "";
    const words = !between ? "beyond the last value, so it is clipped"
      : below === above ? "a value of the grid"
      : ties.some(({ at }) => at === value) ? `halfway ${between}: a tie, and the code that ends in 0 wins`
      : `${between}, nearer to ${signed(stored.value)}`;
    return { below, above, words };
  }

  update() {
    const value = this.value, stored = this.answer(value), { below, above, words } = this.place(value, stored);
    this.data.grid.forEach((entry, i) => {
      const kind = entry === stored ? " chosen" : entry === below || entry === above ? " near" : "";
      this.steps[i].setAttribute("class", `step${kind}`);
    });
    const [from, to] = [x(value), x(stored.value)];
    this.dot.setAttribute("cx", from);
    this.tag.setAttribute("x", Math.max(40, Math.min(WIDTH - 40, from)));
    this.tag.textContent = signed(value, 2);
    this.arc.setAttribute("d", Math.abs(from - to) < 1 ? "" : `M${from} 70 Q${(from + to) / 2} 28 ${to} 56`);
    this.describe(value, stored, words);
  }

  describe(value, stored, words) {
    const [sign, exponent, mantissa] = stored.bits.split("_");
    this.bits.innerHTML = `<span class="sign">${sign}</span>${[...exponent].map((bit) => `<span>${bit}</span>`).join("")}<span class="mantissa">${mantissa}</span>`;
    const error = signed(Math.abs(stored.value - value), 2);
    this.words.innerHTML = `<b>${signed(value, 2)}</b> is ${words}. Stored as <b>${signed(stored.value)}</b>, code <code>0b${stored.bits}</code>, error ${error}.`;
    const text = `${signed(value, 2)} is ${words}. Stored as ${signed(stored.value)}, code ${stored.code}, error ${error}.`;
    this.input.setAttribute("aria-valuetext", text);
    this.dataset.value = stored.value;
    this.dataset.code = stored.code;
    clearTimeout(this.timer);                       // spoken politely, once the reader pauses
    this.timer = setTimeout(() => { this.live.textContent = text; }, 350);
  }
}

customElements.define("e2m1-number-line", NumberLine);
})();
