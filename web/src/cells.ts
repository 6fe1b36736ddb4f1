// A heatmap of one recording: a cell per bin and pair of slots, the more values the stronger.

import type uPlot from "uplot";
import type { Axis } from "./axis";
import { color, heatScale, onTheme } from "./colors";
import type { Report, Series } from "./data";
import { atMost, count, duration } from "./format";
import { byBin, edge, SLOTS, summed } from "./histogram";
import { axis, line, ticks, timePlot, told } from "./plots";
import type { View } from "./view";

const MARKS: Record<string, string> = { alert: "bad", "runqueue.worst": "wait", "softirq.worst": "softirq", "cpustall.stalls": "bad" };
/** Slots in a cell: a single value is to be seen. */
const PAIR = 2;

/** What heatmaps beside each other share: their slots, and the most values that a cell has in a second. */
export interface Scale {
  low: number;
  high: number;
  most: number;
}

/** The scale on which a series of several recordings can be seen. */
export function scaleOf(found: [Report, Series][]): Scale {
  const used = found.flatMap(([report, series]) => {
    const slots = summed(series, 0, report.time.bins);
    return [...slots.keys()].filter((slot) => slots[slot] > 0);
  });
  let low = Math.max(1, Math.min(...used) - 2);
  let high = Math.min(SLOTS - 2, Math.max(...used) + 4);
  low = Math.max(1, low - ((high - low + 1) % PAIR)); // whole cells
  high -= (high - low + 1) % PAIR;
  const most = found.map(([report, series]) => rates(report, series, low, high).reduce((one, other) => Math.max(one, other), 0));
  return { low, high, most: Math.max(...most) };
}

/** Show the heatmap of the recording with this place; what is returned shows another series. */
export function cells(view: View, target: HTMLElement, detail: HTMLElement, of = 0): (series: Series | null, scale: Scale) => void {
  const along: Axis = view.axes[of];
  const { report } = along;
  let picture: HTMLCanvasElement | null = null;
  let shown: Series | null = null;
  let scale: Scale = { low: 1, high: SLOTS - 2, most: 1 };
  let lines: ReturnType<typeof byBin> | null = null;
  const xs = Array.from({ length: report.time.bins }, (_, bin) => along.seconds(bin + 0.5));
  const bottom = () => report.edges[scale.low - 1] || 1;
  const plot = timePlot(
    view,
    target,
    {
      height: of ? 200 : 280,
      series: [{}, line("muted", "", "y", { show: false })],
      scales: { y: { distr: 3, range: () => [bottom(), report.edges[scale.high]] } },
      axes: [axis({ scale: "y", values: told(duration), splits: (self) => ticks(self, "y") })],
      hooks: {
        draw: [draw],
        setCursor: [tell],
      },
    },
    [xs, xs.map(() => null)],
    of,
  );

  function paint(): void {
    picture = shown && painted(report, shown, scale);
  }

  function draw({ ctx, bbox, valToPos }: uPlot): void {
    if (!picture) return;
    const top = valToPos(report.edges[scale.high], "y", true);
    ctx.save();
    ctx.imageSmoothingEnabled = false;
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    const [left, right] = [0, report.time.bins].map((bin) => valToPos(along.seconds(bin), "x", true));
    ctx.drawImage(picture, left, top, right - left, valToPos(bottom(), "y", true) - top);
    for (const { kind, start_ns, end_ns } of report.marks) {
      const at = valToPos(along.seconds(along.binOf(end_ns)), "x", true);
      const from = valToPos(along.seconds(along.binOf(start_ns)), "x", true);
      ctx.fillStyle = color(MARKS[kind] ?? "muted");
      ctx.globalAlpha = !of && view.state.range ? 0.8 : 1;
      if (kind === "alert") ctx.fillRect(Math.min(from, at), bbox.top, Math.max(3, at - from), 5);
      ctx.beginPath();
      ctx.moveTo(at - 5, bbox.top);
      ctx.lineTo(at + 5, bbox.top);
      ctx.lineTo(at, bbox.top + 9);
      ctx.fill();
    }
    ctx.restore();
  }

  function tell(self: uPlot): void {
    const { left, top } = self.cursor;
    const bin = Math.floor(along.bin(self.posToVal(left ?? -1, "x")));
    if (!shown || !lines || left === undefined || left < 0 || bin < 0 || bin >= report.time.bins) return;
    const value = self.posToVal(top ?? 0, "y");
    let here = 0;
    for (let cell = shown.starts[bin]; cell < shown.starts[bin + 1]; cell++) {
      const slot = shown.slots[cell];
      if (edge(slot, report.edges) >= value && report.edges[slot - 1] < value) here = shown.counts[cell];
    }
    const [p50, p99, most, all] = lines.map((one) => one[bin]);
    detail.textContent =
      `${along.clock(bin)}: ${count(all)} values, p50 ${duration(p50)}, p99 ${duration(p99)}, ` +
      `max ${atMost(most)}; ${count(here)} at about ${duration(value)}`;
  }

  onTheme(() => {
    paint();
    plot.redraw(false, true);
  });
  return (series, given) => {
    [shown, scale] = [series, given];
    lines = series && byBin(series, report.edges);
    paint();
    plot.setData([xs, xs.map(() => null)]);
  };
}

/** Values a second in each cell, row by row from the top. */
function rates({ time }: Report, series: Series, low: number, high: number): Float64Array {
  const found = new Float64Array((time.bins * (high - low + 1)) / PAIR);
  for (let bin = 0; bin < time.bins; bin++)
    for (let cell = series.starts[bin]; cell < series.starts[bin + 1]; cell++) {
      const slot = Math.min(high, Math.max(low, series.slots[cell]));
      found[Math.floor((high - slot) / PAIR) * time.bins + bin] += (series.counts[cell] * 1e9) / time.bin_ns;
    }
  return found;
}

/** One pixel per bin and pair of slots; the strength is the logarithm of the rate, from a single value in a bin on. */
function painted(report: Report, series: Series, { low, high, most }: Scale): HTMLCanvasElement {
  const { bins, bin_ns } = report.time;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [bins, (high - low + 1) / PAIR];
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  const seconds = bin_ns / 1e9;
  const full = Math.log2(1 + Math.max(most * seconds, 1));
  const steps = heatScale().map(([red, green, blue]) => (255 << 24) | (blue << 16) | (green << 8) | red);
  for (const [at, rate] of rates(report, series, low, high).entries())
    if (rate) pixels[at] = steps[Math.round((Math.log2(1 + rate * seconds) / full) * 255)];
  context.putImageData(image, 0, 0);
  return canvas;
}
