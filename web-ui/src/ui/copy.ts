/** Copying to the clipboard. */

import { notify } from "../shell/toasts";

/** Copy a text and say so. Browsers have no clipboard where the page comes over plain HTTP from another machine. */
export async function copyText(text: string): Promise<void> {
  if (!("clipboard" in navigator)) {
    throw new Error("this browser copies only over HTTPS or on localhost: select the text instead");
  }
  await navigator.clipboard.writeText(text);
  notify("copied");
}
