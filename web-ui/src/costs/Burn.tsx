import type { Schemas } from "../api/types";
import { counted, countText, usdText } from "../ui/money";
import { Card, Empty } from "../ui/Page";
import { Badge } from "../ui/Status";
import { Ago, timeText } from "../ui/time";

type Burn = Schemas["BurnDocument"];
type Cap = Schemas["CapRow"];

/** What today will cost at this rate, and which caps will be reached. */
export function BurnView({ burn }: { burn: Burn }) {
  const { today, per_hour: rate, caps } = burn;
  return (
    <div className="grid gap-3 md:grid-cols-2">
      <Card label="Today">
        <div className="p-3 text-sm">
          <p className="text-2xl font-semibold tabular-nums">{usdText(today.cost_usd)}</p>
          <p className="text-soft">
            today; {usdText(today.expected_usd)} by midnight at the rate of the last hours (
            {usdText(rate.cost_usd)} an hour)
          </p>
          <p className="text-xs text-faint">
            {counted(today.turns, "turn")}, {counted(today.tokens, "token")}; rate since{" "}
            {timeText(burn.rate_since)}
          </p>
        </div>
      </Card>
      <Card label="Caps">
        {caps.length === 0 && (
          <Empty>No cap is set: limits.spend in the fleet file sets one.</Empty>
        )}
        <ul className="flex flex-col divide-y divide-line" aria-label="Caps">
          {caps.map((cap) => (
            <CapView key={`${cap.scope} ${cap.owner} ${cap.limit} ${cap.per_day}`} cap={cap} />
          ))}
        </ul>
      </Card>
    </div>
  );
}

function CapView({ cap }: { cap: Cap }) {
  const text = cap.limit === "spend" ? usdText : countText;
  const share = cap.maximum === 0 ? 1 : Math.min(1, cap.used / cap.maximum);
  const name = `${cap.owner ?? cap.scope}: ${cap.limit}${cap.per_day ? " per day" : ""}`;
  return (
    <li className="flex flex-col gap-1 px-3 py-2 text-sm">
      <div className="flex flex-wrap items-baseline gap-x-2">
        <span className="font-medium wrap-anywhere">{name}</span>
        <span className="tabular-nums">
          {text(cap.used)} of {text(cap.maximum)}
        </span>
        <span className="ml-auto">
          {cap.is_reached ? (
            <Badge tone="bad" text={`reached: ${cap.on_reached}`} />
          ) : cap.reached_at !== null ? (
            <Badge tone="wait" text="will be reached" title={timeText(cap.reached_at)} />
          ) : (
            <Badge tone="good" text="holds" />
          )}
        </span>
      </div>
      <meter
        min={0}
        max={1}
        value={share}
        aria-label={`${name}: ${Math.round(share * 100)} %`}
        className="h-2 w-full"
      />
      <p className="text-xs text-faint">
        {cap.reached_at !== null && (
          <>
            reached <Ago at={cap.reached_at} /> at this rate.{" "}
          </>
        )}
        {cap.resets_at !== null && (
          <>
            Starts again <Ago at={cap.resets_at} />.
          </>
        )}
      </p>
    </li>
  );
}
