import type { ReactNode } from "react";

import { classes } from "./classes";

export interface Column<Row> {
  head: string;
  cell: (row: Row) => ReactNode;
  /** Numbers stand at the right. */
  isNumber?: boolean;
}

/**
 * Rows with a heading for each column. Where there is no room for columns, each row is a card: its first value, and
 * below it the others with their headings. A table that is too wide all the same scrolls by itself.
 */
export function Table<Row>({
  label,
  columns,
  rows,
  rowKey,
}: {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
}) {
  return (
    <div className="@container">
      <div
        role="region"
        aria-label={label}
        tabIndex={0}
        className="overflow-x-auto rounded-lg border border-line bg-panel"
      >
        {/* The roles stay where the looks of a card would end those of a table. */}
        <table role="table" className="block text-sm @xl:table @xl:w-full">
          <thead
            role="rowgroup"
            className="sr-only border-b border-line text-left text-xs text-faint @xl:not-sr-only @xl:table-header-group"
          >
            <tr role="row">
              {columns.map(({ head, isNumber }) => (
                <th
                  key={head}
                  role="columnheader"
                  scope="col"
                  className={classes("px-3 py-1.5 font-medium", isNumber && "text-right")}
                >
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody role="rowgroup" className="block @xl:table-row-group">
            {rows.map((row) => (
              <tr key={rowKey(row)} role="row" className={ROW}>
                {columns.map(({ head, cell, isNumber }, place) => (
                  <td
                    key={head}
                    role="cell"
                    data-head={head}
                    className={classes(
                      CELL,
                      place === 0 ? "basis-full font-medium @xl:font-normal" : HEADED,
                      isNumber
                        ? "whitespace-nowrap tabular-nums @xl:text-right"
                        : "min-w-0 wrap-anywhere @xl:wrap-break-word",
                    )}
                  >
                    {cell(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

const ROW =
  "flex flex-wrap items-baseline gap-x-4 gap-y-0.5 border-b border-line px-3 py-2 align-top last:border-0 @xl:table-row @xl:p-0";
const CELL = "empty:hidden @xl:table-cell @xl:px-3 @xl:py-1.5 @xl:empty:table-cell";
const HEADED =
  "before:mr-1.5 before:text-xs before:text-faint before:content-[attr(data-head)_/_''] @xl:before:hidden";
