import { useSyncExternalStore } from "react";

/** Whether the window fits a media query, such as `(min-width: 48rem)`. */
export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (changed) => {
      const media = matchMedia(query);
      media.addEventListener("change", changed);
      return () => media.removeEventListener("change", changed);
    },
    () => matchMedia(query).matches,
  );
}

/** Wide enough for tables and for panes beside each other. */
export const IS_WIDE = "(min-width: 48rem)";
