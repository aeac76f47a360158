/** Fold journal events into transcript items: calls with their results, subagents inside their calls, gaps in time. */

import type { GapItem, GapReason, Item, SubagentItem, ToolItem, WaitItem } from "./items";
import type {
  JournalEvent,
  SystemEvent,
  TextDelta,
  ToolResultEvent,
  ToolUseEvent,
} from "./journal";
import { asNumber, asRecord, asText, blobOf, isAboutAnswer } from "./journal";
import { noticeOf } from "./notices";

/** Return the items of a contiguous part of a journal. The same events always give the same items. */
export function fold(events: readonly JournalEvent[]): Item[] {
  const folder = new Folder(events[0]?.seq === 1);
  for (const event of events) folder.add(event);
  return folder.finish();
}

class Folder {
  private readonly items: Item[] = [];
  private readonly tools = new Map<string, ToolItem>();
  private readonly orphans = new Map<string, SubagentItem>();
  private turn: number | null;
  private lastAt: string | null = null;
  private epoch: number | null = null;
  private gap: GapItem | null = null;
  private wait: WaitItem | null = null;
  private last: { list: Item[]; item: Item } | null = null;

  constructor(isFromStart: boolean) {
    // In the middle of a journal it is unknown whether the first event begins its turn.
    this.turn = isFromStart ? 0 : null;
  }

  add(event: JournalEvent): void {
    this.dispatch(event);
    this.lastAt = event.timestamp ?? this.lastAt;
    this.epoch = event.epoch ?? this.epoch;
  }

  private dispatch(event: JournalEvent): void {
    switch (event.type) {
      case "system":
        this.system(event);
        break;
      case "assistant":
        this.answer(event);
        break;
      case "tool_use":
        this.call(event);
        break;
      case "tool_result":
        this.result(event);
        break;
      case "error":
        this.put(event, { ...this.base(event, true), kind: "error", event });
        break;
      default:
        // A file of a newer version may have types that this page does not know.
        this.put(event, { ...this.base(event, false), kind: "unknown", event });
    }
  }

  finish(): Item[] {
    for (const tool of this.tools.values()) settle(tool);
    for (const orphan of this.orphans.values()) settle(orphan);
    return this.items;
  }

  private base(event: JournalEvent, isError: boolean) {
    return {
      key: String(event.seq),
      seq: event.seq,
      lastSeq: event.seq,
      at: event.timestamp ?? null,
      turn: event.turn ?? null,
      startsTurn: false,
      isError,
      revision: String(event.seq),
    };
  }

  /** Put an item where it belongs: inside the call of its subagent, or into the conversation. */
  private put(event: JournalEvent, item: Item): void {
    const list = this.listOf(event);
    if (list === this.items && item.turn !== null && item.turn !== this.turn) {
      item.startsTurn = this.turn !== null;
      this.turn = item.turn;
    }
    list.push(item);
    this.last = { list, item };
  }

  private listOf(event: JournalEvent): Item[] {
    const parent = event.parent_tool_use_id;
    if (!parent) return this.items;
    const tool = this.tools.get(parent);
    if (tool !== undefined) {
      tool.lastSeq = Math.max(tool.lastSeq, event.seq);
      return tool.children;
    }
    let orphan = this.orphans.get(parent);
    if (orphan === undefined) {
      orphan = { ...this.base(event, false), kind: "subagent", parent, children: [], turn: null };
      orphan.key = `subagent:${parent}`;
      this.orphans.set(parent, orphan);
      this.items.push(orphan);
    }
    orphan.lastSeq = event.seq;
    return orphan.children;
  }

  private answer(event: Extract<JournalEvent, { type: "assistant" }>): void {
    const isCutOff = event.partial === true && event.extra?.cut_off === true;
    if (event.partial && !isCutOff) return;
    const text = event.content ?? "";
    const thinking = event.thinking ?? "";
    const hasBlob = blobOf(event, "content") !== null || blobOf(event, "thinking") !== null;
    // A line with only usage belongs to no message.
    if (!text && !thinking && !hasBlob && asRecord(event.extra)?.whole === undefined) return;
    this.put(event, {
      ...this.base(event, false),
      kind: "answer",
      event,
      text,
      thinking,
      isCutOff,
    });
  }

