// The bar that says which range is shown and what it is compared with, and moves both.

import type { Axis, Part } from "./axis";
import { find, h } from "./dom";
import type { View } from "./view";

const NOTHING = "";

/** What is scrolled to is to stand below the bar, however many lines that takes now. */
export function makeRoom(): void {
  document.documentElement.style.setProperty("--bar", `${find("range-bar").clientHeight}px`);
}

export function range(view: View): void {
  const chosen = sliders("from", "to", (first, last) => view.select(first, last));
  const compared = sliders("base-from", "base-to", (first, last) => view.compare(view.state.base!.of, first, last));
  const against = find("against") as HTMLSelectElement;
  against.append(
    h("option", { value: NOTHING }, "nothing"),
    ...view.axes.map(({ report }, of) => h("option", { value: of }, of ? report.title : "another time of this recording")),
  );
  against.addEventListener("change", () => {
    if (against.value === NOTHING) view.set({ base: null });
    else if (+against.value) view.against(+against.value);
    else before(view);
  });
  new ResizeObserver(makeRoom).observe(find("range-bar"));
  find("whole").addEventListener("click", () => view.set({ range: null }));
  find("to-difference").addEventListener("click", () => {
    find("difference").scrollIntoView({ behavior: "auto" });
    find("difference-title").focus({ preventScroll: true });
  });
  view.listen((state, changed) => {
    if (changed.includes("range")) {
      chosen(view, view.part);
      find("range").textContent = `${state.range ? "Selected" : "All"}: ${view.part}`;
      (find("whole") as HTMLButtonElement).disabled = !state.range;
    }
    if (!changed.includes("base")) return;
    against.value = state.base ? String(state.base.of) : NOTHING;
    find("base-row").hidden = !view.base;
    if (!view.base) return;
    compared(view.axes[state.base!.of], view.base);
    find("base").textContent = `Baseline: ${state.base!.of ? `${view.base.axis.report.title}, ` : ""}${view.base}`;
  });
}

/** Compare with the time before what is shown; where there is none, with what comes after it, or one half with the other. */
function before(view: View): void {
  const [first, last] = view.bins;
  const { bins } = view.report.time;
  if (first > 0) view.compare(0, 0, first);
  else if (last < bins) view.compare(0, last, bins);
  else {
    const middle = Math.max(1, bins >> 1);
    view.set({ range: view.whole(Math.min(middle, bins - 1), bins), base: { of: 0, range: view.whole(0, middle) } });
  }
}

/** Two sliders that tell `choose` a range; returned is what shows one on them. */
function sliders(from: string, to: string, choose: (first: number, last: number) => void): (axis: Axis, part: Part) => void {
  const ends = [from, to].map((id) => find(id) as HTMLInputElement);
  for (const input of ends)
    input.addEventListener("input", () => {
      const [first, last] = ends.map((end) => +end.value);
      if (input === ends[0]) choose(first, Math.max(first + 1, last));
      else choose(Math.min(first, last - 1), last);
    });
  return ({ report }, part) =>
    ends.forEach((end, place) => {
      end.max = String(report.time.bins);
      end.value = String(part.bins[place]);
      end.setAttribute("aria-valuetext", part.ends[place]);
    });
}
