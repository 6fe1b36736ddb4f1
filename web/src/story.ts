// What the page says in words: what stands out, how far to trust it, what happened when, whose recording it is.

import type { Comparison, Mark } from "./data";
import { find, h, name, table } from "./dom";
import { clock, count, duration } from "./format";
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
  find("headline").textContent = report.headline;
  find("headline").dataset.severity = report.severity;
  find("findings").append(...report.findings.map((one) => finding(view, one)));
  find("quality").append(
    ...report.quality.map(({ what, state, text }) =>
      h(
        "li",
        { class: `chip ${state}` },
        h("details", {}, h("summary", {}, h("span", { "aria-hidden": true }, `${STATES[state]} `), what, h("span", { class: "hidden" }, `: ${state}`)), h("p", {}, text)),
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
  const pairs = (rows: [string, string][]) => rows.map(([what, value]) => [what, name(value)]);
  find("facts").append(table("This recording", ["what", "value"], pairs([["file", report.title], ...report.facts])));
  if (report.fingerprint.length)
    find("facts").append(h("details", {}, h("summary", {}, "How the node is set up"), table("Fingerprint", ["what", "value"], pairs(report.fingerprint))));
  view.listen((_, changed) => (changed.includes("range") || changed.includes("cpu")) && happened(view));
}

/** Why this node is looked at. */
function compared(view: View, { headline, series, since_unix_ms, tables }: Comparison): HTMLElement[] {
  const since = since_unix_ms === null ? 0 : view.bin(since_unix_ms / 1e3);
  const show = () => {
    view.set({ series: Math.max(0, seriesOf(view.report, series)) });
    view.select(since, view.report.time.bins);
    toTime();
  };
  const what = view.known && since > 0 ? `Show ${series} since ${clock(view.seconds(since), true)}` : `Show ${series}`;
  return [
    h("h2", { id: "comparison-title" }, headline),
    h("button", { type: "button", click: show }, what),
    ...tables.flatMap(({ title, heads, numbers, rows, notes }) => [
      table(title, heads, rows.map((row) => row.map((cell) => name(cell))), numbers),
      ...notes.map((note) => h("p", { class: "muted" }, note)),
    ]),
  ];
}

function finding(view: View, one: View["report"]["findings"][number]): HTMLElement {
  const series = seriesOf(view.report, one.series);
  const bin = one.time_ns === null ? null : Math.floor(view.binOf(one.time_ns));
  const show = () => {
    if (series >= 0) view.set({ series });
    if (bin !== null) view.select(bin - 1, bin + 2);
    toTime();
  };
  return h(
    "li",
    { class: `finding ${one.severity}` },
    h("p", { class: "what" }, h("strong", { class: "sign" }, h("span", { "aria-hidden": true }, `${SIGNS[one.severity] ?? ""} `), one.severity), " ", one.what),
    one.who && h("p", {}, one.who),
    h("p", { class: "muted" }, `Next: ${one.next} (docs/reading.md#${one.anchor})`),
    (series >= 0 || bin !== null) && h("button", { type: "button", click: show }, bin === null ? "Show" : `Show ${clock(view.seconds(view.binOf(one.time_ns!)), view.known)}`),
  );
}

function toTime(): void {
  find("time").scrollIntoView({ behavior: "auto" });
  find("series").focus({ preventScroll: true });
}

/** Whether something happened on this CPU, or on none in particular. */
const isOf = ({ cpu, alert }: Mark, wanted: number | null) =>
  wanted === null || (alert ? alert.subject.kind !== "cpu" || alert.subject.name === String(wanted) : (cpu ?? wanted) === wanted);

/** Alerts and the worst single events of the selected range. */
function happened(view: View): void {
  const [first, last] = view.bins;
  const inside = view.report.marks.filter(
    (one) => view.binOf(one.end_ns) >= first && view.binOf(one.start_ns) < last && isOf(one, view.state.cpu),
  );
  inside.sort((one, other) => Number(!!other.alert) - Number(!!one.alert) || length(other) - length(one));
  const rows = inside.slice(0, MOST_MARKS).map((one) => {
    const bin = Math.floor(view.binOf(one.end_ns));
    return [
      h("button", { type: "button", class: "link time", click: () => view.select(bin - 1, bin + 2) }, clock(view.seconds(view.binOf(one.end_ns)), view.known, 1)),
      one.alert ? h("span", { class: `severity ${one.alert.severity}` }, `alert: ${one.alert.severity}`) : KINDS[one.kind] ?? one.kind,
      duration(length(one)),
      h("span", {}, one.text, one.alert && h("span", { class: "muted" }, ` Next: ${one.alert.next}`)),
    ];
  });
  const more = inside.length - rows.length;
  find("marks").replaceChildren(
    rows.length
      ? table("Alerts, and the worst single events", [view.known ? "UTC" : "from start", "kind", "lasted", "what"], rows, [2])
      : h("p", {}, "No alert, and none of the worst single events, in this range."),
    more > 0 ? h("p", {}, `${count(more)} shorter ones: select a shorter range.`) : "",
  );
}

const length = (one: Mark) => Math.max(0, one.end_ns - one.start_ns);