  private tool(event: JournalEvent, id: string | null | undefined): ToolItem {
    const known = id ? this.tools.get(id) : undefined;
    if (known !== undefined) return known;
    const item: ToolItem = {
      ...this.base(event, false),
      kind: "tool",
      call: null,
      result: null,
      reviews: [],
      denied: null,
      progress: null,
      children: [],
    };
    if (id) {
      item.key = `tool:${id}`;
      this.tools.set(id, item);
    }
    this.put(event, item);
    return item;
  }

  private call(event: ToolUseEvent): void {
    const id = event.tool_use_id;
    const known = id ? this.tools.get(id) : undefined;
    // An id that is used again is another call.
    if (id && known?.call) this.tools.delete(id);
    const item = this.tool(event, id);
    if (known?.call) item.key = `tool:${id}:${event.seq}`;
    item.call = event;
    const orphan = id ? this.orphans.get(id) : undefined;
    if (orphan === undefined || !id) return;
    item.children.push(...orphan.children);
    this.items.splice(this.items.indexOf(orphan), 1);
    this.orphans.delete(id);
  }

  private result(event: ToolResultEvent): void {
    const item = this.tool(event, event.tool_use_id);
    item.result = event;
    item.lastSeq = Math.max(item.lastSeq, event.seq);
    item.isError = event.success === false;
  }

  private system(event: SystemEvent): void {
    const extra = event.extra ?? {};
    switch (event.subtype) {
      case "user_input": {
        const by = asText(extra.by) || null;
        const text = event.content ?? "";
        this.put(event, { ...this.base(event, false), kind: "prompt", event, text, by });
        return;
      }
      case "execution_started":
        this.execution(event);
        return;
      case "recovered":
        if (this.gap === null) break;
        this.gap.text = asText(extra.reason) || this.gap.text;
        this.gap.reason = isHandover(this.gap.text) ? "handover" : "crash";
        extend(this.gap, event);
        return;
      case "suspended":
        this.suspended(event);
        return;
      case "resumed":
        this.resumed(event);
        return;
      case "review":
        this.review(event);
        return;
      case "denied": {
        const id = asText(extra.tool_use_id);
        const tool = id ? this.tools.get(id) : undefined;
        if (tool === undefined) break;
        tool.denied = asText(extra.reason) || event.content || "denied";
        tool.isError = true;
        extend(tool, event);
        return;
      }
      case "tool_progress":
        this.progress(event);
        return;
      case "end": {
        const status = asText(extra.status);
        const exitReason = asText(extra.exit_reason);
        this.put(event, {
          ...this.base(event, status === "failed"),
          kind: "end",
          event,
          status,
          exitReason,
        });
        return;
      }
      default:
        break;
    }
    const notice = noticeOf(event);
    this.put(event, {
      ...this.base(event, notice.severity === "bad"),
      kind: "notice",
      event,
      ...notice,
    });
  }

  /** A new execution: the time since the last event of the one before is a gap, unless it is the first. */
  private execution(event: SystemEvent): void {
    const extra = event.extra ?? {};
    const isFirst = !asNumber(extra.continues_after) || this.epoch === null;
    if (isFirst) {
      const notice = noticeOf(event);
      this.put(event, { ...this.base(event, false), kind: "notice", event, ...notice });
      return;
    }
    const reason = (this.wait?.reason ?? "unknown") as GapReason;
    const gap: GapItem = {
      ...this.base(event, false),
      kind: "gap",
      reason,
      text: this.wait?.text ?? "",
      from: this.lastAt,
      to: event.timestamp ?? null,
      worker: asText(extra.worker) || null,
    };
    if (this.wait !== null) this.wait.resumedAt = event.timestamp ?? null;
    this.wait = null;
    this.gap = gap;
    this.put(event, gap);
  }

