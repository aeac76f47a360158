import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";

import { get, getPage } from "../api/client";
import type { AgentRow, Schemas } from "../api/types";
import { useAddressSearch } from "../shell/address";
import { Button } from "../ui/Button";
import { Field, Select, TextInput } from "../ui/fields";
import { Empty, Failure, Loading, Page } from "../ui/Page";
import { Ago } from "../ui/time";
import { piecesOf } from "./ranges";

type Hit = Schemas["HitRow"];
const SINCE = [
  ["", "any time"],
  ["1d", "last day"],
  ["7d", "last 7 days"],
  ["30d", "last 30 days"],
] as const;

/** Words in all prompts, answers and tool calls; a hit leads to its event. */
export default function SearchPage() {
  const { q = "", agent = "", since = "" } = useAddressSearch();
  const navigate = useNavigate();
  const agents = useQuery({
    queryKey: ["agents"],
    queryFn: ({ signal }) => get<AgentRow[]>("/agents", undefined, signal),
    meta: { live: ["agent"] },
  });
  const hits = useInfiniteQuery({
    queryKey: ["search", q, agent, since],
    queryFn: ({ pageParam, signal }) =>
      getPage<Hit>("/search", { q, agent, since, limit: 30, before: pageParam }, signal),
    initialPageParam: null as string | number | null,
    getNextPageParam: (page) => page.next_before,
    enabled: q !== "",
  });
  const go = (change: { q?: string; agent?: string; since?: string }) =>
    void navigate({ to: "/search", search: { q, agent, since, ...change } });
  const rows = hits.data?.pages.flatMap((page) => page.data) ?? [];
  return (
    <Page title="Search">
      <form
        // The words are those of the address, also when the palette or the browser's history changed it.
        key={q}
        role="search"
        className="flex flex-wrap items-end gap-2"
        onSubmit={(event) => {
          event.preventDefault();
          const words = new FormData(event.currentTarget).get("q");
          go({ q: typeof words === "string" ? words.trim() : "" });
        }}
      >
        <Field label='Words, "a phrase" or beginnings*'>
          <TextInput
            // The page is opened to type into it.
            autoFocus
            type="search"
            name="q"
            defaultValue={q}
            className="w-[min(28rem,85vw)]"
          />
        </Field>
        <Field label="Agent">
          <Select
            value={agent}
            options={[["", "all"], ...(agents.data ?? []).map(({ name }) => [name, name] as const)]}
            onChange={(event) => go({ agent: event.target.value })}
          />
        </Field>
        <Field label="Time">
          <Select
            value={since}
            options={SINCE}
            onChange={(event) => go({ since: event.target.value })}
          />
        </Field>
        <Button look="primary" type="submit" className="min-h-9">
          Search
        </Button>
      </form>
      {q === "" && (
        <Empty>
          Searches prompts, answers, tool calls and their results, errors and summaries.
        </Empty>
      )}
      {q !== "" && hits.isPending && <Loading />}
      {hits.isError && <Failure error={hits.error} retry={() => void hits.refetch()} />}
      {hits.isSuccess && rows.length === 0 && <Empty>Nothing has these words.</Empty>}
      <ol className="flex flex-col gap-2" aria-label="Hits">
        {rows.map((hit, place) => (
          <HitView key={`${hit.job_id ?? hit.session_id} ${hit.seq} ${place}`} hit={hit} />
        ))}
      </ol>
      {hits.hasNextPage && (
        <Button disabled={hits.isFetchingNextPage} onClick={() => void hits.fetchNextPage()}>
          Show more
        </Button>
      )}
    </Page>
  );
}

function HitView({ hit }: { hit: Hit }) {
  const place =
    hit.job_id !== null
      ? { to: `/jobs/${hit.job_id}`, ...(hit.seq !== null && { hash: String(hit.seq) }) }
      : { to: `/sessions/${hit.session_id ?? ""}` };
  return (
    <li className="rounded-lg border border-line bg-panel">
      <Link {...place} className="block px-3 py-2 hover:bg-hover">
        <span className="flex flex-wrap gap-x-2 text-xs text-faint">
          <span className="font-medium text-ink">{hit.agent}</span>
          <span>{hit.kind}</span>
          <span className="font-mono">{hit.job_id ?? hit.session_id}</span>
          {hit.seq !== null && <span>event {hit.seq}</span>}
          <span className="ml-auto">
            <Ago at={hit.at} />
          </span>
        </span>
        <span className="block text-sm wrap-anywhere whitespace-pre-wrap">
          {piecesOf(hit.snippet, hit.ranges).map((piece, index) =>
            piece.isHit ? (
              <mark key={index} className="rounded bg-wait-soft text-ink">
                {piece.text}
              </mark>
            ) : (
              piece.text
            ),
          )}
        </span>
      </Link>
    </li>
  );
}
