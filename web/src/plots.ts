// Charts over the report's time axis: same left edge, same cursor, one selection for all.

import uPlot from "uplot";
import { color, onTheme } from "./colors";
import { clock } from "./format";
import type { View } from "./view";

const LEFT = 64;
const RIGHT = 64;

type Options = Pick<uPlot.Options, "height" | "series"> & Partial<uPlot.Options>;

const all: { plot: uPlot; view: View }[] = [];

export const line = (stroke: string, label: string, scale: string, extra: Partial<uPlot.Series> = {}): uPlot.Series => ({
  stroke: () => color(stroke),
  label,
  scale,
  width: 1.5,
  points: { show: false },
  ...extra,
});

/** Texts of an axis' numbers; uPlot leaves out some of a logarithmic axis by null. */
export const told = (format: (value: number) => string) => (_: uPlot, splits: (number | null)[]) =>
  splits.map((value) => (value === null ? "" : format(value)));

export const axis = (extra: Partial<uPlot.Axis>): uPlot.Axis => ({
  stroke: () => color("muted"),
  grid: { stroke: () => color("grid"), width: 1 },
  ticks: { stroke: () => color("grid"), width: 1 },
  font: "12px system-ui, sans-serif",
  ...extra,
});

/** A chart of the whole recording. Dragging selects a range, for all charts; a click without a drag selects all. */
export function timePlot(view: View, target: HTMLElement, options: Options, data: uPlot.AlignedData): uPlot {
  const { bins } = view.report.time;
  const plot = new uPlot(
    {
      width: target.clientWidth,
      legend: { show: false },
      padding: [8, (options.axes ?? []).length < 2 ? RIGHT : 0, 0, 0],
      ...options,
      cursor: {
        sync: { key: "time", setSeries: false },
        drag: { x: true, y: false, setScale: false },
        points: { show: false },
        y: false,
        ...options.cursor,
      },
      scales: { x: { time: false, range: () => [view.seconds(0), view.seconds(bins)] }, ...options.scales },
      axes: [
        axis({ values: (_, splits) => splits.map((value) => clock(value, view.known, bins < 20 ? 1 : 0)), space: 90, size: 30 }),
        ...(options.axes ?? []).map((one, place) => ({ size: place ? RIGHT : LEFT, ...one })),
      ],
      hooks: {
        ...options.hooks,
        setSelect: [
          (self) => {
            const { left, width } = self.select;
            if (width > 0) view.select(view.bin(self.posToVal(left, "x")), view.bin(self.posToVal(left + width, "x")));
          },
        ],
      },
    },
    data,
    target,
  );
  plot.over.addEventListener("dblclick", () => view.set({ range: null }));
  const resize = () => {
    plot.setSize({ width: Math.max(200, target.clientWidth), height: plot.height });
    mark(plot, view);
  };
  new ResizeObserver(resize).observe(target);
  view.listen((_, changed) => changed.includes("range") && mark(plot, view));
  all.push({ plot, view });
  return plot;
}

/** Show the selected range. */
function mark(plot: uPlot, view: View): void {
  const { range } = view.state;
  const left = range ? plot.valToPos(view.seconds(range[0]), "x") : 0;
  const right = range ? plot.valToPos(view.seconds(range[1]), "x") : 0;
  plot.setSelect({ left, width: right - left, top: 0, height: range ? plot.over.clientHeight : 0 }, false);
  plot.root.classList.toggle("selected", !!range);
}

onTheme(() => all.forEach(({ plot }) => plot.redraw(false, true)));
