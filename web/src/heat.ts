// Latency by time: a cell per bin and slot, the more values the stronger; below it percentiles and the rate.

import uPlot from "uplot";
import { color, heatScale, onTheme } from "./colors";
import type { Series } from "./data";
import { find, h, table } from "./dom";
import { clock, count, duration, rate } from "./format";
import { byBin, edge, SLOTS, summed } from "./histogram";
import { axis, line, timePlot, told } from "./plots";
import { label, type View } from "./view";

const MARKS: Record<string, string> = { alert: "bad", "runqueue.worst": "wait", "softirq.worst": "softirq", "cpustall.stalls": "bad" };
const TABLE_ROWS = 200;
/** Slots in a cell: a single value is to be seen. */
const PAIR = 2;

const ticks = (plot: uPlot, scale: string) => {
  const { min, max } = plot.scales[scale];
  return [...Array(24).keys()].map((power) => 10 ** power).filter((value) => value >= min! && value <= max!);
};

export function heat(view: View): void {
  const { report } = view;
  const chooser = find("series") as HTMLSelectElement;
  chooser.append(...report.series.map((one, place) => h("option", { value: place }, label(one))));
  chooser.addEventListener("change", () => view.set({ series: +chooser.value }));
  let picture: HTMLCanvasElement | null = null;
  let low = 1;
  let high = SLOTS - 2;
  let lines = byBin(emptySeries(report.time.bins), report.edges);

  const xs = Array.from({ length: report.time.bins }, (_, bin) => view.seconds(bin + 0.5));
  const range = (): [number, number] => [report.edges[low - 1] || 1, report.edges[high]];
  const cells = timePlot(
    view,
    find("heat"),
    {
      height: 280,
      series: [{}, line("muted", "", "y", { show: false })],
      scales: { y: { distr: 3, range } },
      axes: [axis({ scale: "y", values: told(duration), splits: (plot) => ticks(plot, "y") })],
      hooks: {
        draw: [(plot) => draw(plot)],
        setCursor: [(plot) => tell(plot)],
      },
    },
    [xs, xs.map(() => null)],
  );
  const curves = timePlot(
    view,
    find("curves"),
    {
      height: 150,
      series: [
        {},
        line("max", "max", "y", { width: 1, dash: [2, 3] }),
        line("p99", "p99", "y"),
        line("p50", "p50", "y"),
        line("rate", "rate", "rate", { width: 1 }),
      ],
      scales: { y: { distr: 3, range: (_, least, most) => around(least, most) }, rate: { range: (_, __, most) => [0, (most || 1) * 1.1] } },
      axes: [
        axis({ scale: "y", values: told(duration), splits: (plot) => ticks(plot, "y") }),
        axis({ scale: "rate", side: 1, grid: { show: false }, values: told(rate), stroke: () => color("rate") }),
      ],
    },
    [xs, xs.map(() => 1), xs.map(() => 1), xs.map(() => 1), xs.map(() => 1)],
  );

  function show(series: Series): void {
    const used = summed(series, 0, report.time.bins);
    const slots = [...used.keys()].filter((slot) => used[slot] > 0);
    low = Math.max(1, Math.min(...slots) - 2);
    high = Math.min(SLOTS - 2, Math.max(...slots) + 4);
    low = Math.max(1, low - ((high - low + 1) % PAIR)); // whole cells
    high -= (high - low + 1) % PAIR;
    lines = byBin(series, report.edges);
    picture = painted(series, report.time.bins, low, high);
    cells.setData([xs, xs.map(() => null)]);
    const finite = (values: Float64Array) => Array.from(values, (value) => (Number.isFinite(value) && value > 0 ? value : null));
    const seconds = report.time.bin_ns / 1e9;
    curves.setData([xs, finite(lines[2]), finite(lines[1]), finite(lines[0]), Array.from(lines[3], (value) => value / seconds)]);
    find("series-help").textContent = series.help;
  }

  function draw(plot: uPlot): void {
    if (!picture) return;
    const { ctx, bbox } = plot;
    const top = plot.valToPos(report.edges[high], "y", true);
    const bottom = plot.valToPos(report.edges[low - 1] || 1, "y", true);
    ctx.save();
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(picture, bbox.left, top, bbox.width, bottom - top);
    const { range: selected } = view.state;
    for (const { kind, start_ns, end_ns } of report.marks) {
      const at = plot.valToPos(view.seconds(view.binOf(end_ns)), "x", true);
      const from = plot.valToPos(view.seconds(view.binOf(start_ns)), "x", true);
      ctx.fillStyle = color(MARKS[kind] ?? "muted");
      ctx.globalAlpha = selected ? 0.8 : 1;
      if (kind === "alert") ctx.fillRect(Math.min(from, at), bbox.top, Math.max(3, at - from), 5);
      ctx.beginPath();
      ctx.moveTo(at - 5, bbox.top);
      ctx.lineTo(at + 5, bbox.top);
      ctx.lineTo(at, bbox.top + 9);
      ctx.fill();
    }
    ctx.restore();
  }

  function tell(plot: uPlot): void {
    const { left, top } = plot.cursor;
    const bar = find("heat-detail");
    const bin = Math.floor(view.bin(plot.posToVal(left ?? -1, "x")));
    if (left === undefined || left < 0 || bin < 0 || bin >= report.time.bins) return;
    const series = report.series[view.state.series];
    const value = plot.posToVal(top ?? 0, "y");
    let here = 0;
    for (let cell = series.starts[bin]; cell < series.starts[bin + 1]; cell++) {
      const slot = series.slots[cell];
      if (edge(slot, report.edges) >= value && report.edges[slot - 1] < value) here = series.counts[cell];
    }
    const [p50, p99, most, all] = lines.map((one) => one[bin]);
    bar.textContent =
      `${clock(view.seconds(bin), view.known, 1)}: ${count(all)} values, p50 ${duration(p50)}, p99 ${duration(p99)}, ` +
      `max ≤ ${duration(most)}; ${count(here)} at about ${duration(value)}`;
  }

  onTheme(() => {
    picture = painted(report.series[view.state.series], report.time.bins, low, high);
    cells.redraw(false, true);
  });
  view.listen((state, changed) => {
    if (changed.includes("series") && report.series[state.series]) {
      chooser.value = String(state.series);
      show(report.series[state.series]);
    }
    if (changed.includes("series") || changed.includes("range")) steps();
  });
  find("heat-table").addEventListener("toggle", steps);

  /** The same as numbers. */
  function steps(): void {
    const details = find("heat-table") as HTMLDetailsElement;
    if (!details.open || !report.series[view.state.series]) return;
    const [first, last] = view.bins;
    const rows = [];
    for (let bin = first; bin < last && rows.length < TABLE_ROWS; bin++)
      rows.push([clock(view.seconds(bin), view.known, 1), count(lines[3][bin]), ...[0, 1, 2].map((one) => duration(lines[one][bin]))]);
    const left = last - first - rows.length;
    details.lastElementChild?.replaceWith(
      h(
        "div",
        {},
        table("Latency by time", [view.known ? "UTC" : "from", "count", "p50", "p99", "max"], rows, [1, 2, 3, 4]),
        left > 0 && h("p", {}, `${count(left)} more steps: select a shorter range.`),
      ),
    );
  }
}

