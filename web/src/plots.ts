// Charts over a recording's time: same left edge, same cursor, one selection for all.

import uPlot from "uplot";
import type { Axis } from "./axis";
import { color, onTheme } from "./colors";
import { h } from "./dom";
import { clock, decimals } from "./format";
import type { View } from "./view";

const LEFT = 64;
const RIGHT = 64;

type Options = Pick<uPlot.Options, "height" | "series"> & Partial<uPlot.Options>;

const all: uPlot[] = [];
/** Whether the mouse was pressed with Shift; one for all, since charts pass on what is dragged in one of them. */
let shift = false;

export const line = (stroke: string, label: string, scale: string, extra: Partial<uPlot.Series> = {}): uPlot.Series => ({
  stroke: () => color(stroke),
  label,
  scale,
  width: 1.5,
  // What has no value beside it is no line.
  points: { show: false, size: 4, filter: (plot, place) => alone(plot.data[place]), fill: () => color(stroke) },
  ...extra,
});

const alone = (values: ArrayLike<number | null | undefined>) =>
  [...Array(values.length).keys()].filter((at) => values[at] != null && values[at - 1] == null && values[at + 1] == null);

/** Texts of an axis' numbers; uPlot leaves out some of a logarithmic axis by null. */
export const told = (format: (value: number) => string) => (_: uPlot, splits: (number | null)[]) =>
  splits.map((value) => (value === null ? "" : format(value)));

/** Powers of ten, on a logarithmic axis. */
export const ticks = (plot: uPlot, scale: string) => {
  const { min, max } = plot.scales[scale];
  return [...Array(24).keys()].map((power) => 10 ** power).filter((value) => value >= min! && value <= max!);
};

export const axis = (extra: Partial<uPlot.Axis>): uPlot.Axis => ({
  stroke: () => color("muted"),
  grid: { stroke: () => color("grid"), width: 1 },
  ticks: { stroke: () => color("grid"), width: 1 },
  font: "12px system-ui, sans-serif",
  ...extra,
});

/**
 * A chart of a whole recording, `of` by its place. Dragging selects a range, for all charts, with Shift (and always in
 * recordings beside the report's own) what it is compared with; a double click selects all.
 */
export function timePlot(view: View, target: HTMLElement, options: Options, data: uPlot.AlignedData, of = 0): uPlot {
  const along = view.axes[of];
  const { bins } = along.report.time;
  const choose = (first: number, last: number) => (of || shift ? view.compare(of, first, last) : view.select(first, last));
  const plot = new uPlot(
    {
      width: target.clientWidth,
      legend: { show: false },
      padding: [8, (options.axes ?? []).length < 2 ? RIGHT : 0, 0, 0],
      ...options,
      cursor: {
        sync: { key: `time-${of}`, setSeries: false },
        drag: { x: true, y: false, setScale: false },
        points: { show: false },
        y: false,
        ...options.cursor,
      },
      scales: { x: { time: false, range: () => span(view, along) }, ...options.scales },
      axes: [
        axis({ values: (_, splits, __, ___, step) => splits.map((value) => clock(value, along.known, decimals(step))), space: 90, size: 30 }),
        ...(options.axes ?? []).map((one, place) => ({ size: place ? RIGHT : LEFT, ...one })),
      ],
      hooks: {
        ...options.hooks,
        setSelect: [
          (self) => {
            const { left, width } = self.select;
            if (width > 0) choose(along.bin(self.posToVal(left, "x")), along.bin(self.posToVal(left + width, "x")));
            mark();
          },
        ],
      },
    },
    data,
    target,
  );
  const base = h("div", { class: "u-base" }, h("span", {}, "baseline"));
  plot.over.append(base);

  /** Show the selected range, and the one it is compared with. */
  function mark(): void {
    const { range, base: compared } = view.state;
    const place = ([first, last]: [number, number]) => {
      const [left, right] = [first, last].map((bin) => plot.valToPos(along.seconds(bin), "x"));
      return { left, width: right - left };
    };
    const shown = of ? null : range;
    const height = shown ? plot.over.clientHeight : 0;
    plot.setSelect({ top: 0, height, ...(shown ? place(shown) : { left: 0, width: 0 }) }, false);
    plot.root.classList.toggle("selected", !!shown);
    base.hidden = compared?.of !== of;
    if (compared?.of !== of) return;
    const { left, width } = place(compared.range ?? [0, bins]);
    [base.style.left, base.style.width] = [`${left}px`, `${width}px`];
  }

  plot.over.addEventListener(
    "mousedown",
    (event) => {
      shift = event.shiftKey;
      if (shift) event.preventDefault(); // the browser would extend a selection of text
    },
    true,
  );
  plot.over.addEventListener("dblclick", () => (of ? view.set({ base: { of, range: null } }) : view.set({ range: null })));
  const resize = () => {
    plot.setSize({ width: Math.max(200, target.clientWidth), height: plot.height });
    mark();
  };
  new ResizeObserver(resize).observe(target);
  view.listen((_, changed) => (changed.includes("range") || changed.includes("base")) && mark());
  all.push(plot);
  return plot;
}

/** From where to where a recording's axis goes: where most of it is of the same time as the report's, as that one's. */
function span(view: View, along: Axis): [number, number] {
  const [own, other] = [view, along].map((one): [number, number] => [one.seconds(0), one.seconds(one.report.time.bins)]);
  const common = Math.min(own[1], other[1]) - Math.max(own[0], other[0]);
  return view.known && along.known && common > (other[1] - other[0]) / 2 && common > (own[1] - own[0]) / 2 ? own : other;
}

onTheme(() => all.forEach((plot) => plot.redraw(false, true)));
