// What the page says in words: what stands out, how far to trust it, what happened when, whose recording it is.

import type { Axis, Part } from "./axis";
import type { Comparison, Finding, Mark } from "./data";
import { find, h, name, refill, table } from "./dom";
import { clock, count, duration } from "./format";
import { makeRoom } from "./range";
import { seriesOf, type View } from "./view";

const SIGNS: Record<string, string> = { critical: "!!", warning: "!", note: "–" };
const STATES = { good: "✓", bad: "!", unknown: "?" };
const KINDS: Record<string, string> = { "runqueue.worst": "wait", "softirq.worst": "softirq", "cpustall.stalls": "stall" };
const MOST_MARKS = 100;

export function story(view: View): void {
  const { report } = view;
  const facts = new Map(report.facts);
  document.title = `${facts.get("host")}: ${report.headline}`;
  find("host").textContent = facts.get("host")!;
  find("when").textContent = `${facts.get("time")} · ${facts.get("length")}`;
  find("filters").textContent = report.filtered ? `only ${facts.get("filters")}` : "";
  find("comparison").hidden = !report.comparison;
  if (report.comparison) find("comparison").append(...compared(view, report.comparison));
  find("headline").textContent = report.comparison ? `By itself: ${report.headline}` : report.headline;
  find("headline").dataset.severity = report.severity;
  find("findings").append(...report.findings.map((one) => finding(view, one)));
  find("quality").append(
    ...report.quality.map(({ what, state, text, table: more }) =>
      h(
        "li",
        { class: `chip ${state}` },
        h("details", {}, h("summary", {}, h("span", { "aria-hidden": true }, `${STATES[state]} `), what, h("span", { class: "hidden" }, `: ${state}`)), h("p", {}, text), more && table(more.title, more.heads, named(more.rows), [1, 2])),
      ),
    ),
  );
  find("dropped").append(...report.dropped.map((one) => h("li", {}, one)));
  find("dropped").hidden = !report.dropped.length;
  find("asked").append(
    table("Within normal", ["asked", "found", "normal"], report.normal),
    h("h3", {}, "Not seen"),
    report.missing.length ? h("ul", {}, ...report.missing.map((one) => h("li", {}, one))) : h("p", {}, "Every question could be asked."),
  );
  find("facts").append(table("This recording", ["what", "value"], pairs([["file", report.title], ...report.facts])));
  if (report.fingerprint.length)
    find("facts").append(h("details", {}, h("summary", {}, "How the node is set up"), table("Fingerprint", ["what", "value"], pairs(report.fingerprint))));
  view.listen((_, changed) => (["range", "base", "cpu"] as const).some((one) => changed.includes(one)) && happened(view));
}

const pairs = (rows: [string, string][]) => rows.map(([what, value]) => [what, name(value)]);
const named = (rows: string[][]) => rows.map(([first, ...others]) => [name(first), ...others]);

/** Why this node is looked at. */
function compared(view: View, { headline, series, since_unix_ms, tables }: Comparison): HTMLElement[] {
  const since = since_unix_ms === null ? 0 : view.bin(since_unix_ms / 1e3);
  const show = () => {
    view.set({ series: Math.max(0, seriesOf(view.report, series)) });
    view.select(since, view.report.time.bins);
    const { of } = view.state.base ?? { of: 0 };
    if (of) view.set({ base: { of, range: view.axes[of].sameTime(view, view.bins) } });
    toTime();
  };
  const what = view.known && since > 0 ? `Show ${series} since ${clock(view.seconds(since), true)} UTC` : `Show ${series}`;
  return [
    h("h2", { id: "comparison-title" }, headline),
    h("p", {}, ...twins(view)),
    h("button", { type: "button", click: show }, what),
    ...tables.flatMap(({ title, heads, numbers, rows, notes }) => [
      table(title, heads, rows.map((row) => row.map((cell) => name(cell))), numbers),
      ...notes.map((note) => h("p", {}, note)),
    ]),
  ];
}

/** Which nodes it is shown beside. */
function twins(view: View): (Node | string)[] {
  const names = view.axes.slice(1).flatMap(({ report }, place) => [place ? ", " : "", name(report.title)]);
  return names.length ? ["On the same scales below: ", ...names, ", which don't deviate and are set up most like it."] : ["All other nodes deviate, too: there is none to show it beside."];
}