function emptySeries(bins: number): Series {
  return { name: "", part: "", help: "", starts: new Uint32Array(bins + 1), slots: new Uint16Array(), counts: new Uint32Array() };
}

function around(least: number | null, most: number | null): [number, number] {
  return [(least ?? 1e3) / 2, (most ?? 1e6) * 2];
}

/** One pixel per bin and pair of slots; the strength is the logarithm of the count. */
function painted(series: Series, bins: number, low: number, high: number): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [bins, (high - low + 1) / PAIR];
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  const sums = new Float64Array(pixels.length);
  for (let bin = 0; bin < bins; bin++)
    for (let cell = series.starts[bin]; cell < series.starts[bin + 1]; cell++) {
      const slot = Math.min(high, Math.max(low, series.slots[cell]));
      sums[Math.floor((high - slot) / PAIR) * bins + bin] += series.counts[cell];
    }
  const most = Math.log2(1 + sums.reduce((one, other) => Math.max(one, other), 1));
  const scale = heatScale().map(([red, green, blue]) => (255 << 24) | (blue << 16) | (green << 8) | red);
  for (const [at, sum] of sums.entries()) if (sum) pixels[at] = scale[Math.round((Math.log2(1 + sum) / most) * 255)];
  context.putImageData(image, 0, 0);
  return canvas;
}
