// What each CPU did, by time: one lane per CPU, filled from below with tasks, softirqs and interrupts.

import type uPlot from "uplot";
import { color, onTheme, rgb } from "./colors";
import { cpuShares, UNKNOWN, WHOLE } from "./cputime";
import { find, h, table } from "./dom";
import { clock, percent } from "./format";
import { axis, line, timePlot } from "./plots";
import type { View } from "./view";

/** Pixels of a lane from which on it can be filled from below. */
const FILLED = 6;
const TABLE_ROWS = 256;

export function lanes(view: View): void {
  const { lanes: found, time } = view.report;
  const { cpus, states, shares } = found;
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
            ctx.drawImage(picture, bbox.left, bbox.top, bbox.width, bbox.height);
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

  function tell(self: uPlot): void {
    const { left, top } = self.cursor;
    const bin = Math.floor(view.bin(self.posToVal(left ?? -1, "x")));
    const place = Math.floor(((top ?? -1) / self.over.clientHeight) * cpus.length);
    if (place < 0 || place >= cpus.length || bin < 0 || bin >= time.bins) return;
    const told = share(place, bin, 0) === UNKNOWN ? "not known" : states.map((state, at) => `${state} ${percent(share(place, bin, at) / WHOLE)}`).join(", ");
    find("lanes-detail").textContent = `CPU ${cpus[place]} at ${clock(view.seconds(bin), view.known, 1)}: ${told}`;
  }

  function painted(): HTMLCanvasElement {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [time.bins, cpus.length * pixels];
    const context = canvas.getContext("2d")!;
    const image = context.createImageData(canvas.width, canvas.height);
    const colors = states.map((state) => rgb(color(state)));
    const idle = rgb(color("idle"));
    const unknown = rgb(color("page"));
    for (let place = 0; place < cpus.length; place++)
      for (let bin = 0; bin < time.bins; bin++) {
        if (pixels < FILLED && share(place, bin, 0) !== UNKNOWN) {
          // No room to fill: the colours mix, and interrupts count double.
          const parts = states.map((_, state) => (share(place, bin, state) / WHOLE) * (state ? 2 : 1));
          const busy = Math.max(1, parts.reduce((one, other) => one + other, 0));
          const rest = Math.max(0, 1 - parts.reduce((one, other) => one + other, 0));
          const mixed = [0, 1, 2].map((at) => idle[at] * rest + parts.reduce((sum, part, state) => sum + (colors[state][at] * part) / busy, 0));
          for (let row = 0; row < pixels; row++) image.data.set([...mixed, 255], ((place * pixels + row) * time.bins + bin) * 4);
          continue;
        }
        let filled = 0;
        const ends = states.map((_, state) => (filled += share(place, bin, state)));
        for (let row = 0; row < pixels; row++) {
          // The last row of a lane parts it from the next one.
          const level = ((pixels - 1 - row) / Math.max(1, pixels - 1)) * WHOLE;
          const state = ends.findIndex((end) => level < end);
          const [red, green, blue] =
            share(place, bin, 0) === UNKNOWN || (pixels > 6 && row === 0) ? unknown : state < 0 ? idle : colors[state];
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
    const told = [...cpuShares(view.report, view.bins)].slice(0, TABLE_ROWS).map(([cpu, shares]) => [String(cpu), ...shares.map(percent)]);
    details.lastElementChild?.replaceWith(table("CPU time of the selected range", ["CPU", ...states, "idle"], told, [0, 1, 2, 3, 4]));
  };
  find("lanes-table").addEventListener("toggle", fill);
  view.listen((_, changed) => changed.includes("range") && fill());
}
