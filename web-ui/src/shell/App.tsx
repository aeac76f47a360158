import { QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { useEffect, useState } from "react";

import { get, onLoggedOut } from "../api/client";
import { ApiProblem } from "../api/problem";
import { onOtherTab } from "../api/secret";
import type { Me } from "../api/types";
import { LiveHub } from "../live/hub";
import { LiveProvider } from "../live/live";
import { PUSH_KEY } from "../settings/push_key";
import { Failure, Loading } from "../ui/Page";
import { Login } from "./Login";
import { makeRouter } from "./router";
import { MeContext } from "./session";
import { Toasts } from "./toasts";

function makeClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        // The stream says when something changed.
        staleTime: 30_000,
        refetchOnWindowFocus: false,
        retry: (count, error) => !(error instanceof ApiProblem) && count < 2,
        networkMode: "always",
      },
      mutations: { networkMode: "always" },
    },
  });
}

/** The dashboard: a login, then its pages. */
export function App({ loginProblem }: { loginProblem: unknown }) {
  const [client] = useState(makeClient);
  return (
    <QueryClientProvider client={client}>
      <Session loginProblem={loginProblem} />
      <Toasts />
    </QueryClientProvider>
  );
}

function Session({ loginProblem }: { loginProblem: unknown }) {
  const [isLoggedOut, setLoggedOut] = useState(false);
  const [router] = useState(makeRouter);
  const [hub] = useState(() => new LiveHub(`nightherd ${document.baseURI}`));
  useEffect(() => onLoggedOut(() => setLoggedOut(true)), []);
  useEffect(() => onOtherTab((isLoggedIn) => !isLoggedIn && setLoggedOut(true)), []);
  const me = useQuery({
    queryKey: ["me"],
    queryFn: ({ signal }) => get<Me>("/me", undefined, signal),
    staleTime: Infinity,
  });
  const login = me.data?.expires_at ?? null;
  useEffect(() => {
    if (login === null || localStorage.getItem(PUSH_KEY) === null) return;
    // Notifications are no reason to fail: Settings shows what is wrong with them.
    const ignore = () => undefined;
    import("../settings/push").then((push) => push.renewSubscription(login)).catch(ignore);
  }, [login]);
  if (isLoggedOut || isUnauthorized(me.error)) return <Login problem={loginProblem} />;
  if (me.isPending) return <Loading />;
  if (me.isError) return <Failure error={me.error} retry={() => void me.refetch()} />;
  return (
    <MeContext value={me.data}>
      <LiveProvider hub={hub}>
        <RouterProvider router={router} />
      </LiveProvider>
    </MeContext>
  );
}

function isUnauthorized(error: unknown): boolean {
  return error instanceof ApiProblem && error.status === 401;
}
