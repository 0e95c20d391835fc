/** An event as the line of JSON that is queued and sent. */
import type { components } from "../generated/schema.js";

export type ActionType = components["schemas"]["ActionTypeEnum"];

const MAX_EVENT_BYTES = 64 * 1024;
const EARLIEST = Date.UTC(2000, 0, 1);
const MOST_AHEAD = 5 * 60 * 1000;
const MAX_SESSION_ID = 255;

/** When an event happened (else now), and what it belongs to. */
export type EventOptions = Readonly<{
  occurredAt?: Date | undefined; sessionId?: string | undefined; chainId?: string; decisionId?: string;
}>;

/** An event as it is sent. */
export type ReportedEvent = Readonly<{
  agent_id: string; action_type: string; details: Readonly<Record<string, unknown>>; occurred_at: string;
  session_id?: string | undefined; chain_id?: string | undefined; decision_id?: string | undefined;
}>;

/** An event with its line, and the octets of that. */
export type Queued = Readonly<{ event: ReportedEvent; line: string; size: number }>;

/** The event as a line. Throws: TypeError for what has no JSON form or the service would refuse. */
export function encode(event: ReportedEvent): Queued {
  const moment = Date.parse(event.occurred_at);
  if (!(moment >= EARLIEST && moment <= Date.now() + MOST_AHEAD)) {
    throw new TypeError("occurredAt: before 2000 or more than five minutes ahead");
  }
  if ((event.session_id?.length ?? 0) > MAX_SESSION_ID) {
    throw new TypeError(`sessionId: longer than ${MAX_SESSION_ID} characters`);
  }
  const line = `${JSON.stringify(event)}\n`;
  const size = new TextEncoder().encode(line).length;
  if (size - 1 > MAX_EVENT_BYTES) {
    throw new TypeError(`the event takes more than ${MAX_EVENT_BYTES} bytes`);
  }
  // `JSON.stringify` escapes NUL and halves of surrogate pairs, which the service refuses; pairs stay as they are.
  if (/(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f][0-9a-f]{2})/.test(line)) {
    throw new TypeError("the event contains NUL or a lone surrogate");
  }
  return { event, line, size };
}
