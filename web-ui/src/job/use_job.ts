import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";

import { get } from "../api/client";
import { useLiveEvents, useTopic } from "../live/live";
import type { JournalEvent, TextDelta } from "../transcript/journal";
import { TranscriptStore } from "../transcript/store";
import type { JobDocument, Outline } from "./documents";
import { JobSource, jobPath } from "./job_source";

/** One job, its outline and its transcript, kept current by the stream. */
export function useJob(reference: string) {
  const job = useQuery({
    queryKey: ["job", reference],
    queryFn: ({ signal }) => get<JobDocument>(jobPath(reference), undefined, signal),
    meta: { live: ["job"] },
  });
  // An address may have a prefix or `@last`; the stream and the journal take the whole id.
  const id = job.data?.id ?? null;
  const outline = useQuery({
    queryKey: ["outline", id],
    queryFn: ({ signal }) => get<Outline>(`${jobPath(id ?? "")}/outline`, undefined, signal),
    enabled: id !== null,
    meta: { live: ["job"] },
  });
  const store = useMemo(() => (id === null ? null : new TranscriptStore(new JobSource(id))), [id]);

  const [liveAt, setLiveAt] = useState({ job: id, at: "" });

  useTopic(id === null ? null : `job:${id}`);
  useLiveEvents<{ job_id: string; event: JournalEvent }>("event", (data) => {
    if (data.job_id !== id) return;
    store?.add(data.event);
    if (data.event.timestamp != null) setLiveAt({ job: id, at: data.event.timestamp });
  });
  useLiveEvents<TextDelta & { job_id: string }>("text_delta", (data) => {
    if (data.job_id === id) store?.addText(data);
  });
  useLiveEvents<{ jobs?: Record<string, number> }>("ready", (data) => {
    if (id !== null) store?.note(data.jobs?.[id] ?? 0);
  });
  const total = outline.data?.last_seq ?? 0;
  useEffect(() => store?.note(total), [store, total]);

  const recordedAt = outline.data?.last_at ?? "";
  const newest = liveAt.job === id && liveAt.at > recordedAt ? liveAt.at : recordedAt;
  /** When the job recorded something last; null before. */
  const lastAt = newest === "" ? null : newest;
  return { job, outline, store, lastAt };
}
