/** Dark, light or as the system: kept by this browser. */

export type Theme = "system" | "light" | "dark";
export const THEMES: readonly Theme[] = ["system", "light", "dark"];
const KEY = "nightherd.theme";

export function readTheme(): Theme {
  const kept = localStorage.getItem(KEY);
  return THEMES.find((theme) => theme === kept) ?? "system";
}

/** Show the page in a theme and remember it. */
export function setTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  applyTheme();
}

/** Show the page in the theme that this browser remembers. */
export function applyTheme(): void {
  const theme = readTheme();
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}
