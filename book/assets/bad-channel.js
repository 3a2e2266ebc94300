// The live figure of chapter 4: one channel of a token grows. A custom element without a library.
// What is stored and what comes back is computed by fp4kv at build and stands in the element's JSON; here it is looked up.
(() => {
const SVG = "http://www.w3.org/2000/svg";
const LEFT = 44, PITCH = 39, MIDDLE = 128, UNIT = 32, REACH = 3.6;

const svg = (name, attributes = {}, text) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
};

const y = (value) => MIDDLE - Math.max(-REACH, Math.min(REACH, value)) * UNIT;
const signed = (value, digits = 2) => (value < 0 ? "\u2212" : "") + Math.abs(value).toFixed(digits);
const span = (node, from, to) => {
  node.setAttribute("y", Math.min(y(from), y(to)));
  node.setAttribute("height", Math.abs(y(from) - y(to)));
};

const SCALES = { group: "the token\u2019s group of 16", channel: "each channel", rotated: "the group, rotated" };

const panel = (id, channel, last) => `<div class="panel">
  <div class="canvas"></div>
  <p class="words"></p>
  <label class="slider" for="${id}-size">Size of channel ${channel}: <output for="${id}-size"></output></label>
  <input type="range" id="${id}-size" min="0" max="${last}" step="1">
  <fieldset><legend>One scale for</legend>${Object.entries(SCALES).map(([name, words]) =>
    `<label><input type="radio" name="${id}" value="${name}"> ${words}</label>`).join("")}</fieldset>
  <details><summary>The sixteen numbers</summary><div class="numbers" tabindex="0" role="region" aria-label="values before and after"></div></details>
  <p class="visually-hidden" aria-live="polite"></p></div>`;

class BadChannel extends HTMLElement {
  connectedCallback() {
    if (this.data) return;
    this.data = JSON.parse(this.querySelector("script[type='application/json']").textContent);
    this.name = `bad-channel-${document.querySelectorAll(this.localName).length}`;
    this.querySelector(".still").remove();
    this.insertAdjacentHTML("beforeend", panel(this.name, this.data.channel, this.data.steps.length - 1));
    for (const [name, selector] of Object.entries({ input: "input[type=range]", output: "output", words: ".words", numbers: ".numbers", live: "[aria-live]" }))
      this[name] = this.querySelector(selector);
    this.querySelector(".canvas").append(this.draw());
    this.addEventListener("input", () => this.update());
    this.set(this.data.start, "group");
  }

  draw() {
    const right = LEFT + PITCH * this.data.values.length;
    const picture = svg("svg", { viewBox: `0 0 ${right + 6} 274`, role: "img", "aria-labelledby": this.name });
    picture.append(svg("title", { id: this.name }, this.data.label.split(":")[0] + ": hollow before quantising, filled after. A cross marks a value that became zero."));
    for (const value of [-3, -2, -1, 0, 1, 2, 3])
      picture.append(svg("line", { class: value ? "grid" : "axis", x1: LEFT, x2: right, y1: y(value), y2: y(value) }),
        svg("text", { class: `tick${value % 2 ? " minor" : ""}`, x: LEFT - 8, y: y(value) + 5 }, signed(value, 0)));
    this.bars = this.data.values.map((_, channel) => {
      const x = LEFT + 5 + channel * PITCH;
      const bar = { band: svg("rect", { class: "band", x: x - 5, width: PITCH }), before: svg("rect", { class: "before", x, width: 29 }),
        after: svg("rect", { class: "after", x: x + 6, width: 17 }), cross: svg("path", { class: "cross", d: `M${x + 8} ${MIDDLE - 7} l13 14 m0 -14 l-13 14` }) };
      picture.append(...Object.values(bar), svg("text", { class: `name${channel % 5 ? " minor" : ""}`, x: x + 14.5, y: 268 }, channel));
      return bar;
    });
    return picture;
  }

  set(step, scale = this.scale) {
    this.input.value = step;
    this.querySelector(`input[value=${scale}]`).checked = true;
    this.update();
  }

  get scale() { return this.querySelector("input[type=radio]:checked").value; }

  update() {
    const { steps, channel, values } = this.data, step = steps[this.input.value], now = step[this.scale];
    const before = values.map((value, i) => (i === channel ? step.loud : value));
    this.bars.forEach((bar, i) => {
      span(bar.band, -now.limits[i], now.limits[i]);
      span(bar.before, 0, before[i]);
      span(bar.after, 0, now.after[i]);
      bar.cross.style.display = now.after[i] === 0 ? "" : "none";
      bar.before.setAttribute("class", `before${i === channel ? " loud" : ""}`);
    });
    this.dataset.size = step.size;
    this.dataset.flushed = now.flushed;
    this.dataset.error = now.error;
    this.dataset.after = JSON.stringify(now.after);
    this.describe(step, now, before);
  }

  describe(step, now, before) {
    const { channel } = this.data, times = step.size < 10 ? step.size.toFixed(1) : step.size.toFixed(0);
    const zeros = `${now.flushed || "None"} of the other fifteen ${now.flushed === 1 ? "becomes" : "become"} zero`;
    const loud = `Channel ${channel} is ${signed(step.loud, 1)} and comes back as ${signed(now.after[channel], 1)}.`;
    const error = `the relative error of the fifteen is ${Math.round(100 * now.error)} per cent.`;
    this.output.textContent = `${times} times`;
    this.words.innerHTML = `${loud} <b>${zeros}</b>; ${error}`;
    this.input.setAttribute("aria-valuetext", `${times} times`);
    const row = (head, cells) => `<tr><th scope="row">${head}</th>${cells.map((value) => `<td>${signed(value)}</td>`).join("")}</tr>`;
    this.numbers.innerHTML = `<table><thead><tr><th scope="col">channel</th>${before.map((_, i) => `<th scope="col">${i}</th>`).join("")}</tr></thead>
      <tbody>${row("before", before)}${row("after", now.after)}</tbody></table>`;
    clearTimeout(this.timer);                       // spoken politely, once the reader pauses
    this.timer = setTimeout(() => { this.live.textContent = `${loud} ${zeros}; ${error}`; }, 350);
  }
}

customElements.define("bad-channel", BadChannel);
})();
