import { request, send, type Envelope } from "../api/client";
import { problemOf } from "../api/problem";
import type { JournalEvent } from "../transcript/journal";
import { WINDOW, type EventPage, type Place, type Source } from "../transcript/source";

interface EventsAnswer extends Envelope<JournalEvent[]> {
  has_before: boolean;
  has_after: boolean;
}

/** The journal of a job, window by window from the API. */
export class JobSource implements Source {
  private readonly job: string;

  constructor(job: string) {
    this.job = job;
  }

  async page(place: Place): Promise<EventPage> {
    const query = { ...place, limit: WINDOW, bodies: "short" };
    const answer = await request<EventsAnswer>(`${jobPath(this.job)}/events`, { query });
    return { events: answer.data, hasBefore: answer.has_before, hasAfter: answer.has_after };
  }

  async whole(seq: number): Promise<JournalEvent> {
    const response = await send(`${jobPath(this.job)}/events/${seq}/body`);
    if (!response.ok) throw await problemOf(response);
    return (await response.json()) as JournalEvent;
  }

  async blob(sha256: string): Promise<Blob> {
    const response = await send(`/blobs/${encodeURIComponent(sha256)}`, {
      query: { job: this.job },
    });
    if (!response.ok) throw await problemOf(response);
    return response.blob();
  }
}

/** The path of a job in the API. */
export function jobPath(job: string): string {
  return `/jobs/${encodeURIComponent(job)}`;
}
