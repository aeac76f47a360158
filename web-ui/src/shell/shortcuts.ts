/** Keys of the page. What is registered is what the legend (`?`) shows. */

import { useEffect, useLayoutEffect, useRef, useSyncExternalStore } from "react";

export interface Shortcut {
  /** A key (`j`, `?`, `Escape`), a sequence (`g h`), or with Control or Command: `mod+k`. */
  keys: string;
  label: string;
  group: string;
  run: () => void;
}

/** A sequence is forgotten after this long. */
const PAUSE_MS = 1_000;
let registered: readonly { current: readonly Shortcut[] }[] = [];
const listeners = new Set<() => void>();

function changed(next: typeof registered): void {
  registered = next;
  for (const listener of listeners) listener();
}

/** Register keys while the component is shown: from the moment one can see it. Later components come first. */
export function useShortcuts(shortcuts: readonly Shortcut[]): void {
  const latest = useRef(shortcuts);
  useLayoutEffect(() => {
    latest.current = shortcuts;
  });
  useLayoutEffect(() => {
    changed([latest, ...registered]);
    return () => changed(registered.filter((other) => other !== latest));
  }, []);
}

/** All keys that work now, for the legend. */
export function useRegisteredShortcuts(): readonly Shortcut[] {
  const entries = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => registered,
  );
  return entries.flatMap((entry) => entry.current);
}

/** Listen to the keyboard. */
export function useKeyboard(): void {
  useEffect(() => {
    let typed = "";
    let typedAt = 0;
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.altKey || event.isComposing) return;
      const mod = event.ctrlKey || event.metaKey ? "mod+" : "";
      if (mod === "" && (isEditing(event.target) || isInDialog())) return;
      const key = mod + (mod === "" ? event.key : event.key.toLowerCase());
      if (key.length > 1 && mod === "" && ["Shift", "Control", "Meta"].includes(key)) return;
      const now = event.timeStamp;
      const sequence = now - typedAt < PAUSE_MS && typed !== "" ? `${typed} ${key}` : key;
      const all = registered.flatMap((entry) => entry.current);
      const hit = all.find(({ keys }) => keys === sequence) ?? all.find(({ keys }) => keys === key);
      typed = all.some(({ keys }) => keys.startsWith(`${sequence} `)) ? sequence : "";
      typedAt = now;
      if (hit === undefined || (typed !== "" && hit.keys !== sequence)) return;
      typed = "";
      event.preventDefault();
      hit.run();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
}

function isEditing(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches("input, textarea, select"))
  );
}

/** Also when the focus is nowhere: the page below a window hears nothing, and Escape closes the window. */
function isInDialog(): boolean {
  return document.querySelector("dialog[open]") !== null;
}
