// The kinds of time that there are flame graphs of: one tab stop, and the arrows choose.

import { find, h } from "./dom";
import type { View } from "./view";

export function tabs(view: View): void {
  const { flames } = view.report;
  const all = flames.map((one, place) =>
    h("button", { type: "button", role: "tab", "aria-controls": "flame-panel", click: () => choose(place) }, one.title),
  );
  const list = find("flame-tabs");
  list.append(...all);

  function choose(place: number): void {
    if (place !== view.state.flame) view.set({ flame: place, zoom: 0 });
    all[place].focus();
  }

  list.addEventListener("keydown", (event) => {
    const last = all.length - 1;
    const { flame } = view.state;
    const places: Record<string, number> = { ArrowLeft: flame ? flame - 1 : last, ArrowRight: flame < last ? flame + 1 : 0, Home: 0, End: last };
    if (!(event.key in places) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    choose(places[event.key]);
  });
  view.listen((state, changed) => {
    if (!changed.includes("flame")) return;
    all.forEach((tab, place) => {
      tab.setAttribute("aria-selected", String(place === state.flame));
      tab.tabIndex = place === state.flame ? 0 : -1;
    });
  });
}
