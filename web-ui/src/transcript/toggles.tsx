import { createContext, use, useSyncExternalStore } from "react";

/** What is open and closed in a transcript, by key. It outlives the rows, which come and go while one scrolls. */
export class Toggles {
  private readonly changed = new Map<string, boolean>();
  private readonly listeners = new Set<() => void>();

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  get(key: string): boolean | undefined {
    return this.changed.get(key);
  }

  set(key: string, isOpen: boolean): void {
    this.changed.set(key, isOpen);
    for (const listener of this.listeners) listener();
  }
}

export const TogglesContext = createContext(new Toggles());

/** Whether something is open, and a function that changes it. */
export function useToggle(key: string, initial = false): [boolean, () => void] {
  const toggles = use(TogglesContext);
  const isOpen = useSyncExternalStore(toggles.subscribe, () => toggles.get(key) ?? initial);
  return [isOpen, () => toggles.set(key, !isOpen)];
}
