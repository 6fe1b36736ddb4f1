// One CPU, if the reader wants to see only that: chosen in a list or by its lane, told by a chip that takes it back.

import { find, h } from "./dom";
import { duration } from "./format";
import type { View } from "./view";

export function cpu(view: View): void {
  const { cpus } = view.report.lanes;
  const chooser = find("cpu") as HTMLSelectElement;
  const chip = find("cpu-chip");
  chooser.append(h("option", { value: "" }, "all CPUs"), ...cpus.map((one) => h("option", { value: one }, `CPU ${one}`)));
  chooser.addEventListener("change", () => view.set({ cpu: chooser.value ? +chooser.value : null }));
  chip.addEventListener("click", () => view.set({ cpu: null }));
  view.listen((state, changed) => {
    if (!changed.includes("cpu") && !changed.includes("series")) return;
    chooser.value = state.cpu === null ? "" : String(state.cpu);
    chip.hidden = state.cpu === null;
    chip.replaceChildren(`CPU ${state.cpu} only `, h("span", { "aria-hidden": true }, "✕"), h("span", { class: "hidden" }, "(show all CPUs)"));
    find("cpu-note").textContent = note(view);
  });
}

/** What the latencies of one CPU are not. */
function note({ report, state }: View): string {
  const series = report.series[state.series];
  if (state.cpu === null || !series) return "";
  if (!series.by_cpu) return `CPU ${state.cpu} only: this series is not told apart by CPU.`;
  const step = report.time.bin_ns * 2 ** series.by_cpu.longer;
  return series.by_cpu.longer ? `CPU ${state.cpu} only, counted in steps of ${duration(step)} and spread evenly over them.` : `CPU ${state.cpu} only.`;
}
