// What each CPU did, by time: one lane per CPU, filled from below with tasks, softirqs and interrupts; over them what part
// of it the CPU made no progress for. A click on a lane shows that CPU only.

import type uPlot from "uplot";
import { color, onTheme, rgb } from "./colors";
import { cpuShares, stalledShares, UNKNOWN, WHOLE } from "./cputime";
import { find, h, table } from "./dom";
import { percent } from "./format";
import { axis, line, timePlot } from "./plots";
import type { View } from "./view";

/** Pixels of a lane from which on it can be filled from below. */
const FILLED = 6;
const TABLE_ROWS = 256;
/** Pixels that a click may move the mouse by. */
const STILL = 4;
const PALE = 0.3;

export function lanes(view: View): void {
  const { lanes: found, time } = view.report;
  const { cpus, states, shares, stalled } = found;
  if (!cpus.length) {
    find("lanes").replaceWith(h("p", {}, "CPU time was not recorded."));
    return;
  }
  const pixels = Math.max(2, Math.min(36, Math.floor(420 / cpus.length)));
  const share = (place: number, bin: number, state: number) => shares[(place * time.bins + bin) * states.length + state];
  let picture = painted();
  const xs = Array.from({ length: time.bins }, (_, bin) => view.seconds(bin + 0.5));
  const plot = timePlot(
    view,
    find("lanes"),
    {
      height: cpus.length * pixels + 40,
      series: [{}, line("muted", "", "y", { show: false })],
      scales: { y: { range: [0, cpus.length], dir: -1 } },
      axes: [
        axis({
          scale: "y",
          grid: { show: false },
          splits: () => rows().map((place) => place + 0.5),
          values: () => rows().map((place) => `CPU ${cpus[place]}`),
        }),
      ],
      hooks: {
        draw: [
          ({ ctx, bbox }: uPlot) => {
            ctx.save();
            ctx.imageSmoothingEnabled = false;
            const only = cpus.indexOf(view.state.cpu ?? -1);
            ctx.globalAlpha = only < 0 ? 1 : PALE;
            ctx.drawImage(picture, bbox.left, bbox.top, bbox.width, bbox.height);
            ctx.globalAlpha = 1;
            const high = bbox.height / cpus.length;
            if (only >= 0) ctx.drawImage(picture, 0, only * pixels, time.bins, pixels, bbox.left, bbox.top + only * high, bbox.width, high);
            ctx.restore();
          },
        ],
        setCursor: [(self: uPlot) => tell(self)],
      },
    },
    [xs, xs.map(() => null)],
  );

  /** Lanes that have room for their number. */
  function rows(): number[] {
    const step = Math.ceil(14 / pixels);
    return cpus.map((_, place) => place).filter((place) => place % step === 0);
  }

  const placeAt = (top: number) => Math.floor((top / plot.over.clientHeight) * cpus.length);
  let pressed = [0, 0];
  plot.over.addEventListener("mousedown", ({ clientX, clientY }) => (pressed = [clientX, clientY]));
  plot.over.addEventListener("mouseup", ({ clientX, clientY, offsetY, button, shiftKey, target }) => {
    const moved = Math.hypot(clientX - pressed[0], clientY - pressed[1]);
    const cpu = cpus[placeAt(target === plot.over ? offsetY : clientY - plot.over.getBoundingClientRect().top)];
    if (!button && !shiftKey && moved <= STILL && cpu !== undefined) view.set({ cpu: view.state.cpu === cpu ? null : cpu });
  });

  function tell(self: uPlot): void {
    const { left, top } = self.cursor;
    const bin = Math.floor(view.bin(self.posToVal(left ?? -1, "x")));
    const place = placeAt(top ?? -1);
    if (place < 0 || place >= cpus.length || bin < 0 || bin >= time.bins) return;
    const still = stalled[place * time.bins + bin];
    const told = share(place, bin, 0) === UNKNOWN ? "not known" : states.map((state, at) => `${state} ${percent(share(place, bin, at) / WHOLE)}`).join(", ");
    const stood = still ? `; no progress for ${percent(still / WHOLE)}` : "";
    find("lanes-detail").textContent = `CPU ${cpus[place]} at ${view.clock(bin)}: ${told}${stood}`;
  }

  function painted(): HTMLCanvasElement {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [time.bins, cpus.length * pixels];
    const context = canvas.getContext("2d")!;
    const image = context.createImageData(canvas.width, canvas.height);
    const colors = states.map((state) => rgb(color(state)));
    const idle = rgb(color("idle"));
    const unknown = rgb(color("page"));
    const stuck = rgb(color("stalled"));
    for (let place = 0; place < cpus.length; place++)
      for (let bin = 0; bin < time.bins; bin++) {
        const still = stalled[place * time.bins + bin];
        if (pixels < FILLED && share(place, bin, 0) !== UNKNOWN) {
          // No room to fill: the colours mix, and interrupts count double.
          const parts = states.map((_, state) => (share(place, bin, state) / WHOLE) * (state ? 2 : 1));
          const busy = Math.max(1, parts.reduce((one, other) => one + other, 0));
          const rest = Math.max(0, 1 - parts.reduce((one, other) => one + other, 0));
          const mixed = [0, 1, 2].map((at) => idle[at] * rest + parts.reduce((sum, part, state) => sum + (colors[state][at] * part) / busy, 0));
          // A stall is rare, and is what one looks for.
          const shown = still ? stuck : mixed;
          for (let row = 0; row < pixels; row++) image.data.set([...shown, 255], ((place * pixels + row) * time.bins + bin) * 4);
          continue;
        }
        let filled = 0;
        const ends = states.map((_, state) => (filled += share(place, bin, state)));
        for (let row = 0; row < pixels; row++) {
          // The last row of a lane parts it from the next one.
          const level = ((pixels - 1 - row) / Math.max(1, pixels - 1)) * WHOLE;
          const state = ends.findIndex((end) => level < end);
          const [red, green, blue] =
            level < still ? stuck : share(place, bin, 0) === UNKNOWN || (pixels > 6 && row === 0) ? unknown : state < 0 ? idle : colors[state];
          image.data.set([red, green, blue, 255], ((place * pixels + row) * time.bins + bin) * 4);
        }
      }
    context.putImageData(image, 0, 0);
    return canvas;
  }

  onTheme(() => {
    picture = painted();
    plot.redraw(false, true);
  });
  const fill = () => {
    const details = find("lanes-table") as HTMLDetailsElement;
    if (!details.open) return;
    const still = stalledShares(view.report, view.bins);
    const wanted = [...cpuShares(view.report, view.bins)].filter(([cpu]) => view.state.cpu === null || cpu === view.state.cpu);
    const told = wanted.slice(0, TABLE_ROWS).map(([cpu, shares]) => [String(cpu), ...shares.map(percent), percent(still.get(cpu)!)]);
    const heads = ["CPU", ...states, "idle", "of all: no progress"];
    details.lastElementChild?.replaceWith(table("CPU time of the selected range", heads, told, heads.map((_, place) => place)));
  };
  find("lanes-table").addEventListener("toggle", fill);
  view.listen((_, changed) => {
    if (changed.includes("range") || changed.includes("cpu")) fill();
    if (changed.includes("cpu")) plot.redraw(false, true);
  });
}
