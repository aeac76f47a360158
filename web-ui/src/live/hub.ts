/**
 * One stream for all tabs of a browser. The tab that holds a lock keeps the stream open for the topics of all tabs and
 * passes on what comes; when it closes, the browser gives the lock to another tab, which continues at the last cursor.
 * A browser opens only six connections to a server over HTTP/1.1, so a stream for each tab would stop the seventh.
 */

import { Connection, type LiveEvent, type State } from "./connection";

type Message =
  | { kind: "topics"; tab: string; topics: string[] }
  | { kind: "ask" }
  | { kind: "event"; event: LiveEvent; cursor: string }
  | { kind: "state"; state: State };

export interface Listener {
  event?: (event: LiveEvent) => void;
  state?: (state: State) => void;
}

const JOB = "job:";

export class LiveHub {
  private readonly tab = crypto.randomUUID();
  private readonly name: string;
  private readonly channel: BroadcastChannel | null;
  private readonly listeners = new Set<Listener>();
  /** How often each topic is used in this tab. */
  private readonly wanted = new Map<string, number>();
  private readonly topicsOfTabs = new Map<string, string[]>();
  private connection: Connection | null = null;
  private followed: string[] = [];
  private cursor = "";
  /** By followed job, its last event that was passed on. */
  private readonly seqs = new Map<string, number>();
  private planned = false;
  private isStarted = false;
  /** Whether this tab is known as open by its lock: only then the leader takes its topics. */
  private isOpen = false;
  state: State = { isOnline: true, aliveAt: 0 };

  constructor(name: string) {
    this.name = name;
    const canShare = "locks" in navigator && typeof BroadcastChannel === "function";
    this.channel = canShare ? new BroadcastChannel(name) : null;
    if (this.channel !== null) {
      this.channel.onmessage = ({ data }: MessageEvent<Message>) => this.receive(data);
    }
  }

  /** Begin, once; without locks and channels this tab has a stream of its own. Everything ends with the tab. */
  start(): void {
    if (this.isStarted) return;
    this.isStarted = true;
    if (this.channel === null) {
      this.isOpen = true;
      this.lead(() => undefined);
      return;
    }
    void navigator.locks.request(`${this.name} tab ${this.tab}`, () => {
      this.isOpen = true;
      // Whoever leads next has to know the topics of all tabs: with fewer, the cursor would lose their jobs.
      this.post({ kind: "ask" });
      this.announce();
      return new Promise<never>(() => undefined);
    });
    const lead = () => new Promise<void>((release) => this.lead(release));
    void navigator.locks.request(`${this.name} leader`, lead);
  }

  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  onState = (changed: () => void): (() => void) => this.listen({ state: changed });

  /** Follow a topic until the returned function is called. */
  follow(topic: string): () => void {
    this.wanted.set(topic, (this.wanted.get(topic) ?? 0) + 1);
    this.announce();
    return () => {
      const uses = (this.wanted.get(topic) ?? 1) - 1;
      if (uses > 0) this.wanted.set(topic, uses);
      else this.wanted.delete(topic);
      this.announce();
    };
  }

  reconnect(): void {
    this.connection?.reconnect();
  }

  /** Say which topics this tab wants, once for all changes of a moment. */
  private announce(): void {
    if (this.planned || !this.isOpen) return;
    this.planned = true;
    queueMicrotask(() => {
      this.planned = false;
      const topics = [...this.wanted.keys()];
      this.post({ kind: "topics", tab: this.tab, topics });
      this.take(this.tab, topics);
    });
  }

  /** Open the stream for all tabs. A leader whose login is over lets another tab try. */
  private lead(release: () => void): void {
    this.connection = new Connection(this.cursor, {
      event: (event, cursor) => {
        this.cursor = cursor;
        if (!this.isNews(event)) return;
        this.post({ kind: "event", event, cursor });
        this.deliver(event);
      },
      state: (state) => {
        this.post({ kind: "state", state });
        this.show(state);
      },
      refused: () => {
        this.connection = null;
        release();
      },
    });
    this.post({ kind: "ask" });
    this.take(this.tab, [...this.wanted.keys()]);
  }

  private receive(message: Message): void {
    switch (message.kind) {
      case "event":
        // What the leader before sent last may come after this tab leads: its own stream brings it again.
        if (this.connection !== null) break;
        this.cursor = message.cursor;
        if (this.isNews(message.event)) this.deliver(message.event);
        break;
      case "state":
        this.show(message.state);
        break;
      case "ask":
        this.post({ kind: "topics", tab: this.tab, topics: [...this.wanted.keys()] });
        break;
      case "topics":
        this.take(message.tab, message.topics);
    }
  }

  /** Note the topics of a tab; the leader takes them into the stream. */
  private take(tab: string, topics: string[]): void {
    const before = this.topicsOfTabs.get(tab) ?? [];
    if (topics.length === 0) this.topicsOfTabs.delete(tab);
    else this.topicsOfTabs.set(tab, topics);
    if (this.connection === null) return;
    void this.forgetClosedTabs().then(() => {
      const all = new Set([...this.topicsOfTabs.values()].flat());
      const next = [...all].sort();
      const isSame = next.join() === this.followed.join();
      this.followed = next;
      for (const job of this.seqs.keys()) if (!all.has(JOB + job)) this.seqs.delete(job);
      // Without any topic the stream stays as it is until a tab wants one.
      if (next.length > 0) this.connection?.follow(next);
      if (isSame && topics.some((topic) => !before.includes(topic))) this.welcome();
    });
  }

  /** A tab that joins gets what `ready` says: the stream is not opened anew for it. */
  private welcome(): void {
    const event = { type: "ready", data: { jobs: Object.fromEntries(this.seqs) } };
    this.post({ kind: "event", event, cursor: this.cursor });
    this.post({ kind: "state", state: this.state });
    this.deliver(event);
  }

  private async forgetClosedTabs(): Promise<void> {
    if (this.channel === null) return;
    const { held = [] } = await navigator.locks.query();
    const prefix = `${this.name} tab `;
    const open = new Set(held.map((lock) => lock.name?.replace(prefix, "")));
    for (const tab of this.topicsOfTabs.keys()) {
      if (tab !== this.tab && !open.has(tab)) this.topicsOfTabs.delete(tab);
    }
  }

  /** Note where followed jobs are; false for an event that was passed on before. */
  private isNews(event: LiveEvent): boolean {
    if (event.type === "event") {
      const { job_id: job, event: line } = event.data as { job_id: string; event: { seq: number } };
      if (line.seq <= (this.seqs.get(job) ?? 0)) return false;
      this.seqs.set(job, line.seq);
    } else if (event.type === "ready") {
      const { jobs = {} } = event.data as { jobs?: Record<string, number> };
      for (const [job, seq] of Object.entries(jobs)) this.seqs.set(job, seq);
    }
    return true;
  }

  private show(state: State): void {
    this.state = state;
    for (const listener of this.listeners) listener.state?.(state);
  }

  private deliver(event: LiveEvent): void {
    for (const listener of this.listeners) listener.event?.(event);
  }

  private post(message: Message): void {
    this.channel?.postMessage(message);
  }
}
