// Runs before the first paint: the style sheet has one palette for each theme, and the root says which.
const { dataset } = document.documentElement;
dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
try {
  const chosen = localStorage.getItem("foreshock-theme");
  if (chosen === "dark" || chosen === "light") dataset.theme = dataset.chosen = chosen;
} catch {
  // A page from file:// may have no storage.
}