function finding(view: View, one: View["report"]["findings"][number]): HTMLElement {
  const series = seriesOf(view.report, one.series);
  const bin = one.time_ns === null ? null : Math.floor(view.binOf(one.time_ns));
  const show = () => {
    if (series >= 0) view.set({ series });
    if (bin !== null) view.select(bin - 1, one.until_ns === null ? bin + 2 : view.binOf(one.until_ns));
    toTime();
  };
  return h(
    "li",
    { class: `finding ${one.severity}` },
    h("p", { class: "what" }, h("strong", { class: "sign" }, h("span", { "aria-hidden": true }, `${SIGNS[one.severity] ?? ""} `), one.severity), " ", one.what),
    one.who && h("p", {}, one.who),
    h("p", { class: "muted" }, `Next: ${one.next}`),
    (series >= 0 || bin !== null) && h("button", { type: "button", click: show }, shown(view, one)),
  );
}

/** What a finding's button shows. */
function shown(view: View, { time_ns, until_ns }: Finding): string {
  if (time_ns === null) return "Show";
  const time = `${clock(view.seconds(view.binOf(time_ns)), view.known)}${view.known ? " UTC" : ""}`;
  return until_ns === null ? `Show ${time}` : `Show from ${time} on`;
}

function toTime(): void {
  makeRoom();
  find("time").scrollIntoView({ behavior: "auto" });
  find("series").focus({ preventScroll: true });
}

/** Whether something happened on this CPU, or on none in particular. */
const isOf = ({ cpu, alert }: Mark, wanted: number | null) =>
  wanted === null || (alert ? alert.subject.kind !== "cpu" || alert.subject.name === String(wanted) : (cpu ?? wanted) === wanted);

/** Alerts and the worst single events of the selected range, and those of the baseline. */
function happened(view: View): void {
  const { base, part } = view;
  const parts = base ? [part, base] : [part];
  const sides = [view.state.range ? "selection" : "whole recording", "baseline"];
  const most = MOST_MARKS / parts.length;
  const found = parts.map((one) => inside(one));
  const rows = found.flatMap((marks, side) => marks.slice(0, most).map((one) => [...(base ? [sides[side]] : []), ...told(view, parts[side].axis, one)]));
  const more = found.map((marks) => Math.max(0, marks.length - most));
  const [of, and] = base ? [`, of the ${sides[0]} and of the baseline`, " nor in the baseline"] : ["", ""];
  const heads = [...(base ? ["in"] : []), parts.every(({ axis }) => axis.known) ? "UTC" : "time", "kind", "lasted", "what"];
  refill(
    find("marks"),
    rows.length ? table(`Alerts, and the worst single events${of}`, heads, rows, [heads.length - 2]) : h("p", {}, `No alert, and none of the worst single events, in this range${and}.`),
    ...more.map((number, side) => (number ? h("p", {}, `${count(number)} shorter ones${base ? ` in the ${sides[side]}` : ""}: select a shorter range.`) : "")),
  );
}

/** What happened in a part of a recording: alerts first, long ones before short ones. */
function inside({ axis, bins: [first, last], cpu }: Part): Mark[] {
  const found = axis.report.marks.filter((one) => axis.binOf(one.end_ns) >= first && axis.binOf(one.start_ns) < last && isOf(one, cpu));
  return found.sort((one, other) => Number(!!other.alert) - Number(!!one.alert) || length(other) - length(one));
}

/** A mark's cells; a click on its time shows it, where it is of the report's own recording. */
function told(view: View, axis: Axis, one: Mark): (string | HTMLElement)[] {
  const at = axis.binOf(one.end_ns);
  const time = axis.clock(at, 1);
  const show = () => view.select(Math.floor(at) - 1, Math.floor(at) + 2);
  return [
    axis === view ? h("button", { type: "button", class: "link time", click: show }, time) : h("span", { class: "time" }, time),
    one.alert ? h("span", { class: `severity ${one.alert.severity}` }, `alert: ${one.alert.severity}`) : KINDS[one.kind] ?? one.kind,
    `${one.over === false ? "≥ " : ""}${duration(length(one))}`,
    h("span", {}, one.text, one.alert && h("span", { class: "muted" }, ` Next: ${one.alert.next}`)),
  ];
}

const length = (one: Mark) => Math.max(0, one.end_ns - one.start_ns);
