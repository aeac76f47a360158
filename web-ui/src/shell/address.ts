/** The address of the page: parts of its path and its query, as texts. */

import { useParams, useSearch } from "@tanstack/react-router";

export type Search = Record<string, string | undefined>;

/** A part of the path, such as `job` of `/jobs/$job`. */
export function useAddressPart(name: string): string {
  const parts: Record<string, string | undefined> = useParams({ strict: false });
  return parts[name] ?? "";
}

/** The query of the address. */
export function useAddressSearch(): Search {
  return useSearch({ strict: false });
}

export function parseSearch(text: string): Search {
  return Object.fromEntries(new URLSearchParams(text));
}

export function searchText(search: Search): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (value !== undefined && value !== "") parameters.set(name, value);
  }
  const text = parameters.toString();
  return text === "" ? "" : `?${text}`;
}
