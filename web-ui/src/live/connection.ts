/** One stream of the API that reconnects by itself and continues where it was. */

import { send } from "../api/client";
import { readEvents } from "./sse";

/** What a stream delivers, parsed. */
export interface LiveEvent {
  type: string;
  data: unknown;
}

export interface State {
  isOnline: boolean;
  /** When the last sign of life came, in milliseconds; 0 before the first. */
  aliveAt: number;
}

export interface Handlers {
  event: (event: LiveEvent, cursor: string) => void;
  state: (state: State) => void;
  /** The login is over: the connection has ended for good. */
  refused: () => void;
}

const FIRST_PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 5_000;
/** The server sends a comment every 15 s; after this long without one, the connection is gone. */
const SILENCE_MS = 40_000;

/** Keeps one stream open for changing topics. */
export class Connection {
  private readonly handlers: Handlers;
  private topics: readonly string[] = [];
  private cursor: string;
  private abort: AbortController | null = null;
  private isStopped = false;
  private wake: (() => void) | null = null;
  private state: State = { isOnline: true, aliveAt: 0 };

  constructor(cursor: string, handlers: Handlers) {
    this.cursor = cursor;
    this.handlers = handlers;
  }

  /** Follow these topics from where the stream is now. */
  follow(topics: readonly string[]): void {
    if (topics.join() === this.topics.join()) return;
    const isFirst = this.topics.length === 0;
    this.topics = topics;
    if (isFirst) void this.run();
    else this.reconnect();
  }

  /** Open the stream anew at once, for example after the network came back. */
  reconnect(): void {
    this.abort?.abort();
    this.wake?.();
  }

  stop(): void {
    this.isStopped = true;
    this.reconnect();
  }

  private async run(): Promise<void> {
    let pause = FIRST_PAUSE_MS;
    while (!this.isStopped) {
      const topics = this.topics;
      const outcome = await this.readOnce();
      if (outcome === "refused") {
        this.handlers.refused();
        return;
      }
      if (topics !== this.topics) continue;
      if (outcome === "read") pause = FIRST_PAUSE_MS;
      // A stream that ends is reopened at once; only what fails again counts as offline.
      if (outcome === "failed") this.tell({ isOnline: false });
      await this.sleep(pause * (0.75 + Math.random() / 2));
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }

  /** Read one connection to its end. */
  private async readOnce(): Promise<"read" | "failed" | "refused"> {
    const abort = new AbortController();
    this.abort = abort;
    let silence = setTimeout(() => abort.abort(), SILENCE_MS);
    let isRead = false;
    try {
      const response = await send("/stream", {
        query: { topics: this.topics.join(",") },
        accept: "text/event-stream",
        signal: abort.signal,
        ...(this.cursor !== "" && { headers: { "Last-Event-ID": this.cursor } }),
      });
      if (response.status === 401) return "refused";
      if (!response.ok || response.body === null) return "failed";
      for await (const event of readEvents(response.body)) {
        clearTimeout(silence);
        silence = setTimeout(() => abort.abort(), SILENCE_MS);
        isRead = true;
        this.tell({ isOnline: true, aliveAt: Date.now() });
        if (event.type === "") continue;
        const isFresh = this.cursor === "";
        if (event.id !== null) this.cursor = event.id;
        this.handlers.event({ type: event.type, data: JSON.parse(event.data) }, this.cursor);
        // What changed before this moment is in no event: whoever fetched something earlier fetches it again.
        if (isFresh) this.handlers.event({ type: "fresh", data: null }, this.cursor);
      }
    } catch {
      // A connection that breaks is opened again.
    } finally {
      clearTimeout(silence);
      this.abort = null;
    }
    return isRead ? "read" : "failed";
  }

  private tell(change: Partial<State>): void {
    const before = this.state;
    this.state = { ...before, ...change };
    if (before.isOnline !== this.state.isOnline || this.state.aliveAt - before.aliveAt > 1_000) {
      this.handlers.state(this.state);
    }
  }

  private sleep(ms: number): Promise<void> {
    if (this.isStopped) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        this.wake = null;
        resolve();
      };
    });
  }
}
