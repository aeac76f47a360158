/** For tests: what tabs of one browser share, locks and a channel, and a server of the stream. */

import { vi } from "vitest";

type Release = Promise<unknown>;
interface Lock {
  name: string;
  tab: number;
  take: () => Release;
}

/** Tabs that can close; each gets its own `navigator.locks` and `BroadcastChannel` while it runs. */
export class FakeBrowser {
  private held: Lock[] = [];
  private waiting: Lock[] = [];
  private channels: { tab: number; onmessage: ((event: { data: unknown }) => void) | null }[] = [];
  private tabs = 0;

  open() {
    this.tabs += 1;
    const tab = this.tabs;
    const { channels, locks } = { channels: () => this.channels, locks: this.locksOf(tab) };
    const deliver = (data: unknown) => {
      if (this.isClosed(tab)) return;
      for (const other of channels()) {
        if (other.tab !== tab) queueMicrotask(() => other.onmessage?.({ data }));
      }
    };
    class Channel {
      readonly tab = tab;
      onmessage: ((event: { data: unknown }) => void) | null = null;
      constructor() {
        channels().push(this);
      }
      postMessage(data: unknown) {
        deliver(structuredClone(data));
      }
    }
    return {
      run: <T>(act: () => T): T => {
        vi.stubGlobal("BroadcastChannel", Channel);
        Object.defineProperty(navigator, "locks", { value: locks, configurable: true });
        return act();
      },
      close: () => this.close(tab),
    };
  }

  private readonly closed = new Set<number>();

  private isClosed(tab: number): boolean {
    return this.closed.has(tab);
  }

  private close(tab: number): void {
    this.closed.add(tab);
    this.channels = this.channels.filter((channel) => channel.tab !== tab);
    this.waiting = this.waiting.filter((lock) => lock.tab !== tab);
    for (const lock of this.held.filter((one) => one.tab === tab)) this.release(lock);
  }

  private locksOf(tab: number) {
    return {
      request: (name: string, take: () => Release) => {
        this.waiting.push({ name, tab, take });
        queueMicrotask(() => this.grant());
        return Promise.resolve();
      },
      query: () => Promise.resolve({ held: this.held.map(({ name }) => ({ name })) }),
    };
  }

  private grant(): void {
    for (const lock of [...this.waiting]) {
      if (this.held.some(({ name }) => name === lock.name)) continue;
      this.waiting.splice(this.waiting.indexOf(lock), 1);
      this.held.push(lock);
      void lock.take().then(() => this.release(lock));
    }
  }

  private release(lock: Lock): void {
    this.held = this.held.filter((other) => other !== lock);
    queueMicrotask(() => this.grant());
  }
}

/** A server of the stream: what is open at it, with the topics and the cursor it was opened with. */
export class FakeServer {
  open: { topics: string[]; cursor: string | null; write: (text: string) => void }[] = [];
  /** How many streams were asked for, also those that have ended or were refused. */
  count = 0;
  status = 200;

  readonly fetch = (input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> => {
    const address = input instanceof Request ? input.url : String(input);
    const topics = new URL(address, location.origin).searchParams.get("topics") ?? "";
    this.count += 1;
    if (this.status !== 200) return Promise.resolve(new Response(null, { status: this.status }));
    let control!: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({ start: (given) => void (control = given) });
    const stream = {
      topics: topics.split(","),
      cursor: new Headers(init.headers).get("Last-Event-ID"),
      write: (text: string) => control.enqueue(new TextEncoder().encode(text)),
    };
    this.open.push(stream);
    init.signal?.addEventListener("abort", () => {
      this.open = this.open.filter((other) => other !== stream);
      control.error(new DOMException("aborted", "AbortError"));
    });
    return Promise.resolve(new Response(body, { status: 200 }));
  };

  /** Send one event to all that listen. */
  send(id: string, type: string, data: unknown): void {
    for (const { write } of this.open) {
      write(`id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
    }
  }

  /** Wait for the stream with this number. */
  until(count: number): Promise<void> {
    return vi.waitFor(() => {
      if (this.count < count) throw new Error(`${this.count} of ${count} streams were opened`);
    });
  }

  /** Take no more streams. */
  stop(): void {
    this.status = 401;
  }
}
