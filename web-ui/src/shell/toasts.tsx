/** Short messages about what was done or failed. */

import { useSyncExternalStore } from "react";

import { messageOf } from "../api/problem";
import { classes } from "../ui/classes";

interface Toast {
  id: number;
  text: string;
  isError: boolean;
}

const MOST = 4;
let toasts: readonly Toast[] = [];
let newest = 0;
const listeners = new Set<() => void>();

function change(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

function close(id: number): void {
  change(toasts.filter((toast) => toast.id !== id));
}

function show(text: string, isError: boolean): void {
  newest += 1;
  const id = newest;
  change([...toasts, { id, text, isError }].slice(-MOST));
  setTimeout(() => close(id), isError ? 12_000 : 4_000);
}

export function notify(text: string): void {
  show(text, false);
}

export function notifyError(error: unknown): void {
  show(messageOf(error), true);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <div
      role="status"
      aria-live="polite"
      className="pointer-events-none fixed inset-x-0 bottom-16 z-50 flex flex-col items-center gap-2 px-4 md:bottom-4"
    >
      {shown.map((toast) => (
        <div
          key={toast.id}
          className={classes(
            "pointer-events-auto flex max-w-xl items-start gap-3 rounded-md border px-3 py-2 text-sm shadow-lg",
            toast.isError ? "border-bad bg-bad-soft text-bad" : "border-line bg-panel text-ink",
          )}
        >
          <span className="[overflow-wrap:anywhere]">{toast.text}</span>
          <button type="button" aria-label="Close the message" onClick={() => close(toast.id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
