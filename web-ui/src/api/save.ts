/** Files of the API, saved by the browser. A link cannot send the page's secret, so the page fetches them. */

import { send, type Query } from "./client";
import { problemOf } from "./problem";

const NAME = /filename="([^"]+)"/;

/** Save what a path of the API answers with, under the name that it says. */
export async function saveFile(path: string, query: Query, name: string): Promise<void> {
  const response = await send(path, { query, accept: "*/*" });
  if (!response.ok) throw await problemOf(response);
  const said = NAME.exec(response.headers.get("content-disposition") ?? "")?.[1];
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = said ?? name;
  link.click();
  // The browser reads the file after the click.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
