import { createContext, use, type ReactNode } from "react";

import type { Item } from "./items";
import type { Source } from "./source";

/** What items of a transcript can do beyond showing themselves. */
export interface TranscriptActions {
  source: Source;
  /** Replace an event whose texts were cut by the whole one. */
  expand: (seq: number) => Promise<void>;
  /** The address of an event. */
  linkTo: (seq: number) => string;
  /** More that can be done with an item, such as forking there. */
  extra: ((item: Item) => ReactNode) | null;
  /** What is searched for in the loaded part. */
  find: string;
}

export const ActionsContext = createContext<TranscriptActions | null>(null);

export function useActions(): TranscriptActions {
  const actions = use(ActionsContext);
  if (actions === null) throw new Error("ActionsContext is missing");
  return actions;
}
