/** Requests to the API: with the page's secret, and problems as exceptions. */

import { problemOf } from "./problem";
import { forgetSecret, readSecret } from "./secret";

export interface Envelope<T> {
  data: T;
  as_of: string;
}
/** A list that continues with `before`. */
export interface Page<T> extends Envelope<T[]> {
  next_before: number | string | null;
}

export type Query = Record<string, string | number | boolean | null | undefined>;

export interface Options {
  method?: string;
  query?: Query | undefined;
  body?: unknown;
  /** The `Idempotency-Key`: repeating the request acts once. */
  key?: string;
  signal?: AbortSignal | undefined;
  accept?: string;
  headers?: Record<string, string>;
}

/** Return the address of a path of the API, such as `/jobs`. */
export function apiUrl(path: string, query?: Query): URL {
  const url = new URL(`v1${path}`, document.baseURI);
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== null && value !== undefined && value !== "") {
      url.searchParams.set(name, String(value));
    }
  }
  return url;
}

const listeners = new Set<() => void>();

/** Call `listener` when the API no longer accepts this login. */
export function onLoggedOut(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Send a request; the caller looks at the status. */
export async function send(path: string, options: Options = {}): Promise<Response> {
  const { method = "GET", query, body, key, signal, accept = "application/json" } = options;
  const headers: Record<string, string> = { ...options.headers, Accept: accept };
  const secret = readSecret();
  if (secret !== null) headers["X-Nightherd-Secret"] = secret;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key !== undefined) headers["Idempotency-Key"] = key;
  const response = await fetch(apiUrl(path, query), {
    method,
    headers,
    credentials: "same-origin",
    cache: "no-store",
    ...(body !== undefined && { body: body instanceof Blob ? body : JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
  });
  if (response.status === 401 && path !== "/login") {
    // Another tab may have logged in again meanwhile: then its secret stays.
    if (secret === readSecret()) forgetSecret();
    for (const listener of listeners) listener();
  }
  return response;
}

/** Send a request and return the whole answer; a refusal is an `ApiProblem`. */
export async function request<T>(path: string, options: Options = {}): Promise<T> {
  const response = await send(path, options);
  if (!response.ok) throw await problemOf(response);
  return (await response.json()) as T;
}

/** Return the `data` of an answer. */
export async function get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  return (await request<Envelope<T>>(path, { query, signal })).data;
}

/** Return a page of a list. */
export function getPage<T>(path: string, query?: Query, signal?: AbortSignal): Promise<Page<T>> {
  return request<Page<T>>(path, { query, signal });
}

/** Change something and return the `data` of the answer. */
export async function post<T>(
  path: string,
  body?: unknown,
  options: { key?: string; method?: string; headers?: Record<string, string> } = {},
): Promise<T> {
  const answer = await request<Envelope<T>>(path, { method: "POST", body: body ?? {}, ...options });
  return answer.data;
}

/** Remove something. */
export async function remove<T>(path: string, query?: Query): Promise<T> {
  return (await request<Envelope<T>>(path, { method: "DELETE", query })).data;
}
