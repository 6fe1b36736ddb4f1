// Runs before the first paint.
try {
  const chosen = localStorage.getItem("foreshock-theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {
  // A page from file:// may have no storage.
}
