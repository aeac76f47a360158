/** `j` and `k` go through the links of a list, `f` to its filter. */

import { useShortcuts, type Shortcut } from "../shell/shortcuts";

const LINK = "main [data-row-link]";

function move(step: 1 | -1): void {
  const links = [...document.querySelectorAll<HTMLElement>(LINK)];
  const row = document.activeElement?.closest("[data-row]");
  const at = links.findIndex((link) => link.closest("[data-row]") === row);
  links[at < 0 || row === null ? 0 : at + step]?.focus();
}

/** The value of `data-row` of the row that has the focus; null when none has it. */
export function focusedRow(): string | null {
  const row = document.activeElement?.closest("[data-row]");
  return row?.getAttribute("data-row") ?? null;
}

/** Keys of a list whose rows have `data-row`, and links in them `data-row-link`. */
export function useRowKeys(group: string, noun: string, more: readonly Shortcut[] = []): void {
  useShortcuts([
    { keys: "j", label: `Next ${noun}`, group, run: () => move(1) },
    { keys: "k", label: `Previous ${noun}`, group, run: () => move(-1) },
    {
      keys: "f",
      label: "Filter",
      group,
      run: () => document.querySelector<HTMLInputElement>("main input[type=search]")?.focus(),
    },
    ...more,
  ]);
}
