import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { refetcherOf } from "./refetch";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A list that is shown, and how often it was fetched; `takes` is how long one fetch takes. */
function shown(client: QueryClient, live: string[], takes = 0) {
  const list = { fetches: 0, finished: 0 };
  const queryFn = async () => {
    list.fetches += 1;
    const mine = list.fetches;
    await new Promise((resolve) => setTimeout(resolve, takes));
    list.finished += 1;
    return mine;
  };
  new QueryObserver(client, { queryKey: live, queryFn, meta: { live }, retry: false }).subscribe(
    () => undefined,
  );
  return list;
}

it("fetches what shows a changed row, and nothing else", async () => {
  const client = new QueryClient();
  const [jobs, one, other, inbox] = [["job"], ["job:a"], ["job:b"], ["inbox"]].map((live) =>
    shown(client, live),
  );
  await vi.advanceTimersByTimeAsync(10);

  refetcherOf(client).changed("job", { id: "a" });
  await vi.advanceTimersByTimeAsync(10);

  expect([jobs?.fetches, one?.fetches, other?.fetches, inbox?.fetches]).toEqual([2, 2, 1, 1]);
});

it("fetches jobs again when one has lost its worker", async () => {
  const client = new QueryClient();
  const [jobs, one, other, inbox] = [["job"], ["job:a"], ["job:b"], ["inbox"]].map((live) =>
    shown(client, live),
  );
  await vi.advanceTimersByTimeAsync(10);

  refetcherOf(client).changed("lost", { job_id: "a", since: "2026-11-19T00:00:00Z" });
  await vi.advanceTimersByTimeAsync(10);

  expect([jobs?.fetches, one?.fetches, other?.fetches, inbox?.fetches]).toEqual([2, 2, 1, 1]);
});

it("shows the first change at once and joins those that follow", async () => {
  const client = new QueryClient();
  const jobs = shown(client, ["job"]);
  await vi.advanceTimersByTimeAsync(10);
  const refetcher = refetcherOf(client);

  for (let change = 0; change < 20; change += 1) {
    refetcher.changed("job", { id: `j${change}` });
    await vi.advanceTimersByTimeAsync(20);
    if (change === 0) expect(jobs.fetches).toBe(2);
  }
  await vi.advanceTimersByTimeAsync(5_000);

  expect(jobs.fetches).toBe(3);
});

it("lets a slow fetch finish while rows keep changing, and fetches once more after it", async () => {
  const client = new QueryClient();
  const costs = shown(client, ["job"], 2_500);
  await vi.advanceTimersByTimeAsync(3_000);
  const refetcher = refetcherOf(client);

  for (let change = 0; change < 40; change += 1) {
    refetcher.changed("job", { id: "a" });
    await vi.advanceTimersByTimeAsync(250);
  }
  expect(costs.finished).toBeGreaterThanOrEqual(3);
  const before = costs.fetches;
  await vi.advanceTimersByTimeAsync(20_000);

  expect(costs.fetches).toBeGreaterThanOrEqual(before);
  expect(costs.fetches).toBeLessThanOrEqual(before + 2);
  expect(costs.finished).toBe(costs.fetches);
});

it("fetches everything live after a gap", async () => {
  const client = new QueryClient();
  const lists = [["job"], ["inbox"], []].map((live) => shown(client, live));
  await vi.advanceTimersByTimeAsync(10);

  refetcherOf(client).all();
  await vi.advanceTimersByTimeAsync(10);

  expect(lists.map(({ fetches }) => fetches)).toEqual([2, 2, 1]);
});
