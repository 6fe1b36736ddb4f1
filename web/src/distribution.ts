// The selected range of a series: how its values are distributed, and the numbers people ask of it.

import uPlot from "uplot";
import { color, onTheme } from "./colors";
import type { Series } from "./data";
import { find, h, name, table } from "./dom";
import { count, duration, rate } from "./format";
import { edge, quantiles, SLOTS, summed, total } from "./histogram";
import { axis, line, told } from "./plots";
import { label, type View } from "./view";

export function distribution(view: View): void {
  const { report } = view;
  const target = find("histogram");
  let slots: Float64Array = new Float64Array(SLOTS);
  const plot = new uPlot(
    {
      width: target.clientWidth,
      height: 200,
      padding: [8, 28, 0, 0], // half of the last label
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { show: false }, y: false },
      series: [{}, line("accent", "values", "y", { paths: uPlot.paths.bars!({ size: [1], gap: 0 }), fill: () => color("accent"), fillTo: 0.5, width: 0 })],
      scales: { x: { time: false }, y: { distr: 3, range: (_, __, most) => [0.5, (most || 1) * 2] } },
      axes: [
        axis({ values: (_, splits) => splits.map((slot) => (report.edges[slot] ? duration(edge(slot, report.edges)) : "")), space: 70 }),
        axis({ size: 64, values: told(count), splits: () => [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9] }),
      ],
      hooks: {
        setCursor: [
          ({ cursor: { idx } }) => {
            const slot = idx === null || idx === undefined ? -1 : plot.data[0][idx];
            find("histogram-detail").textContent =
              slot > 0 ? `${count(slots[slot])} of ${duration(report.edges[slot - 1])} to ${duration(edge(slot, report.edges))}` : "";
          },
        ],
      },
    },
    [[0], [0]],
    target,
  );
  new ResizeObserver(() => plot.setSize({ width: Math.max(200, target.clientWidth), height: 200 })).observe(target);
  onTheme(() => plot.redraw(false, true));
  view.listen((state, changed) => {
    const series = report.series[state.series];
    if (!series || !(changed.includes("series") || changed.includes("range"))) return;
    slots = summed(series, ...view.bins);
    const used = [...slots.keys()].filter((slot) => slots[slot] > 0);
    const [first, last] = used.length ? [Math.max(0, used[0] - 2), Math.min(SLOTS - 1, used[used.length - 1] + 2)] : [0, 1];
    const xs = Array.from({ length: last - first + 1 }, (_, place) => first + place);
    plot.setData([xs, xs.map((slot) => slots[slot] || null)]);
    find("numbers").replaceChildren(numbers(view, series, slots));
    find("entries").replaceChildren(entries(view, series));
  });
}

function numbers(view: View, series: Series, slots: Float64Array): HTMLElement {
  const [first, last] = view.bins;
  const whole = summed(series, 0, view.report.time.bins);
  const row = (what: string, one: Float64Array, bins: number) => {
    const [p50, p90, p99, p999, most] = quantiles(one, view.report.edges);
    const seconds = (bins * view.report.time.bin_ns) / 1e9;
    return [what, count(total(one)), rate(total(one) / seconds), ...[p50, p90, p99, p999].map(duration), `≤ ${duration(most)}`];
  };
  const rows = [row("whole recording", whole, view.report.time.bins)];
  if (view.state.range) rows.unshift(row("selected", slots, last - first));
  return table(`${label(series)} in numbers`, ["range", "count", "rate", "p50", "p90", "p99", "p99.9", "max"], rows, [1, 2, 3, 4, 5, 6, 7]);
}

function entries(view: View, series: Series): HTMLElement {
  const found = view.report.entries.filter((one) => one.series === series.name && (!series.part || one.keys.vector === series.part));
  if (!found.length) return h("p", {}, "Not told apart by CPU.");
  const keys = Object.keys(found[0].keys);
  const ns = (seconds: number | null) => duration(seconds === null ? NaN : seconds * 1e9);
  const rows = found.map((one) => [
    ...keys.map((key) => name(String(one.keys[key]))),
    count(one.count),
    ...[one.p50_s, one.p99_s].map(ns),
    `≤ ${ns(one.max_s)}`,
  ]);
  return table("The worst, over the whole recording", [...keys, "count", "p50", "p99", "max"], rows, [0, 1, 2, 3].map((place) => place + keys.length));
}
