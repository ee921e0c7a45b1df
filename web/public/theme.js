// Loaded before the first paint, so that a page in the chosen theme does not flash in the other one.
try {
  const theme = localStorage.getItem('continuo.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Storage is off: the system's theme applies.
}
