/** Points in time and spans, for people. */

import { useSyncExternalStore } from "react";

const STEP_MS = 1_000;
let now = Date.now();
let timer: ReturnType<typeof setInterval> | null = null;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const one of listeners) one();
  }, STEP_MS);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0 && timer !== null) {
      clearInterval(timer);
      timer = null;
    }
  };
}

/** The time now in milliseconds, renewed every second while something shows it. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** Return a span such as `12 s`, `3 min`, `2 h 5 min`, `4 d`. */
export function spanText(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (seconds > 0 && seconds < 1) return "<1 s";
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60)
    return minutes < 10 && whole % 60 > 0 ? `${minutes} min ${whole % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 > 0 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} d`;
}

/** Return a point in time in the reader's own time zone. */
export function timeText(at: string): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** How long ago something was, or how long until it will be; the time itself is its title. */
export function Ago({ at }: { at: string }) {
  const current = useNow();
  const seconds = (current - Date.parse(at)) / 1_000;
  const text =
    Math.abs(seconds) < 1
      ? "now"
      : seconds > 0
        ? `${spanText(seconds)} ago`
        : `in ${spanText(-seconds)}`;
  return (
    <time dateTime={at} title={timeText(at)} className="whitespace-nowrap">
      {text}
    </time>
  );
}
