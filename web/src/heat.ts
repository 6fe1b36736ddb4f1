// Latency by time, and under the same axis percentiles and the rate; other recordings beside it on the same scales.

import { type Axis } from "./axis";
import { cells, scaleOf } from "./cells";
import { color } from "./colors";
import type { Report, Series } from "./data";
import { find, h, name, table } from "./dom";
import { count, duration, rate } from "./format";
import { byBin, ofCpu } from "./histogram";
import { axis, line, ticks, timePlot, told } from "./plots";
import { label, like, type View } from "./view";

const TABLE_ROWS = 200;

export function heat(view: View): void {
  const { report } = view;
  const chooser = find("series") as HTMLSelectElement;
  chooser.append(...report.series.map((one, place) => h("option", { value: place }, label(one))));
  chooser.addEventListener("change", () => view.set({ series: +chooser.value }));
  const pictures = [cells(view, find("heat"), find("heat-detail")), ...view.axes.slice(1).map((one, place) => beside(view, one, place + 1))];
  const xs = Array.from({ length: report.time.bins }, (_, bin) => view.seconds(bin + 0.5));
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
  let lines: ReturnType<typeof byBin>;

  function show(series: Series): void {
    const { cpu } = view.state;
    const shown = view.axes.map((one) => {
      const found = like(one.report, series);
      return found && ofCpu(found, cpu, one.report);
    });
    const scale = scaleOf(view.axes.map((one, of) => [one.report, shown[of]]).filter((one): one is [Report, Series] => !!one[1]));
    pictures.forEach((picture, of) => picture(shown[of], scale));
    lines = byBin(shown[0]!, report.edges);
    const finite = (values: Float64Array) => Array.from(values, (value) => (Number.isFinite(value) && value > 0 ? value : null));
    const rates = Array.from(lines[3], (value, bin) => (report.time.measured_ns[bin] ? (value * 1e9) / report.time.measured_ns[bin] : null));
    curves.setData([xs, finite(lines[2]), finite(lines[1]), finite(lines[0]), rates]);
    find("series-help").textContent = series.help;
  }

  view.listen((state, changed) => {
    if ((changed.includes("series") || changed.includes("cpu")) && report.series[state.series]) {
      chooser.value = String(state.series);
      show(report.series[state.series]);
    }
    if (changed.includes("series") || changed.includes("cpu") || changed.includes("range")) steps();
  });
  find("heat-table").addEventListener("toggle", steps);

  /** The same as numbers. */
  function steps(): void {
    const details = find("heat-table") as HTMLDetailsElement;
    if (!details.open || !report.series[view.state.series]) return;
    const [first, last] = view.bins;
    const rows = [];
    for (let bin = first; bin < last && rows.length < TABLE_ROWS; bin++)
      rows.push([view.clock(bin), count(lines[3][bin]), ...[0, 1, 2].map((one) => duration(lines[one][bin]))]);
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

/** The same series of another recording: what is dragged there, or chosen by its button, is compared with. */
function beside(view: View, { report }: Axis, of: number): ReturnType<typeof cells> {
  const picture = h("div", { role: "img", "aria-label": `Heatmap of ${report.title}, on the same scales; the table of what changed holds its numbers` });
  const detail = h("div", { class: "detail" });
  const facts = new Map(report.facts);
  const host = facts.get("host") ?? "";
  // Of a comparison, recordings are called as their nodes are.
  const whose = host === report.title ? [] : [" of ", name(host)];
  const choose = h("button", { type: "button", "aria-label": `Compare with ${report.title}`, click: () => view.against(of) }, "Compare with this one");
  view.listen(({ base }, changed) => changed.includes("base") && choose.setAttribute("aria-pressed", String(base?.of === of)));
  find("beside").append(
    h("h3", {}, name(report.title), ...whose, h("span", { class: "muted" }, ` ${facts.get("time")}`)),
    h("div", { class: "tools" }, h("span", { class: "muted" }, report.headline), choose),
    picture,
    detail,
  );
  return cells(view, picture, detail, of);
}

function around(least: number | null, most: number | null): [number, number] {
  return [(least ?? 1e3) / 2, (most ?? 1e6) * 2];
}
