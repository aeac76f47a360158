/** Addresses and the pages they show. */

import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Link,
} from "@tanstack/react-router";

import { Empty, Failure, Loading, Page } from "../ui/Page";
import { parseSearch, searchText, type Search } from "./address";
import { Layout } from "./Layout";
import { PAGES } from "./pages";

/** Where the dashboard is served, without a last slash. */
const basepath = new URL(document.baseURI).pathname.replace(/\/$/, "") || "/";

export function makeRouter() {
  const root = createRootRoute({ component: Layout, notFoundComponent: NotFound });
  const children = PAGES.map(({ path, load }) =>
    createRoute({
      getParentRoute: () => root,
      path,
      component: lazyRouteComponent(load),
      validateSearch: (search): Search => search as Search,
    }),
  );
  return createRouter({
    routeTree: root.addChildren(children),
    basepath,
    parseSearch,
    stringifySearch: (search: Search) => searchText(search),
    defaultPendingComponent: Loading,
    defaultPendingMs: 200,
    defaultErrorComponent: ({ error, reset }) => <Failure error={error} retry={reset} />,
    scrollRestoration: false,
  });
}

function NotFound() {
  return (
    <Page title="Not found">
      <Empty>
        There is no page at this address.{" "}
        <Link to="/" className="text-accent underline">
          Home
        </Link>
      </Empty>
    </Page>
  );
}