  private suspended(event: SystemEvent): void {
    const extra = event.extra ?? {};
    const reason = asText(extra.reason);
    this.wait = {
      ...this.base(event, reason === "error"),
      kind: "wait",
      event,
      reason,
      code: asText(extra.code) || null,
      text: event.content ?? asText(extra.message),
      until: asText(extra.until) || null,
      resumedAt: null,
    };
    this.put(event, this.wait);
  }

  private resumed(event: SystemEvent): void {
    if (this.wait !== null) {
      this.wait.resumedAt = event.timestamp ?? null;
      extend(this.wait, event);
      this.wait = null;
      return;
    }
    if (this.gap !== null && this.last?.item === this.gap) {
      if (this.gap.reason === "unknown") this.gap.reason = "resumed";
      extend(this.gap, event);
      return;
    }
    this.put(event, { ...this.base(event, false), kind: "notice", event, ...noticeOf(event) });
  }

  private review(event: SystemEvent): void {
    const extra = event.extra ?? {};
    const item = this.tool(event, asText(extra.tool_use_id));
    item.reviews.push({
      item: asText(extra.item),
      status: asText(extra.status),
      by: asText(extra.by) || null,
      via: asText(extra.via) || null,
      input: extra.input,
      seq: event.seq,
    });
    extend(item, event);
  }

  private progress(event: SystemEvent): void {
    const extra = event.extra ?? {};
    const id = asText(extra.tool_use_id);
    const tool = id ? this.tools.get(id) : undefined;
    if (tool === undefined) {
      this.put(event, { ...this.base(event, false), kind: "notice", event, ...noticeOf(event) });
      return;
    }
    const text = asText(extra.task) || event.content || tool.progress?.text || "";
    tool.progress = { text, elapsedMs: asNumber(extra.elapsed_ms) };
    extend(tool, event);
  }
}

function isHandover(reason: string): boolean {
  return /hand|drain|stopped/i.test(reason);
}

function extend(item: Item, event: JournalEvent): void {
  item.lastSeq = Math.max(item.lastSeq, event.seq);
  item.revision = `${item.revision},${event.seq}`;
}

/** Give a call its revision, and mark it as failed when something inside failed. */
function settle(item: ToolItem | SubagentItem): void {
  const inner = item.children.map((child) => child.revision).join(" ");
  const own =
    item.kind === "tool"
      ? `${item.call?.seq ?? 0}/${item.result?.seq ?? 0}/${item.lastSeq}`
      : String(item.lastSeq);
  item.revision = `${own}[${inner.length}:${item.children.length}]`;
}

/** Text that is arriving: pieces of parts, as far as no recorded event has their text. */
export class LiveText {
  private parts = new Map<string, { after: number; text: string }>();

  /** Add a piece. A piece that repeats what is known adds nothing; one after a hole is left out. */
  add(delta: TextDelta): void {
    const name = `${delta.epoch}.${delta.part}`;
    const part = this.parts.get(name) ?? { after: delta.after, text: "" };
    if (delta.at > part.text.length) return;
    part.text = part.text.slice(0, delta.at) + delta.text;
    part.after = delta.after;
    this.parts.set(name, part);
  }

  /** Forget the text that `event` has now. */
  see(event: JournalEvent): void {
    if (!isAboutAnswer(event)) return;
    for (const [name, part] of this.parts) if (event.seq > part.after) this.parts.delete(name);
  }

  /** The item at the end of the transcript; null when nothing is arriving. */
  item(): Item | null {
    const text = [...this.parts.values()].map((part) => part.text).join("\n\n");
    if (!text) return null;
    const seq = Math.max(...[...this.parts.values()].map((part) => part.after));
    return {
      kind: "live",
      key: "live",
      seq,
      lastSeq: seq,
      at: null,
      turn: null,
      startsTurn: false,
      isError: false,
      revision: String(text.length),
      text,
    };
  }
}
