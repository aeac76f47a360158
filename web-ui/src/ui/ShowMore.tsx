import { Button } from "./Button";

/** The end of a list that is loaded page by page. */
export function ShowMore({
  pages,
}: {
  pages: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
}) {
  if (!pages.hasNextPage) return null;
  return (
    <div className="p-3 text-center">
      <Button
        className="min-h-10"
        disabled={pages.isFetchingNextPage}
        onClick={() => pages.fetchNextPage()}
      >
        {pages.isFetchingNextPage ? "loading …" : "Show more"}
      </Button>
    </div>
  );
}
