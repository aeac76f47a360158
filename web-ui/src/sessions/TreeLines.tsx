import type { TreeRow } from "./family_rows";

/** The lines of one row: those that pass, and the one that leaves its lane for a fork. */
export function TreeLines({
  row,
  lanes,
  height,
  isHere,
}: {
  row: TreeRow;
  lanes: number;
  height: number;
  /** Whether it is of the session that is looked at. */
  isHere: boolean;
}) {
  const step = stepOf(lanes);
  const x = (lane: number) => step / 2 + 2 + lane * step;
  const middle = height / 2;
  const own = x(row.lane);
  const fork = row.kind === "session" ? row.from : null;
  const lines = [
    ...row.above
      .filter((lane) => !(lane === row.lane && fork !== null))
      .map((lane) => ({ lane, from: 0, to: endOf(row, lane, middle, height) })),
    ...row.below
      .filter((lane) => lane === row.lane && (fork !== null || !row.above.includes(lane)))
      .map((lane) => ({ lane, from: middle, to: height })),
  ];
  const radius = Math.min(5, step / 2 - 0.5);
  return (
    <svg
      aria-hidden
      width={lanes * step + 4}
      height={height}
      className="shrink-0 self-start text-edge"
    >
      <g stroke="currentColor" strokeWidth="2" fill="none">
        {lines.map(({ lane, from, to }) => (
          <path key={`${lane} ${from}`} d={`M${x(lane)} ${from}V${to}`} />
        ))}
        {fork !== null && (
          <path
            d={`M${x(fork)} 0C${x(fork)} ${middle} ${x(fork)} ${middle} ${own} ${middle}`}
            strokeDasharray={fork === row.lane ? "3 3" : undefined}
          />
        )}
      </g>
      {row.kind === "session" ? (
        <rect
          x={own - radius}
          y={middle - radius}
          width={radius * 2}
          height={radius * 2}
          rx="1.5"
          className={isHere ? "fill-accent text-accent" : "fill-panel"}
          stroke="currentColor"
          strokeWidth="2"
        />
      ) : (
        row.kind === "job" && (
          <circle
            cx={own}
            cy={middle}
            r={radius}
            className={isHere ? "fill-accent" : "fill-edge"}
          />
        )
      )}
    </svg>
  );
}

/** Lanes are as wide as there is room. */
function stepOf(lanes: number): number {
  return Math.max(5, Math.min(18, 200 / lanes));
}

/** A line that comes from above goes on, or ends at the node of this row. */
function endOf(row: TreeRow, lane: number, middle: number, height: number): number {
  if (row.below.includes(lane)) return height;
  if (row.kind === "session" && lane === row.from) return 0;
  return lane === row.lane ? middle : height;
}
