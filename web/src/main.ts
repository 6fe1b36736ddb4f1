import "uplot/dist/uPlot.min.css";
import "./page.css";
import { isDark, setTheme } from "./colors";
import { cpu } from "./cpu";
import { load } from "./data";
import { difference } from "./difference";
import { distribution } from "./distribution";
import { find } from "./dom";
import { flame } from "./flame";
import { heat } from "./heat";
import { lanes } from "./lanes";
import { range } from "./range";
import { story } from "./story";
import { View } from "./view";

async function main(): Promise<void> {
  const data = [...document.querySelectorAll("script[type='application/octet-stream']")].map((one) => load(one.textContent!.trim()));
  const [report, ...beside] = await Promise.all(data);
  const view = new View(report, beside);
  find("page").hidden = false;
  story(view);
  if (report.series.length) {
    heat(view);
    distribution(view);
  } else find("time").hidden = true;
  difference(view);
  lanes(view);
  cpu(view);
  flame(view);
  range(view);
  find("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  find("loading").remove();
  document.documentElement.dataset.ready = "true";
}

main().catch((error: unknown) => {
  find("loading").textContent = `This report can't be shown: ${error}. A browser of 2023 or later is needed.`;
});
