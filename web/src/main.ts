import "uplot/dist/uPlot.min.css";
import "./page.css";
import { isDark, setTheme } from "./colors";
import { load } from "./data";
import { distribution } from "./distribution";
import { find } from "./dom";
import { flame } from "./flame";
import { clock, duration } from "./format";
import { heat } from "./heat";
import { lanes } from "./lanes";
import { story } from "./story";
import { View } from "./view";

async function main(): Promise<void> {
  const report = await load(find("data").textContent!.trim());
  const view = new View(report);
  find("page").hidden = false;
  story(view);
  if (report.series.length) {
    heat(view);
    distribution(view);
  } else find("time").hidden = true;
  lanes(view);
  flame(view);
  range(view);
  find("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  find("loading").remove();
  document.documentElement.dataset.ready = "true";
}

/** The bar that says which range is selected, and moves it. */
function range(view: View): void {
  const { bins, bin_ns } = view.report.time;
  const [from, to] = ["from", "to"].map((id) => find(id) as HTMLInputElement);
  for (const input of [from, to]) {
    input.max = String(bins);
    input.addEventListener("input", () => {
      const [first, last] = [+from.value, +to.value];
      if (input === from) view.select(first, Math.max(first + 1, last));
      else view.select(Math.min(first, last - 1), last);
    });
  }
  find("whole").addEventListener("click", () => view.set({ range: null }));
  view.listen((state, changed) => {
    if (!changed.includes("range")) return;
    const [first, last] = view.bins;
    [from.value, to.value] = [String(first), String(last)];
    const ends = [first, last].map((bin) => clock(view.seconds(bin), view.known, bin_ns < 1e9 ? 1 : 0));
    from.setAttribute("aria-valuetext", ends[0]);
    to.setAttribute("aria-valuetext", ends[1]);
    find("range").textContent = `${state.range ? "Selected" : "All"}: ${ends.join(" to ")}${view.known ? " UTC" : ""}, ${duration((last - first) * bin_ns)}`;
    (find("whole") as HTMLButtonElement).disabled = !state.range;
  });
}

main().catch((error: unknown) => {
  find("loading").textContent = `This report can't be shown: ${error}. A browser of 2023 or later is needed.`;
});
