/** Server-sent events read with `fetch`, which sends the headers of a login; `EventSource` sends none. */

export interface ServerEvent {
  id: string | null;
  type: string;
  data: string;
}

/** Read events from a body until it ends. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
        const event = parseEvent(rest.slice(0, end));
        rest = rest.slice(end + 2);
        yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Return one event; a comment is an event of the type "". */
export function parseEvent(text: string): ServerEvent {
  const event: ServerEvent = { id: null, type: "", data: "" };
  const data: string[] = [];
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const name = line.slice(0, colon);
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (name === "id") event.id = value;
    else if (name === "event") event.type = value;
    else if (name === "data") data.push(value);
  }
  event.data = data.join("\n");
  return event;
}
