// The only way to elements: whatever comes from a recording is text, never markup.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: Event) => void)>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
  return element;
}

/** A name from the node. */
export const name = (text: string) => h("bdi", { class: "name" }, text);

export function find(id: string): HTMLElement {
  return document.getElementById(id)!;
}

/** Put these into an element; a reader whose keyboard was in it stays where it was. */
export function refill(target: HTMLElement, ...children: (Node | string)[]): void {
  const focusable = () => [...target.querySelectorAll<HTMLElement>("button, [tabindex]")];
  const place = focusable().indexOf(document.activeElement as HTMLElement);
  target.replaceChildren(...children);
  if (place >= 0) focusable().slice(0, place + 1).at(-1)?.focus({ preventScroll: true });
}

export function table(caption: string, heads: string[], rows: Child[][], numbers: number[] = []): HTMLElement {
  const align = (place: number): Attributes => (numbers.includes(place) ? { class: "number" } : {});
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "group", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, ...heads.map((head, place) => h("th", { scope: "col", ...align(place) }, head)))),
      h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((cell, place) => h("td", align(place), cell))))),
    ),
  );
}
